"""What else a key may hold."""
