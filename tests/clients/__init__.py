"""Clients that people use, over real sockets: redis-py in both its forms, and redis-cli."""
