"""Side-by-side measurements of Penstock and other servers; run with ``python -m benchmarks``.

What counts is the CPU time that a server takes for a command, relative to what another server takes
a moment before or after. Absolute times depend on the machine and on whatever else it does.
"""
