"""Redis's snapshot format: RDB files, and the payloads of DUMP and RESTORE."""
