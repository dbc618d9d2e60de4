"""Reads entries of both modes: what tasks fetch, as batches of Arrow, and Spark's readers."""
