"""A query of mode `group` with an idempotent sink survives a crash at each of its commands.

Some of the scenarios are tried; all of them, which take minutes, where ``PENSTOCK_EXPLORE_ALL``
is set.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from penstock.testing import Penstock, PenstockServer

MOST = None if os.environ.get("PENSTOCK_EXPLORE_ALL") else 10
"""How many scenarios are tried of each kind."""

IDS = [f"1-{number}" for number in range(1, 4)]


def fill(client: Any) -> None:
    for id in IDS:
        client.xadd("s", {"f": id}, id=id)


def copied_once(client: Any) -> None:
    copies = [fields["id"] for _, fields in client.xrange("copy")]
    assert copies == IDS, f"copied {copies}"
    (group,) = client.xinfo_groups("s")
    assert (group["pending"], group["lag"]) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crash", "connection"])
def test_each_entry_is_copied_once_whatever_command_is_the_last(kind: str) -> None:
    with PenstockServer() as server:
        penstock = Penstock(server)
        worker = penstock.explore.process(sys.executable, "-m", "source_tests.explored_query")
        result = penstock.explore.crashes(
            worker, prepare=fill, invariant=copied_once, kinds=[kind], most=MOST
        )
        penstock.close()
    assert result.explored == (MOST or result.of)
