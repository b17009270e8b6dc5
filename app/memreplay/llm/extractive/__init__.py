"""``memreplay/extractive``: a reader without a model. It picks what the words of the context support best."""
