"""A plugin of pytest for the suite on the compiled form: ``pytest -p tests.compiled``.

Everything runs there but what :data:`LEFT_OUT` lists, by reason. A line that fits no test any more
is an error when the whole suite runs, and so is a run on plain Python.
"""

from __future__ import annotations

from typing import Final

import pytest

from server.runtime.version import BUILD

LEFT_OUT: Final = {
    "it reads the sources, or asks make, which does; they are in the checkout": (
        "tests/tools/build/test_narrowing.py",
        "tests/tools/build/test_native.py::test_a_name_in_a_function_stands_for",
        "tests/tools/build/test_native.py::test_every_room_and_every_module_that_is_named_exists",
        "tests/tools/build/test_native.py::test_what_is_made_piece_by_piece_is_no_generator",
        "tests/docs/test_links.py",
        "tests/docs/test_pictures.py",
        "tests/docs/test_readme.py::test_the_make_commands_exist",
        "tests/docs/test_troubleshooting.py::test_every_message_is_in_the_code",
        "tests/server/web/html/test_assets.py::test_a_wheel_has_them",
        "tests/test_folders.py",
        "tests/test_layout.py",
    ),
    "it replaces a constant, a function or a method, which compiled code has built in": (
        "tests/storage/engine/test_log.py::test_a_limit_of_bytes_above_the_largest_node_is_the_largest_node",
        "tests/storage/engine/test_log.py::test_an_entry_above_the_largest_node_is_refused",
        "tests/storage/engine/test_compression.py::test_a_block_in_which_a_group_reads_on_is_kept",
        "tests/storage/engine/test_compression.py::test_a_block_that_is_too_large_to_compress_in_time",
        "tests/storage/engine/test_compression.py::test_a_round_compresses_a_limited_number_of_bytes",
        "tests/storage/engine/test_compression.py::test_a_round_packs_a_limited_number_of_bytes",
        "tests/storage/engine/test_compression.py::test_beyond_the_limit_",
        "tests/storage/engine/test_compression.py::test_reading_everything_does_not_uncompress_everything",
        "tests/storage/engine/test_compression.py::test_where_blocks_come_faster_than_rounds_the_oldest_are",
        "tests/storage/aof/test_encode_effects_units.py::test_a_claim_names_a_limited_number_of_entries",
        "tests/storage/aof/test_encode_effects_units.py::test_a_claim_that_names_so_many_entries_takes_no_more",
        "tests/storage/engine/test_log.py::test_memory_usage_of_a_long_stream_is_told_from_some_of_it",
        "tests/storage/engine/test_pending.py::test_looking_for_the_idle_passes_over_younger_segments",
        "tests/storage/engine/test_pending.py::test_segments_from_which_the_idle_have_gone_are_passed_over",
        "tests/server/clients/test_pubsub.py::test_a_pattern_is_taken_apart_once_however_many_there_are",
    ),
    "it counts calls of functions, of which compiled code tells nobody": (
        "tests/benchmarks/test_calls.py",
        "tests/server/persistence/together/test_loading_cost.py::test_ten_times_as_many_commands_take_at_most",
    ),
    "it is of the data source or of pipelines, of which nothing is compiled": ("spark/",),
    "it derives a class, which a compiled one does not allow": (
        "tests/storage/engine/test_groups_cursor.py::test_whoever_reads_on_searches_once",
    ),
}
"""Which tests cannot run where only the compiled wheel is, by how their names begin."""


def pytest_configure() -> None:
    if BUILD != "compiled":
        raise pytest.UsageError("the server that the tests import is not compiled")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = tuple(name for group in LEFT_OUT.values() for name in group)
    left_out = [item for item in items if item.nodeid.startswith(names)]
    if config.args == config.getini("testpaths"):
        idle = [key for key in names if not any(item.nodeid.startswith(key) for item in left_out)]
        if idle:
            raise pytest.UsageError(f"tests.compiled.LEFT_OUT names what is not there: {idle}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.nodeid.startswith(names)]
