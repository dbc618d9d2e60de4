"""How a run is doing, for others: the status file, series for Prometheus, and a page."""
