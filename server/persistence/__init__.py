"""The append-only file at run time: writing, rewriting, loading."""
