"""Replicas and their primary."""
