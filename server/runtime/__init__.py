"""Hold what a server stands on: clock, log, counters, process, event loop, background work."""
