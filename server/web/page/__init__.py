"""The page: what a server holds and does, for a browser, on the port of metrics."""
