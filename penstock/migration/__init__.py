"""Copies streams between servers: ``penstock import`` and ``penstock export``.

Either server may be Redis, Valkey or Penstock. Only ordinary commands are used, so the servers need
no connection to each other. :mod:`penstock.migration.cli` is the entry point of both commands.
"""
