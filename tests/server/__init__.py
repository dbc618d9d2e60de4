"""The server's parts: without sockets where that is possible."""
