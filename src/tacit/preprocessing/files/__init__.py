"""Tables in files and in memory, as columns of raw values."""
