"""The files of the example of monitoring: they load, and ask for nothing that is not exported."""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final

import pytest
import redis
import yaml
from prometheus_client.parser import text_string_to_metric_families

from examples.monitoring import workload
from penstock import cli
from tests.examples.promql import PromQLError, Query, parse
from tests.support.process import ROOT
from tests.support.scraping import scraped
from tests.support.servers import PenstockThread

FOLDER: Final = ROOT / "examples" / "monitoring"
OF_PROMETHEUS: Final = {"instance", "job"}
"""The labels that Prometheus adds to every series."""

Exported = dict[str, set[str]]
"""The labels of each series that is exported."""


def load(name: str) -> Any:
    """The contents of a YAML file."""
    return yaml.safe_load((FOLDER / name).read_text())


DASHBOARD: Final = json.loads((FOLDER / "grafana/dashboards/penstock.json").read_text())
PANELS: Final = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES: Final = [rule for group in load("alerts.yml")["groups"] for rule in group["rules"]]
COMPOSE: Final = load("compose.yaml")["services"]

EXPRESSIONS: Final = [
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
    *(rule["expr"] for rule in RULES),
]


@pytest.fixture(scope="module")
def exported() -> Exported:
    found: Exported = {"up": set()}  # Prometheus makes this one itself.
    for family in text_string_to_metric_families(scraped()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def wrong(query: Query, exported: Exported) -> list[str]:
    """What an expression asks for in vain."""
    every = set[str]().union(*exported.values(), OF_PROMETHEUS)
    return [
        *({name for name, _ in query.series} - exported.keys()),
        *(
            f"{name}{{{label}}}"
            for name, label in query.series
            if label and label not in exported.get(name, every) | OF_PROMETHEUS
        ),
        *(query.labels - every),
    ]


# --- expressions -----------------------------------------------------------------------------


def test_there_are_expressions_to_look_at() -> None:
    assert len(EXPRESSIONS) > 50


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_asks_for_what_a_server_exports(
    expression: str, exported: Exported
) -> None:
    assert wrong(parse(expression), exported) == []


def test_what_is_not_exported_is_found(exported: Exported) -> None:
    assert wrong(parse('sum by (color) (redis_upp{job="x"})'), exported) == ["redis_upp", "color"]
    assert wrong(parse('redis_up{stream=~"x"} > 1'), exported) == ["redis_up{stream}"]
    assert wrong(parse('redis_db_keys{db="db0"}'), exported) == []


@pytest.mark.parametrize(
    "text",
    [
        *("sum(redis_up", "redis_up)", "redis_up{", "redis_up{x}", "redis_up[5x]"),
        *("sun(redis_up)", "sum by (le (redis_up)", "redis_up > '1", "{redis_up)"),
        *("", "rate(redis_up)", "redis_up[5m]", "1 and redis_up", "redis_up > 'a'", '{job="x"}'),
        *("histogram_quantile(redis_up, 0.9)", "sum(1)", "redis_up redis_up"),
    ],
)
def test_what_is_no_expression_is_found(text: str) -> None:
    with pytest.raises(PromQLError):
        parse(text)


def test_the_groups_and_streams_of_the_dashboard_are_looked_up_by_labels_that_there_are(
    exported: Exported,
) -> None:
    lists = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert [each["name"] for each in lists] == ["instance", "stream", "group"]
    for each in lists:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", each["query"]["query"])
        assert found is not None
        (name,) = {name for name, _ in parse(found[1]).series}
        assert found[2] in exported[name] | OF_PROMETHEUS
        assert wrong(parse(found[1]), exported) == []


# --- other people's dashboards ---------------------------------------------------------------

OF_REDIS_EXPORTER: Final = {
    "Uptime": "max(max_over_time(redis_uptime_in_seconds{THIS}[$__interval]))",
    "Clients": "redis_connected_clients{THIS}",
    "Memory Usage": "100 * redis_memory_used_bytes{THIS} / redis_memory_max_bytes{THIS}",
    "Commands Executed / sec": "rate(redis_commands_processed_total{THIS}[1m])",
    "Hits per Sec": "irate(redis_keyspace_hits_total{THIS}[5m])",
    "Misses per Sec": "irate(redis_keyspace_misses_total{THIS}[5m])",
    "Total Memory Usage": "redis_memory_max_bytes{THIS}",
    "Network I/O, input": "rate(redis_net_input_bytes_total{THIS}[5m])",
    "Network I/O, output": "rate(redis_net_output_bytes_total{THIS}[5m])",
    "Total Items per DB": "sum by (db) (redis_db_keys{THIS})",
    "Not-Expiring Keys": "sum(redis_db_keys{THIS}) - sum(redis_db_keys_expiring{THIS})",
    "Expired": "sum by (instance) (rate(redis_expired_keys_total{THIS}[5m]))",
    "Evicted": "sum by (instance) (rate(redis_evicted_keys_total{THIS}[5m]))",
    "Command Calls / sec": "topk(5, irate(redis_commands_total{THIS, cmd!=''}[1m]))",
    "alert: down": "redis_up{THIS} == 0",
    "alert: memory": "redis_memory_used_bytes / redis_total_system_memory_bytes * 100 > 90",
    "alert: connections": "redis_connected_clients > 100",
}
"""What the panels of redis_exporter's dashboard (763 at grafana.com) and its alerts ask for."""


@pytest.mark.parametrize("panel", OF_REDIS_EXPORTER)
def test_the_panels_of_redis_exporters_dashboard_are_answered(
    panel: str, exported: Exported
) -> None:
    expression = OF_REDIS_EXPORTER[panel].replace("THIS", 'instance=~"$instance"')
    assert wrong(parse(expression), exported) == []


# --- the dashboard ---------------------------------------------------------------------------


def test_every_panel_has_a_number_and_a_place_of_its_own() -> None:
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + right, place["y"] + down)
            for right in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_variables_that_expressions_name_are_there() -> None:
    known = {each["name"] for each in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= known


def test_legends_name_labels_that_there_are(exported: Exported) -> None:
    every = set[str]().union(*exported.values(), OF_PROMETHEUS)
    for panel in PANELS:
        for target in panel["targets"]:
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= every


# --- alerts ----------------------------------------------------------------------------------


def test_every_alert_says_what_happened_what_to_do_and_how_bad_it_is(exported: Exported) -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 10
    every = set[str]().union(*exported.values(), OF_PROMETHEUS)
    for rule in RULES:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+[sm]", rule.get("for", "0s"))
        named = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        assert set(named) <= every


# --- what starts it --------------------------------------------------------------------------


def test_prometheus_asks_the_port_that_the_server_is_told_to_serve() -> None:
    config = load("prometheus.yml")
    (job,) = config["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    settings = cli.configure(COMPOSE[host]["command"].split(), io.StringIO())
    assert settings.metrics_port == int(port)
    assert settings.metrics_consumers
    assert job["job_name"] == "penstock"
    for name in config["rule_files"]:
        assert f"./{name}:/etc/prometheus/{name}:ro" in COMPOSE["prometheus"]["volumes"]


def test_what_compose_mounts_is_there_and_nothing_is_published_beyond_the_host() -> None:
    for service in COMPOSE.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source == "streams" or (FOLDER / source).exists(), volume
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_grafana_is_told_where_prometheus_and_the_dashboard_are() -> None:
    (source,) = load("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (provider,) = load("grafana/provisioning/dashboards/penstock.yaml")["providers"]
    path = provider["options"]["path"]
    assert f"./grafana/dashboards:{path}:ro" in COMPOSE["grafana"]["volumes"]
    home = COMPOSE["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{path}/penstock.json"


# --- the work --------------------------------------------------------------------------------


def test_the_work_leaves_what_there_is_to_look_at() -> None:
    with PenstockThread() as penstock, redis.Redis(port=penstock.port) as client:
        workload.prepare(client)
        workload.prepare(client)
        workload.produce(client, 1, 40)
        assert workload.handle(client, "ann", retry_ms=0) == 8
        done = [workload.handle(client, name, 0) for name in ("bob", "ann", "ann", "ann", "ann")]
        assert sum(done) + 8 == 38
        pending = client.xpending_range(workload.STREAM, workload.GROUP, "-", "+", 10)
        assert len(pending) == 2
        assert max(each["times_delivered"] for each in pending) > 1
