"""Copies streams between servers: ``penstock import`` and ``penstock export``.

Either end may be Redis, Valkey or Penstock. Plain commands do all of it, so neither end has to know
that the other is there. :mod:`penstock.migration.cli` is where both commands begin.
"""
