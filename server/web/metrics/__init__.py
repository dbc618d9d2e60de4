"""What the metrics endpoint answers."""
