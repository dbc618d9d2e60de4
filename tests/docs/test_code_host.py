"""What a code host and its tools read names what there is: workflows, templates, dependabot."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.process import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def jobs(workflow: Path) -> list[dict[str, Any]]:
    return list(read(workflow)["jobs"].values())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(workflow) for step in job["steps"]]


def workflow(name: str) -> Path:
    return GITHUB / "workflows" / f"{name}.yml"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_when_it_runs_where_and_with_which_rights(path: Path) -> None:
    found = read(path)
    # YAML 1.1 takes `on` for a truth value.
    assert set(found) - {"concurrency"} == {"name", True, "permissions", "jobs"}
    assert found["name"] == path.stem
    assert found["permissions"] == {"contents": "read"}
    for job in jobs(path):
        assert {"name", "runs-on", "steps"} <= set(job)
    for step in steps(path):
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+[\d.]*", step.get("uses", "a/b@v1"))


def test_the_tests_run_for_pushes_and_pull_requests_on_every_python_that_is_named() -> None:
    assert set(read(workflow("tests"))[True]) == {"push", "pull_request"}
    named = read(workflow("tests"))["jobs"]
    job, compiled = named["tests"], named["compiled"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == versions
    assert f">={versions[0]}" == PROJECT["project"]["requires-python"]
    assert compiled["strategy"] == job["strategy"]
    assert any(step.get("run", "").startswith("make test ") for step in job["steps"])


def test_the_workflow_asks_make_for_all_that_ci_asks_it_for() -> None:
    ours = workflow("tests").read_text()
    spark = read(workflow("tests"))["jobs"]["spark"]["strategy"]["matrix"]["target"]
    asked = {*re.findall(r"\bmake (test[a-z-]*)", ours), *spark}
    known = set(re.findall(r"\bmake (test[a-z-]*)", (ROOT / ".ci" / "run").read_text()))
    assert known - asked == {"test-redis-py", "test-spark"}
    assert asked <= known <= TARGETS


def test_a_release_has_all_distributions_and_is_published_only_where_somebody_says_so() -> None:
    found = read(workflow("release"))["jobs"]
    built = "\n".join(step.get("run", "") for step in found["pure"]["steps"])
    assert set(re.findall(r"spark/[\w-]+", built)) == {
        f"spark/{path.parent.name}" for path in (ROOT / "spark").glob("*/pyproject.toml")
    }
    assert found["publish"]["if"].startswith("vars.PUBLISH == 'yes' && ")
    assert set(found["publish"]["needs"]) == set(found) - {"publish", "image"}
    pushes = [
        step["with"]["push"] for step in found["image"]["steps"] if "push" in step.get("with", "")
    ]
    assert pushes == ["${{ vars.PUBLISH == 'yes' }}"]


def test_the_tutorial_names_no_python_as_tried_that_the_project_does_not_name() -> None:
    text = " ".join((ROOT / "docs" / "tutorial.md").read_text().split())
    [tried] = re.findall(r"have passed on CPython ([^;]+);", text)
    versions = read(workflow("tests"))["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert set(re.findall(r"\d\.\d+", tried)) <= set(versions)


def test_a_release_has_a_wheel_for_every_python_that_is_named_and_tries_each() -> None:
    versions = read(workflow("tests"))["jobs"]["tests"]["strategy"]["matrix"]["python"]
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert wheels["build"] == [f"cp{version.replace('.', '')}-*" for version in versions]
    assert "{project}/examples/exchange.py" in wheels["test-command"]
    assert any("examples/exchange.py" in step.get("run", "") for step in steps(workflow("release")))


def test_make_knows_what_workflows_and_hooks_ask_it_for() -> None:
    commands = [step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step]
    hooks = [
        hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]
    ]
    lines = "\n".join([*commands, *(hook["entry"] for hook in hooks)])
    asked = set(re.findall(r"\bmake ([a-z-]+)", lines))
    assert {"test", "docs", "lint", "types"} <= asked <= TARGETS
    files = re.findall(r"\b(?:[a-z]+/)+[\w.]+\.(?:py|lock)\b", lines)
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_has_what_forms_need(path: Path) -> None:
    form = read(path)
    assert set(form) == {"name", "description", "labels", "body"}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({field["id"] for field in fields}) == len(fields) > 1
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations") == {"required": True} for field in fields)


def test_there_are_forms_for_what_is_wrong_and_for_what_is_missing() -> None:
    assert [path.stem for path in FORMS] == ["bug", "idea"]


def test_pull_requests_are_asked_for_what_contributing_asks() -> None:
    template = (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text()
    assert template.count("- [ ] ") == 3
    named = re.findall(r"`([\w.]+(?:\.md|/))`", template)
    assert named == ["CHANGELOG.md", "docs/"]


def test_dependabot_looks_where_versions_are_named() -> None:
    files = {
        "github-actions": ".github/workflows",
        "pip": "{}/pyproject.toml {}/requirements.txt",
        "npm": "{}/package.json",
    }
    found = read(GITHUB / "dependabot.yml")
    assert found["version"] == 2
    assert {update["package-ecosystem"] for update in found["updates"]} == set(files)
    for update in found["updates"]:
        places = files[update["package-ecosystem"]].format(*[update["directory"].strip("/")] * 2)
        assert any((ROOT / place.lstrip("/")).exists() for place in places.split()), update
        assert update["schedule"] == {"interval": "weekly"}


def test_the_editor_breaks_lines_where_the_formatter_does() -> None:
    settings = configparser.ConfigParser()
    settings.read_string("[first]\n" + (ROOT / ".editorconfig").read_text())
    assert settings["*.py"]["max_line_length"] == str(PROJECT["tool"]["ruff"]["line-length"])
    assert settings["*"]["insert_final_newline"] == "true"
