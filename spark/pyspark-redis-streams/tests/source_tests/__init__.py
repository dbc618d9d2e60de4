"""Tests of the data source. They need the extra ``spark`` and, for those with a session, Java."""
