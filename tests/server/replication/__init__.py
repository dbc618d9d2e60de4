"""Tests of the primary's side of replication."""
