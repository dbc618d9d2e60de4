"""The ``penstock`` command with a disk of the tests: ``python -m tests.durability.runner DISK ...``

``DISK`` is the name of a disk and what it is made of, with commas in between. The rest is as for
the command.
"""

from __future__ import annotations

import sys
from functools import partial
from unittest import mock

from penstock import cli
from server.app import Server
from tests.durability.disks import KillingDisk, PowerLossDisk

DISKS = {"killing": KillingDisk, "power-loss": PowerLossDisk}


def main() -> int:
    name, *arguments = sys.argv.pop(1).split(",")
    disk = DISKS[name](*arguments)
    with mock.patch.object(cli, "Server", partial(Server, disk=disk)):
        return cli.main()


if __name__ == "__main__":
    sys.exit(main())
