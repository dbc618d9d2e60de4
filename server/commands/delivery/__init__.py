"""Policies of consumer groups and streams."""
