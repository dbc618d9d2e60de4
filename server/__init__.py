"""The server: sockets, sessions and commands around the engine in :mod:`storage`."""
