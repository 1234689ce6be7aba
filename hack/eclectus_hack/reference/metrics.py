"""docs/reference/metrics.md: every metric of the scheduler and of the operator, from their registries."""

from collections.abc import Iterator

import yaml
from prometheus_client import CollectorRegistry

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.configuration import parse
from eclectus.config.process_settings import MetricsSettings
from eclectus.live.metrics_page import register_collectors, registry_of
from eclectus.live.process_metrics import Metrics
from eclectus_e2e.paths import CHART
from eclectus_hack.reference.markdown import code, head, table
from eclectus_operator import metrics as operator_metrics

INTRODUCTION = """\
Every metric, in Prometheus' text format: the scheduler's at `:10269/metrics`, the operator's at
`:10279/metrics`. [Observe](../observe.md#metrics) says who may read them and what to look at first. Where
kube-scheduler has the same metric, its name and labels are the same with the prefix `eclectus_` instead of
`scheduler_`. A histogram has the series `_bucket`, `_sum` and `_count`. The number of values of a label is
bounded and does not grow with pods or nodes: `group` is the value of a node label or `none`, `class` a class
of work, `set` the constraints of a pod in one line, and what is beyond the bounds counts as `other`; `node`
is one of 40 nodes at a time."""
ALERTS = CHART / "files" / "alerts.yaml"
ALERTS_TEXT = """\
The rules are in [`files/alerts.yaml`](../../charts/eclectus/files/alerts.yaml) of the chart; each name leads
to what to do.
"""
HEADS = ["metric", "type", "labels", "meaning"]


def page() -> str:
    """The text of the page."""
    scheduler = table(HEADS, _rows(_scheduler_registry()))
    operator = table(HEADS, _rows(operator_metrics.Metrics().registry))
    start = head("Metrics", "the registries of the scheduler and the operator", INTRODUCTION)
    alerts = table(["alert", "severity", "after", "meaning"], _alerts())
    return "\n".join(
        [start, "## Scheduler\n", scheduler, "## Operator\n", operator, "## Alerts\n", ALERTS_TEXT, alerts]
    )


def _alerts() -> Iterator[list[str]]:
    """A row for each alert of the chart, with a link to its runbook."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            name = f"[`{rule['alert']}`](../{rule['annotations']['runbook_url'].removeprefix('docs/')})"
            severity, summary = rule["labels"]["severity"], rule["annotations"]["summary"]
            yield [name, severity, rule.get("for", "0m"), summary]


def _scheduler_registry() -> CollectorRegistry:
    """The registry as a scheduler fills it that has the default configuration and a policy with prices."""
    profile = "{schedulerName: eclectus, place: {policy: phoenix}}"
    text = f"{{apiVersion: {API_VERSION}, kind: {SCHEDULER_CONFIGURATION}, profiles: [{profile}]}}"
    engine, registry = parse(text).engine(), registry_of(Metrics())
    register_collectors(registry, engine, lambda: 0.0, MetricsSettings())
    return registry


def _rows(registry: CollectorRegistry) -> Iterator[list[str]]:
    """A row for each family, by name. The names of labels are private in prometheus_client."""
    found = {}
    for collector in vars(registry)["_collector_to_names"]:
        for family in collector.collect():
            labels = vars(family).get("_labelnames") or vars(collector).get("_labelnames") or ()
            name = family.name + "_total" * (family.type == "counter")
            found[name] = [code(name), family.type, ", ".join(map(code, labels)), family.documentation]
    return iter(found[name] for name in sorted(found))
