"""Mode ``offsets``: the checkpoint keeps the position."""
