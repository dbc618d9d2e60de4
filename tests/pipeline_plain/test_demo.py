"""The demo without Spark: its file, its orders, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline import demo
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.file import load


def test_the_file_is_valid_and_may_be_used_on_another_server(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(demo.FILE.format(url="redis://127.0.0.1:7000"), encoding="utf-8")
    assert load(file, {}).source["url"] == "redis://127.0.0.1:7000"
    assert load(file, {"REDIS_URL": "redis://h"}).source["url"] == "redis://h"
    assert [output.name for output in load(file, {}).outputs] == ["hours", "dead-letters"]


def test_the_orders_are_the_same_each_time() -> None:
    orders = list(demo.orders())
    assert orders == list(demo.orders())
    assert len(orders) == demo.ORDERS + 1
    assert sum(order["qty"] == "many" for order in orders) == demo.ORDERS // demo.BROKEN_EACH
    # The last order closes the hours before it, and is in none of them.
    assert sum(demo.expected().values()) == sum(
        int(order["qty"]) for order in orders if order["qty"].isdigit()
    )


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(PipelineError, match="is there already: name another with --out"):
        demo.demo(tmp_path, print)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
