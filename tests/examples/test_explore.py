"""The examples of exploring that need redis-py alone find what the page has of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from examples.explore import shop
from penstock.testing import Penstock, PenstockServer, exploring
from tests.plugin.conftest import Installation
from tools.docs import explored_page


@pytest.fixture(scope="module")
def explored_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    installation = Installation(tmp_path_factory.mktemp("installation"))
    with PenstockServer(command=[str(installation.command)]) as server:
        yield server


@pytest.fixture
def penstock(
    explored_server: PenstockServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Penstock]:
    monkeypatch.setenv(shop.URL, explored_server.url)
    handle = Penstock(explored_server)
    yield handle
    handle.close()


def without_versions(text: str) -> str:
    """The page names the version that it was written with, which may be an older one."""
    return re.sub(r"\| redis-py [\d.]+ \|", "| |", text)


@pytest.mark.parametrize(
    "example",
    [
        *("by_hand", "outbox", "inbox", "rate_limiter"),
        pytest.param("locks", marks=pytest.mark.slow),
    ],
)
def test_a_run_gives_the_rows_of_the_page(penstock: Penstock, example: str) -> None:
    found = explored_page.explore(penstock, [example])
    is_worker = example in explored_page.WORKERS
    row = explored_page.worker_row if is_worker else explored_page.pattern_row
    page = without_versions(explored_page.PAGE.read_text()).splitlines()
    assert [
        line for each in found if (line := without_versions(row(each)).strip()) not in page
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [
        *("faststream_group", "taskiq_stream", "walrus_group"),
        *("arq_queue", "celery_queue", "rq_queue"),
    ],
)
def test_a_library_does_its_work_and_survives_one_crash(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    monkeypatch.setattr(exploring.session, "only", "crash-before@0")
    module = pytest.importorskip(
        f"examples.explore.{example}", reason="its library is not installed", exc_type=ImportError
    )
    explored_page.tests_of(module)[0](penstock)


def test_what_has_not_tried_everything_is_no_row(penstock: Penstock) -> None:
    def spinning(client: object) -> None:
        penstock.explore.crashes(lambda client: client.get("a"), seconds=1e-9)

    with pytest.raises(SystemExit, match="has not tried everything: 0 of 1 scenarios, seconds="):
        explored_page.explored(penstock, explored_page, spinning)
