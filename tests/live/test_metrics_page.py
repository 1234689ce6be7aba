"""docs/reference/metrics.md lists exactly the metrics that exist, each with its type."""

import platform
import re

from builders import make_engine
from eclectus import __version__
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.live.metrics_page import register_collectors, registry_of, text
from eclectus.live.metrics_table import FAMILIES
from eclectus.live.process_metrics import Metrics
from eclectus.policies.place.phoenix import ScarceNodesLast
from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.paths import CHECKOUT
from eclectus_operator import metrics as operator_metrics


def exported():
    """(name, type) of every metric of the scheduler and the operator."""
    engine, registry = make_engine(ScarceNodesLast(), learn=RosellaLearn()), registry_of(Metrics())
    register_collectors(registry, engine, lambda: 0.0, Settings())
    for each in (registry, operator_metrics.Metrics().registry):
        for family in each.collect():
            yield family.name + "_total" * (family.type == "counter"), family.type


def test_every_metric_is_documented_with_its_type():
    page = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text()
    listed = re.findall(r"^\| `((?:eclectus|process)_\w+)` \| (\w+) \|", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(exported())


def test_the_table_of_families_is_complete():
    scheduler = {name for name, _ in exported() if not name.startswith("process_")}
    operators = {each.name for each in operator_metrics.Metrics().registry.collect()}
    scheduler -= operators | {f"{name}_total" for name in operators}
    assert scheduler == {each.full_name for each in FAMILIES.values()}


def test_the_versions_are_those_that_run():
    lines = text(registry_of(Metrics())).decode().splitlines()
    line = next(line for line in lines if line.startswith("eclectus_build_info"))
    python = platform.python_version()
    assert line == f'eclectus_build_info{{python_version="{python}",version="{__version__}"}} 1.0'
