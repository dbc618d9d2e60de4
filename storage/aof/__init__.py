"""The append-only file: its contents, its files, and how they are written and read."""
