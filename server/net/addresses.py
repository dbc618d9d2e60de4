"""How addresses of sockets are written."""

from __future__ import annotations


def address_text(peer: object, own: object) -> str:
    """``host:port``, ``[host]:port`` for IPv6, or the path of a Unix socket, which only the own end
    may have."""
    if isinstance(peer, tuple):
        host, port = peer[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    path = peer or own
    return f"{path.decode() if isinstance(path, bytes) else path}:0"
