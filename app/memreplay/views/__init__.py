"""Tables, panels and documents as functions of recorded data. No screen and no page is needed for them."""
