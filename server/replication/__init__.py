"""The primary's side of replication."""
