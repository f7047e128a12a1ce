"""Pictures: answers level by level, and training curves, for any problem."""
