"""RESP: bytes to requests, reply values to bytes.

Nothing here opens a socket, reads a clock or accesses stored data, so every rule of the protocol
can be tested by passing bytes to a function.
"""
