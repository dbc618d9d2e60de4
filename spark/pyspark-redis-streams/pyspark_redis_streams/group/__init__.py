"""Mode ``group``: a consumer group, shared with other consumers, keeps the position."""
