"""The engine: Penstock's data structures, in plain synchronous Python.

Nothing here opens a socket, runs on an event loop or reads a clock: the caller passes the current
time. Every mutation is described by an effect (:mod:`storage.engine.effects`).
"""
