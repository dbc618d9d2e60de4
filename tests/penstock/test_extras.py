"""What is told where a package is missing, wherever Penstock comes from."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import cli, extras
from penstock.pipeline.errors import Unavailable, need
from tests.support.missing import check_extra, check_packages, project
from tests.support.process import ROOT

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from penstock.extras import extra_missing, packages_missing
print(extra_missing("it", "uvicorn", "web"))
print(packages_missing("it", "redis"))
"""


def told_without_site_packages(root: Path) -> list[str]:
    """What a Python without any package says of a Penstock in a folder."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(root=str(root))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("extra", sorted(project()["optional-dependencies"]))
def test_an_extra_is_named_with_its_packages(extra: str) -> None:
    check_extra(extras.extra_missing("it", "some.module", extra), "it", extra, "some")


def test_what_comes_with_penstock_is_named_without_markers() -> None:
    check_packages(extras.packages_missing("it", "lupa", "greenlet"), "it", "lupa", "greenlet")


def test_without_a_checkout_it_is_what_has_been_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = "/nowhere/penstock/extras.py"
    monkeypatch.setattr(extras, "__file__", elsewhere)
    monkeypatch.setattr(extras, "requires", lambda name: [f'{name}x>=1; extra == "web"', "y<2"])
    command = f": {shlex.quote(sys.executable)} -m pip install"
    assert extras.extra_missing("it", "u", "web").endswith(f"{command} 'penstock-serverx>=1'")
    assert extras.packages_missing("it", "y").endswith(f"{command} 'y<2'")


def test_a_stranger_s_project_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "penstock").mkdir()
    shutil.copy(extras.__file__, tmp_path / "penstock")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "penstock"\ndependencies = ["redis"]\n'
    )
    assert told_without_site_packages(tmp_path)[1] == "it needs the packages redis"


def test_a_python_without_pip_is_named_to_another_pip(tmp_path: Path) -> None:
    (tmp_path / "penstock").mkdir()
    shutil.copy(extras.__file__, tmp_path / "penstock")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    of_extra, of_packages = told_without_site_packages(tmp_path)
    pip = f"pip --python {shlex.quote(sys.executable)} install"
    assert of_extra.split("): ")[1].startswith(f"{pip} 'jinja2>=")
    assert of_packages.split(": ")[1].startswith(f"{pip} 'redis>=")


def test_a_package_alone_on_the_path_names_no_command(tmp_path: Path) -> None:
    (tmp_path / "penstock").mkdir()
    shutil.copy(extras.__file__, tmp_path / "penstock")
    assert told_without_site_packages(tmp_path) == [
        "it needs the extra 'web' (there is no module 'uvicorn')",
        "it needs the packages redis",
    ]


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
    check_extra(str(caught.value), "the format", extra, module.partition(".")[0])


@pytest.mark.parametrize("name", ["import", "export"])
def test_import_and_export_name_their_packages(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "argv", ["penstock", name, "redis://localhost"])
    assert cli.main() == 1
    check_packages(capsys.readouterr().err, f"penstock {name}", "redis", "rich")
