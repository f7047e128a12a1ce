"""Files of other programs, and numbers as people type them."""
