"""What commands do, once their options are read. Each is imported when it runs."""
