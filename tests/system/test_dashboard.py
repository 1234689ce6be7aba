"""The chart's alerts and dashboard on a real Prometheus that scrapes a real scheduler."""

import json

import pytest
import requests
import yaml

from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.processes import wait_for
from live_cluster import pod, wait
from prometheus_server import scraping

pytestmark = pytest.mark.live

DASHBOARD = json.loads((CHART / "dashboards" / "eclectus.json").read_text())
RULES = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0]["rules"]
# What Grafana puts into queries; the job's name is that of the support module.
VARIABLES = {"$namespace": ".*", "$job": "tested|.*", "$__rate_interval": "5s", "$__range": "1m"}
SCRAPES_SECONDS = 60.0
# Of these nothing has happened in a cluster without errors.
WITHOUT_DATA = {"Refused binds by reason", "Load", "Attempts without a bind"}


def answer(url, query):
    """The samples of a query. Raises for a query that Prometheus refuses."""
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    got = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=60)
    assert got.status_code == 200, (query, got.text)
    return got.json()["data"]["result"]


def has(url, query):
    try:
        return answer(url, query)
    except requests.ConnectionError:
        return False


def test_every_query_of_the_dashboard_and_the_alerts_is_answered(admin, scheduler, tmp_path):
    profile = {"schedulerName": "eclectus", "place": {"policy": "rosella"}}
    running = scheduler(profiles=[profile]).wait_deciding()
    with scraping(running.address, tmp_path) as url:
        wait("a scrape before the first pod", lambda: has(url, "eclectus_leader == 1"))
        admin.create(pod(f"p{at}", work=1.0) for at in range(40))
        admin.wait_succeeded(40)
        wait("samples of all pods", lambda: has(url, "eclectus_samples_total > 30"))
        found = {}

        def is_whole():
            found.update(empty=empty(url), firing=firing(url))
            return found["empty"] <= WITHOUT_DATA and not found["firing"]

        # After a scrape that took more than its second nothing is answered until the next one.
        wait_for(is_whole, SCRAPES_SECONDS)
        rows = [panel for panel in DASHBOARD["panels"] if panel["type"] == "row"]
        of_rows = [panel for row in rows for panel in row["panels"]]  # of what this cluster does not use
        answers = [answer(url, target["expr"]) for panel in of_rows for target in panel["targets"]]
    assert found["empty"] <= WITHOUT_DATA
    assert any(answers)
    assert found["firing"] == []


def empty(url):
    """The panels of which a query has no answer now."""
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    return {
        panel["title"] for panel in panels for target in panel["targets"] if not answer(url, target["expr"])
    }


def firing(url):
    return [rule["alert"] for rule in RULES if answer(url, rule["expr"])]
