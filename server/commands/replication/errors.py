"""Hold the error texts of the commands for replication: those of Redis where it has one."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown

INVALID_MASTER_PORT: Final = "ERR Invalid master port"
NO_REPLICA: Final = (
    "ERR This server cannot be a replica of another: 'penstock import' copies streams from one"
)
NO_FAILOVER: Final = "ERR No failover in progress."
FAILOVER_TIMEOUT: Final = "ERR FAILOVER timeout must be greater than 0"
NO_HANDOVER: Final = (
    "ERR This server cannot hand over to a replica: hold writes with 'CLIENT PAUSE timeout WRITE',"
    " let 'WAIT' tell when the replica has everything, and send it 'REPLICAOF NO ONE'"
)
PSYNC_FAILOVER: Final = "ERR PSYNC FAILOVER can't be sent to a master."
RDB_FILTER_MISSING: Final = "ERR Missing rdb-filter-only values"
TOLD_OF_OTHERS: Final = (
    "ERR A client that subscribes, monitors or tracks cannot follow: what it is told would stand in"
    " the stream of replication"
)
FAILOVER_NEEDS_REPLICAS: Final = "ERR FAILOVER requires connected replicas."


def unrecognized_replconf(name: bytes) -> str:
    """REPLCONF names nothing that a replica can say of itself."""
    return f"ERR Unrecognized REPLCONF option: {shown(name)}"


def unrecognized_version(value: bytes) -> str:
    """REPLCONF VERSION is not followed by three numbers."""
    return f"ERR Unrecognized version format: {shown(value)}"


def unsupported_rdb_filter(name: bytes) -> str:
    """REPLCONF RDB-FILTER-ONLY names something else than functions."""
    return f"ERR Unsupported rdb-filter-only option: {shown(name)}"


def address_too_long(length: int) -> str:
    """REPLCONF IP-ADDRESS is followed by too many bytes; the spelling is that of Redis."""
    return f"ERR REPLCONF ip-address provided by replica instance is too long: {length} bytes"


# --- WAITAOF ----------------------------------------------------------------------------------

WAITAOF_WITHOUT_AOF: Final = (
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
)
