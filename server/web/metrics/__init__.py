"""Answer the metrics endpoint."""
