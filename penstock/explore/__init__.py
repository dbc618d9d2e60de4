"""Exploration of workers: every crash at every command, and every order of commands that matters.

Tests reach it as ``penstock.explore``, an attribute of the fixture. What decides which scenarios
and orders are tried, and what a failing test prints, does no I/O; drivers run the workers.
"""
