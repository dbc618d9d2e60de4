"""What a pipeline says where a package is missing that only some pipelines need."""

from __future__ import annotations

import shlex
import sys

import pytest

from penstock_pipeline import extras
from penstock_pipeline.errors import Unavailable, need
from pipeline_tests.conftest import ROOT
from tests.support.missing import check_extra


@pytest.mark.parametrize(
    ("module", "extra"),
    [("pyspark.sql", "spark"), ("deltalake", "delta"), ("sqlalchemy.orm", "iceberg")],
)
def test_a_module_names_its_extra_with_what_that_installs(module: str, extra: str) -> None:
    check_extra(extras.extra_missing("it", module), "it", extra, module.partition(".")[0], ROOT)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("fastavro", "avro"),
        ("grpc_tools.protoc", "protobuf"),
        ("google.protobuf.descriptor_pb2", "protobuf"),
    ],
)
def test_a_format_names_its_extra(module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unavailable) as caught:
        need(module)
    check_extra(str(caught.value), "the format", extra, module.partition(".")[0], ROOT)


def test_without_a_checkout_it_is_what_has_been_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extras, "__file__", "/nowhere/spark/penstock-pipeline/penstock_pipeline/extras.py"
    )
    monkeypatch.setattr(extras, "requires", lambda name: [f'{name}x>=1; extra == "delta"', "y<2"])
    command = f": {shlex.quote(sys.executable)} -m pip install"
    told = extras.extra_missing("it", "deltalake")
    assert told.endswith(f"{command} 'penstock-pipelinex>=1'")


def test_where_nothing_is_known_no_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extras, "__file__", "/nowhere/spark/penstock-pipeline/penstock_pipeline/extras.py"
    )
    monkeypatch.setattr(extras, "requires", lambda name: [])
    told = extras.extra_missing("it", "deltalake")
    assert told == "it needs the extra 'delta' (there is no module 'deltalake')"
