"""The manual lists every metric there is, with its type, and no other."""

import re

from builders import make_engine
from eclectus.config.shell import Metrics as Settings
from eclectus.live.metrics import Metrics
from eclectus.live.metrics.learned import LearnedCollector
from eclectus.live.metrics.queue_counts import CensusCollector
from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.paths import CHECKOUT
from eclectus_operator.decide import metrics as operator_metrics


def there():
    engine, ours = make_engine(learn=RosellaLearn()), Metrics()
    ours.registry.register(CensusCollector(engine.queue_counts))
    ours.registry.register(LearnedCollector(engine.learned_summary, lambda: 0.0, Settings()))
    for registry in (ours.registry, operator_metrics.Metrics().registry):
        for family in registry.collect():
            yield family.name + "_total" * (family.type == "counter"), family.type


def test_every_metric_stands_in_the_manual_with_its_type():
    page = (CHECKOUT / "docs" / "metrics.md").read_text()
    listed = re.findall(r"^\| `(eclectus_\w+)` \| (\w+) \|", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(there())
