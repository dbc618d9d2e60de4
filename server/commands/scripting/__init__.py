"""Scripts and libraries of functions."""
