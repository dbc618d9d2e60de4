"""What is told where a package is missing, wherever Penstock comes from."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.runtime import packages
from tests.support.missing import check_extra, check_packages, project
from tests.support.process import ROOT

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from server.runtime.packages import extra_missing, packages_missing
print(extra_missing("it", "uvicorn", "web"))
print(packages_missing("it", "redis"))
"""


def copied_below(root: Path) -> None:
    """Puts the module where it lies in a checkout."""
    folder = root / "server" / "runtime"
    folder.mkdir(parents=True)
    shutil.copy(packages.__file__, folder)


def told_without_site_packages(root: Path) -> list[str]:
    """What a Python without any package says of a Penstock in a folder."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(root=str(root))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("extra", sorted(project()["optional-dependencies"]))
def test_an_extra_is_named_with_its_packages(extra: str) -> None:
    check_extra(packages.extra_missing("it", "some.module", extra), "it", extra, "some")


def test_what_comes_with_penstock_is_named_without_markers() -> None:
    check_packages(packages.packages_missing("it", "lupa", "greenlet"), "it", "lupa", "greenlet")


def test_without_a_checkout_it_is_what_has_been_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = "/nowhere/server/runtime/packages.py"
    monkeypatch.setattr(packages, "__file__", elsewhere)
    monkeypatch.setattr(packages, "requires", lambda name: [f'{name}x>=1; extra == "web"', "y<2"])
    command = f": {shlex.quote(sys.executable)} -m pip install"
    assert packages.extra_missing("it", "u", "web").endswith(f"{command} 'penstock-serverx>=1'")
    assert packages.packages_missing("it", "y").endswith(f"{command} 'y<2'")


def test_a_stranger_s_project_file_says_nothing(tmp_path: Path) -> None:
    copied_below(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "penstock"\ndependencies = ["redis"]\n'
    )
    assert told_without_site_packages(tmp_path)[1] == "it needs the packages redis"


def test_a_python_without_pip_is_named_to_another_pip(tmp_path: Path) -> None:
    copied_below(tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    of_extra, of_packages = told_without_site_packages(tmp_path)
    pip = f"pip --python {shlex.quote(sys.executable)} install"
    assert of_extra.split("): ")[1].startswith(f"{pip} 'jinja2>=")
    assert of_packages.split(": ")[1].startswith(f"{pip} 'redis>=")


def test_a_package_alone_on_the_path_names_no_command(tmp_path: Path) -> None:
    copied_below(tmp_path)
    assert told_without_site_packages(tmp_path) == [
        "it needs the extra 'web' (there is no module 'uvicorn')",
        "it needs the packages redis",
    ]
