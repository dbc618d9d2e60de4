"""The tools that ask a server how its consumer groups are: top, groups, tail, dead and doctor.

The server may be a Penstock, a Redis or a Valkey: what acts does so by commands that it has.
"""
