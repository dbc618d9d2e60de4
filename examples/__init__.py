"""Examples, each in a folder of its own that can be run."""
