"""The engine: what Penstock keeps, in plain synchronous Python.

Nothing here opens a socket, runs on an event loop or asks for the time: the caller says what time
it is. Every mutation is described by an effect (:mod:`storage.effects`).
"""
