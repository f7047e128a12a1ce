"""Pictures: answers level by level, training curves. It knows no problem."""
