"""ServiceMonitors, alerts and the dashboard: queries name what exists, and each alert fires when due."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART, CHECKOUT
from eclectus_e2e.testbed.chart import NAMESPACE, render

VALUES = yaml.safe_load((CHART / "ci" / "monitoring-values.yaml").read_text())
ALERTS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((CHART / "dashboards" / "eclectus.json").read_text())
ROWS = [panel for panel in DASHBOARD["panels"] if panel["type"] == "row"]
SHOWN = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PANELS = SHOWN + [panel for row in ROWS for panel in row["panels"]]
VARIABLES = [each["query"]["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
QUERIES = [rule["expr"] for rule in RULES] + VARIABLES
QUERIES += [target["expr"] for panel in PANELS for target in panel["targets"]]
SERIES_OF_A_HISTOGRAM = re.compile("_(bucket|count|sum)$")
OF_A_TARGET = {"namespace", "job", "pod", "instance"}
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool on the PATH (Debian: apt-get install prometheus)"
)


def documented():
    """Metric -> its labels by docs/reference/metrics.md; test_metrics_page.py compares it with the code."""
    page = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(eclectus_\w+)` \| \w+ \| ([^|]*)\|", page, flags=re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def metrics_in(query):
    return {SERIES_OF_A_HISTOGRAM.sub("", name) for name in re.findall(r"eclectus_\w+", query)}


def objects(kind, values=VALUES):
    return {each["metadata"]["name"]: each for each in render(values) if each["kind"] == kind}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_and_labels_that_exist(query):
    known, used = documented(), metrics_in(query)
    assert used
    assert used <= known.keys()
    for name, selector in re.findall(r"(eclectus_\w+)\{([^}]*)\}", query):
        labels = set(re.findall(r"(\w+)\s*(?:=|!)", selector))
        assert labels <= known[SERIES_OF_A_HISTOGRAM.sub("", name)] | OF_A_TARGET
    for grouped in re.findall(r"(?:by|ignoring) \(([^)]*)\)", query):
        labels = set(grouped.replace(" ", "").split(","))
        assert labels <= set().union(*(known[name] for name in used)) | OF_A_TARGET | {"le"}


# -- alerts ------------------------------------------------------------------------------------------------


@needs_promtool
def test_prometheus_accepts_the_alerts():
    subprocess.run(["promtool", "check", "rules", CHART / "files" / "alerts.yaml"], check=True)


@needs_promtool
def test_each_alert_fires_when_it_should_and_not_otherwise(tmp_path):
    for rule in (bare := yaml.safe_load((CHART / "files" / "alerts.yaml").read_text()))["groups"][0]["rules"]:
        del rule["annotations"]  # promtool would compare their texts
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(bare))
    series = tmp_path / "alerts_test.yaml"
    shutil.copy(CHECKOUT / "tests" / "charts" / "alerts_test.yaml", series)
    done = subprocess.run(["promtool", "test", "rules", series], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_series_for_which_it_fires_and_series_for_which_it_does_not():
    tests = yaml.safe_load((CHECKOUT / "tests" / "charts" / "alerts_test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    for fires in (True, False):
        tested = {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires}
        assert tested == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_where_to_read_on(rule):
    assert rule["alert"].startswith("Eclectus")
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert re.fullmatch(r"docs/troubleshoot\.md#[a-z-]+", rule["annotations"]["runbook_url"])


def test_the_prometheus_rule_has_the_alerts_with_the_configured_runbook():
    (rule,) = objects("PrometheusRule").values()
    assert rule["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    text = json.dumps(ALERTS).replace("docs/troubleshoot.md", "https://runbooks.internal/eclectus")
    assert rule["spec"] == json.loads(text)


# -- ServiceMonitors -----------------------------------------------------------------------------------------


def test_each_service_monitor_selects_one_metrics_service():
    monitors, services = objects("ServiceMonitor"), objects("Service")
    assert monitors.keys() == {"eclectus", "eclectus-operator"}
    for name, monitor in monitors.items():
        wanted = monitor["spec"]["selector"]["matchLabels"]
        selected = [
            key for key, one in services.items() if wanted.items() <= one["metadata"]["labels"].items()
        ]
        assert selected == [f"{name}-metrics"]
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint == {
            "port": "metrics",
            "path": "/metrics",
            "interval": "15s",
            "scheme": "https",
            "tlsConfig": {"insecureSkipVerify": True},
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        }
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"


def endpoint_of(monitor=None, **values):
    values["metrics"] = {"serviceMonitor": {"enabled": True, **(monitor or {})}}
    (endpoint,) = objects("ServiceMonitor", values)["eclectus"]["spec"]["endpoints"]
    return {key: value for key, value in endpoint.items() if key not in ("port", "path", "interval")}


def test_a_service_monitor_verifies_and_authenticates_as_its_values_say():
    authorization = {"credentials": {"name": "scraper", "key": "token"}}
    tls = {"ca": {"secret": {"name": "authority", "key": "ca.crt"}}, "serverName": "eclectus"}
    found = endpoint_of({"authorization": authorization, "tlsConfig": tls}, scheduler={"tlsSecret": "pair"})
    assert found == {"scheme": "https", "tlsConfig": tls, "authorization": authorization}


def test_without_authentication_prometheus_sends_no_token():
    server = {"authentication": "none", "allowAnonymous": True}
    assert endpoint_of(config={"server": server}) == {"scheme": "http"}
    found = endpoint_of(config={"server": server}, scheduler={"tlsSecret": "pair"})
    assert found == {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}


def test_a_service_monitor_needs_the_service():
    with pytest.raises(UsageError, match=r"needs metrics\.service\.enabled"):
        render({"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}})


def test_by_default_nothing_needs_the_prometheus_operator():
    assert not any(each["apiVersion"].startswith("monitoring.coreos.com/") for each in render())


# -- dashboard -----------------------------------------------------------------------------------------------


def test_the_config_map_has_the_dashboard_and_the_sidecars_label():
    found = objects("ConfigMap")["eclectus-dashboard"]
    assert json.loads(found["data"]["eclectus.json"]) == DASHBOARD
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "Scheduling"}
    assert found["metadata"]["namespace"] == NAMESPACE


def test_ids_are_unique():
    ids = [panel["id"] for panel in (*ROWS, *PANELS)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("panels", [DASHBOARD["panels"], *(row["panels"] for row in ROWS if row["panels"])])
def test_panels_do_not_overlap(panels):
    cells = [cell for panel in panels for cell in covered(panel["gridPos"])]
    assert len(set(cells)) == len(cells)
    assert {x for x, _ in cells} == set(range(24))


def test_every_metric_has_a_panel():
    shown = {name for panel in PANELS for target in panel["targets"] for name in metrics_in(target["expr"])}
    assert shown == documented().keys()


def covered(place):
    across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return [(x, y) for x in across for y in down]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_and_which_way_is_better(panel):
    description = panel["description"]
    assert description.endswith(".")
    assert re.search(r"\b(higher|lower|fewer|1 is right|0 is right)\b", description), description
    assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references)
