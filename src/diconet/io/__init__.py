"""Reading and writing files, and parsing command-line values."""
