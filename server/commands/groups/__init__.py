"""Consumer groups: reading, acknowledging, claiming, pending entries."""
