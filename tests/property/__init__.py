"""Properties: whatever is sent, invariants hold and replies are those of a real server."""
