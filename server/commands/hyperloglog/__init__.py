"""Commands for HyperLogLogs, which are strings."""
