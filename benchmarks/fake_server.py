"""fakeredis as a server process: ``python -m benchmarks.fake_server PORT``."""

from __future__ import annotations

import sys

from fakeredis import TcpFakeServer


def main() -> None:
    """Serves until it is killed."""
    TcpFakeServer.request_queue_size = 511  # so many clients may connect at once, as elsewhere
    TcpFakeServer.daemon_threads = True
    TcpFakeServer(("127.0.0.1", int(sys.argv[1])), server_type="redis").serve_forever()


if __name__ == "__main__":
    main()
