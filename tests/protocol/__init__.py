"""The protocol, without sockets: bytes in, requests out; reply values in, bytes out."""
