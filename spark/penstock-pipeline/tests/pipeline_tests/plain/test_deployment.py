"""The examples for systemd, Kubernetes and Spark's declarative pipelines fit the code."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock_pipeline.cli import parser
from penstock_pipeline.file import load
from pipeline_tests.conftest import ROOT
from pyspark_redis_streams.settings import read_settings

EXAMPLES = ROOT / "examples"
DECLARATIVE = ROOT.parent / "pyspark-redis-streams" / "examples" / "declarative"
KUBERNETES = EXAMPLES / "kubernetes"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8")))


def kind(name: str, wanted: str) -> dict[str, Any]:
    (found,) = [each for each in documents(name) if each["kind"] == wanted]
    return found


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(EXAMPLES / "systemd/penstock-pipeline@.service")
    return read


@pytest.mark.parametrize("key", ["ExecStartPre", "ExecStart"])
def test_the_service_starts_a_command_that_there_is(key: str) -> None:
    program, *arguments = shlex.split(unit()["Service"][key])
    assert Path(program).name == "penstock-pipeline"
    assert parser().parse_args(arguments).file == Path("/etc/penstock/%i.toml")


def test_the_service_lets_the_pipeline_end_its_children() -> None:
    service = unit()["Service"]
    assert service["KillMode"] == "mixed"
    assert service["RestartPreventExitStatus"] == "2"


def test_the_pipeline_of_the_pod_is_valid(tmp_path: Path) -> None:
    (name, text), *others = kind("pod.yaml", "ConfigMap")["data"].items()
    assert others == []
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    pipeline = load(file, {"REDIS_URL": "redis://u:p@redis:6379"})
    assert pipeline.checkpoint == "/data/checkpoint"


def test_the_pod_runs_the_script_of_the_image_with_options_that_there_are() -> None:
    template = kind("pod.yaml", "StatefulSet")["spec"]["template"]["spec"]
    (container,) = template["containers"]
    given = parser().parse_args(container["args"])
    assert (given.metrics_port, given.metrics_bind) == (9405, "0.0.0.0")
    script = Path(container["command"][1])
    copied = rf"^COPY .* {script.name} {script.parent}/$"
    assert re.search(copied, (KUBERNETES / "Dockerfile").read_text(), re.MULTILINE)
    assert container["ports"][0]["containerPort"] == given.metrics_port
    mounted = {each["name"] for each in container["volumeMounts"]}
    claims = kind("pod.yaml", "StatefulSet")["spec"]["volumeClaimTemplates"]
    there = {each["name"] for each in template["volumes"]}
    assert mounted == there | {each["metadata"]["name"] for each in claims}


def test_the_application_runs_the_same_on_executors() -> None:
    spec = kind("spark-application.yaml", "SparkApplication")["spec"]
    (container,) = kind("pod.yaml", "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert spec["arguments"] == container["args"]
    assert spec["mainApplicationFile"] == f"local://{container['command'][1]}"
    assert spec["image"] == container["image"]
    claim = kind("spark-application.yaml", "PersistentVolumeClaim")["metadata"]["name"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim
    for part in ("driver", "executor"):
        assert {each["name"] for each in spec[part]["volumeMounts"]} <= set(volumes)


def options(tree: ast.AST) -> dict[str, str]:
    """The options of a reader whose values are texts."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            values = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if node.func.attr == "option" and len(values) == 2:
                found[str(values[0])] = str(values[1])
    return found


def test_the_declarative_pipeline_reads_with_options_that_there_are() -> None:
    spec = yaml.safe_load((DECLARATIVE / "spark-pipeline.yml").read_text(encoding="utf-8"))
    assert set(spec) == {"name", "storage", "libraries"}
    (files,) = [DECLARATIVE.glob(each["glob"]["include"] + "/*.py") for each in spec["libraries"]]
    (file,) = files
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert read_settings(options(tree), streaming=True).subscribe == ("orders",)
    made = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    decorators = [ast.unparse(node.decorator_list[0]) for node in made]
    assert decorators == ["dp.table", "dp.materialized_view"]
