"""The examples of a server in compose and in Kubernetes fit the image and the server."""

from __future__ import annotations

import io
import re
from typing import Any, Final

import pytest
import yaml

from penstock import cli
from server.config.registry import Config
from tests.support.process import ROOT

EXAMPLES: Final = ROOT / "examples"
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()
UNITS: Final = {"g": 2**30, "Gi": 2**30}

COMPOSE: Final[dict[str, Any]] = yaml.safe_load((EXAMPLES / "compose/compose.yaml").read_text())
SERVICE: Final[dict[str, Any]] = COMPOSE["services"]["streams"]

MANIFESTS: Final[dict[str, dict[str, Any]]] = {
    each["kind"]: each
    for each in yaml.safe_load_all((EXAMPLES / "kubernetes/server.yaml").read_text())
}
POD: Final[dict[str, Any]] = MANIFESTS["StatefulSet"]["spec"]["template"]["spec"]
CONTAINER: Final[dict[str, Any]] = POD["containers"][0]

COMMANDS: Final = {"compose": SERVICE["command"].split(), "kubernetes": CONTAINER["args"]}


def configured(where: str) -> Config:
    """The settings that the example starts the server with."""
    return cli.configure(COMMANDS[where], io.StringIO(), {"PENSTOCK_PASSWORD": "secret"})


def size(text: str) -> int:
    """Bytes, as the files write them."""
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


# --- what both have --------------------------------------------------------------------------


@pytest.mark.parametrize("where", COMMANDS)
def test_the_data_is_kept(where: str) -> None:
    assert configured(where).appendonly


@pytest.mark.parametrize(
    ("where", "limit"),
    [("compose", SERVICE["mem_limit"]), ("kubernetes", CONTAINER["resources"]["limits"]["memory"])],
)
def test_the_server_refuses_before_the_system_kills_it(where: str, limit: str) -> None:
    assert 0 < configured(where).maxmemory < size(limit)


@pytest.mark.parametrize(
    ("where", "grace"),
    [
        ("compose", int(SERVICE["stop_grace_period"].removesuffix("s"))),
        ("kubernetes", POD["terminationGracePeriodSeconds"]),
    ],
)
def test_there_is_time_to_end(where: str, grace: int) -> None:
    assert grace > configured(where).shutdown_timeout


@pytest.mark.parametrize(
    ("where", "ports"),
    [
        ("compose", {port.rpartition(":")[2] for port in SERVICE["ports"]}),
        ("kubernetes", {str(port["containerPort"]) for port in CONTAINER["ports"]}),
    ],
)
def test_the_ports_are_those_that_the_server_listens_on(where: str, ports: set[str]) -> None:
    config = configured(where)
    assert ports == {str(config.port), str(config.metrics_port)}


@pytest.mark.parametrize(
    "command",
    [
        SERVICE["healthcheck"]["test"][1:],
        CONTAINER["livenessProbe"]["exec"]["command"],
        CONTAINER["readinessProbe"]["exec"]["command"],
    ],
)
def test_health_is_asked_for_as_the_image_does(command: list[str]) -> None:
    program, *options = command
    assert options in ([], ["--ready"])
    assert f'CMD ["/opt/penstock/bin/{program}"]' in DOCKERFILE


# --- compose ---------------------------------------------------------------------------------


def test_compose_builds_the_image_from_the_checkout() -> None:
    assert (EXAMPLES / "compose" / SERVICE["build"] / "Dockerfile").resolve() == ROOT / "Dockerfile"


def test_compose_asks_for_the_password_that_the_server_reads() -> None:
    (name, value), *others = SERVICE["environment"].items()
    assert others == []
    assert name in cli.PASSWORD_VARIABLES
    assert value.startswith("${PENSTOCK_PASSWORD:?")


def test_compose_publishes_on_this_host_only_and_starts_again() -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])
    assert SERVICE["restart"] == "unless-stopped"
    assert (SERVICE["read_only"], SERVICE["cap_drop"]) == (True, ["ALL"])


def test_the_volume_of_compose_is_where_the_image_keeps_data() -> None:
    name, _, place = SERVICE["volumes"][0].partition(":")
    assert name in COMPOSE["volumes"]
    assert f"\nVOLUME {place}\n" in DOCKERFILE


# --- Kubernetes ------------------------------------------------------------------------------


def test_the_pod_reads_its_password_from_the_secret() -> None:
    (variable,) = CONTAINER["env"]
    assert variable["name"] in cli.PASSWORD_VARIABLES
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    # The key of the secret, which the first lines of the file make, is the name of the file.
    assert variable["value"] == f"{mounts['password']}/password"
    (volume,) = POD["volumes"]
    assert (volume["name"], volume["secret"]["secretName"]) == ("password", "penstock")


def test_the_pod_runs_as_the_user_of_the_image() -> None:
    user, group = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)[0]
    context = POD["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user), int(group))
    assert context["fsGroup"] == int(group)
    assert context["runAsNonRoot"]
    inner = CONTAINER["securityContext"]
    assert (inner["readOnlyRootFilesystem"], inner["allowPrivilegeEscalation"]) == (True, False)
    assert inner["capabilities"] == {"drop": ["ALL"]}


def test_every_volume_that_the_pod_mounts_is_there() -> None:
    claims = MANIFESTS["StatefulSet"]["spec"]["volumeClaimTemplates"]
    there = {each["metadata"]["name"] for each in claims} | {
        each["name"] for each in POD["volumes"]
    }
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == there
    assert "\nVOLUME /data\n" in DOCKERFILE
    assert {"name": "data", "mountPath": "/data"} in CONTAINER["volumeMounts"]


def test_the_service_leads_to_the_pod() -> None:
    spec, template = MANIFESTS["Service"]["spec"], MANIFESTS["StatefulSet"]["spec"]["template"]
    assert spec["selector"].items() <= template["metadata"]["labels"].items()
    named = {each["name"]: each["containerPort"] for each in CONTAINER["ports"]}
    assert {each["targetPort"]: each["port"] for each in spec["ports"]} == named
    assert (
        MANIFESTS["StatefulSet"]["spec"]["serviceName"] == MANIFESTS["Service"]["metadata"]["name"]
    )


def test_the_pod_starts_one_server_that_is_ready_when_it_has_loaded() -> None:
    assert MANIFESTS["StatefulSet"]["spec"]["replicas"] == 1
    assert "--ready" in CONTAINER["readinessProbe"]["exec"]["command"]
    assert "--ready" not in CONTAINER["livenessProbe"]["exec"]["command"]
