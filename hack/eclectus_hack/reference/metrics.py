"""docs/reference/metrics.md: every metric of the scheduler and of the operator, from their registries."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from eclectus.api.names import API_VERSION
from eclectus.config import parse
from eclectus.config.configuration import KIND
from eclectus.config.process_settings import MetricsSettings
from eclectus.live.metrics import Metrics
from eclectus.live.metrics.learned import LearnedCollector
from eclectus.live.metrics.prices import PricesCollector
from eclectus.live.metrics.queue_counts import QueueCountsCollector
from eclectus_hack.reference.markdown import code, head, table
from eclectus_operator.decide import metrics as operator_metrics

INTRODUCTION = """\
Every metric, in Prometheus' text format: the scheduler's at `:10269/metrics`, the operator's at
`:10279/metrics`. [Metrics](../metrics.md) says who may read them, how, and what to alert on. A histogram
has the series `_bucket`, `_sum` and `_count`."""
HEADS = ["metric", "type", "labels", "meaning"]


def page() -> str:
    """The text of the page."""
    scheduler = table(HEADS, _rows(_scheduler_registry()))
    operator = table(HEADS, _rows(operator_metrics.Metrics().registry))
    start = head("Metrics", "the registries of the scheduler and the operator", INTRODUCTION)
    return "\n".join([start, "## Scheduler\n", scheduler, "## Operator\n", operator])


def _scheduler_registry() -> CollectorRegistry:
    """The registry as a scheduler fills it that has the default configuration and a policy with prices."""
    profile = "{schedulerName: eclectus, place: {policy: phoenix}}"
    text = f"{{apiVersion: {API_VERSION}, kind: {KIND}, profiles: [{profile}]}}"
    engine, registry = parse(text).engine(), Metrics().registry
    registry.register(QueueCountsCollector(engine.queue_counts))
    registry.register(LearnedCollector(engine.learned_summary, lambda: 0.0, MetricsSettings()))
    registry.register(PricesCollector(engine.price_summary, MetricsSettings()))
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
