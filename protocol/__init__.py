"""RESP on the wire: bytes in, requests out; reply values in, bytes out.

Nothing here opens a socket, reads a clock or touches stored data, so every rule of the protocol can
be tested by handing bytes to a function.
"""
