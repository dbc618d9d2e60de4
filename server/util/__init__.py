"""Plain helpers: what they need comes in, and nothing of the server is known to them."""
