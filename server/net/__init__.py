"""Sockets: listening, connections, and what may wait in their output."""
