"""Size distributions, arrival streams, traces and histograms."""

from __future__ import annotations

import gzip
from functools import reduce
from itertools import islice
from math import log
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from eclectus.model.errors import SettingsError
from eclectus.model.objects import Requirement
from eclectus.sim.base.random_draws import SizeDistribution, stream
from eclectus.sim.scenario import parse
from eclectus.sim.workloads.jobtrace import Jobtrace
from eclectus.sim.world.run_record import ZERO_BUCKET, Histogram
from short_scenarios import document, scenario


def bounded_pareto_variation(a: float, h: float) -> float:
    """Variance over squared mean on 1..h, from the moments of its density."""
    first, second = (
        log(h) * a / (1 - h**-a) if a == power else a / (a - power) * (1 - h ** (power - a)) / (1 - h**-a)
        for power in (1, 2)
    )
    return first**-2 * second - 1


# Each law with its squared coefficient of variation.
LAWS = [
    (SizeDistribution("exponential", 3.0), 1.0),
    (SizeDistribution("deterministic", 3.0), 0.0),
    (SizeDistribution("gamma", 3.0, shape=4.0), 1 / 4),
    (SizeDistribution("hyperexponential", 3.0, scv=4.0), 4.0),
    (SizeDistribution("pareto", 3.0, shape=3.5), 1 / (3.5 * 1.5)),
    (SizeDistribution("bounded-pareto", 3.0, shape=1.5, ratio=100.0), bounded_pareto_variation(1.5, 100.0)),
    (SizeDistribution("bounded-pareto", 3.0, shape=2.0, ratio=50.0), bounded_pareto_variation(2.0, 50.0)),
    (SizeDistribution("empirical", 3.0, values=(1.0, 1.0, 10.0)), 18 / 16),
]
TRACE = "0.0 2 1.5 1.0 2.0\n1.5\t1\t9.0\t9.0\n\n1.5 3 1 1 1 1\n"


@pytest.mark.parametrize(("law", "variation"), LAWS)
def test_a_distribution_has_its_nominal_mean_and_variance(law: SizeDistribution, variation: float) -> None:
    sizes = law.sampler(stream(1, "sizes"))(1_000_000)
    assert sizes.mean() == pytest.approx(3.0, rel=0.01)
    assert sizes.var() / 3.0**2 == pytest.approx(variation, rel=0.08)
    assert sizes.min() > 0


def test_empirical_sizes_are_equally_likely_and_scaled_only_to_a_given_mean() -> None:
    values = (1.0, 2.0, 6.0)
    plain = SizeDistribution("empirical", values=values)
    drawn, counts = np.unique(plain.sampler(stream(1, "sizes"))(30_000), return_counts=True)
    assert (plain.mean_seconds, drawn.tolist()) == (3.0, pytest.approx(values))
    assert counts / 30_000 == pytest.approx([1 / 3] * 3, rel=0.05)
    scaled = SizeDistribution("empirical", 30.0, values=values).sampler(stream(1, "sizes"))(100)
    assert set(scaled.round(9)) == {10.0, 20.0, 60.0}


@pytest.mark.parametrize("name", ["sizes.txt", "sizes.txt.gz"])
def test_sizes_can_be_in_a_file(name: str, tmp_path: Path) -> None:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt") as file:
        file.write("1.5\n\n  2e1\n")
    classes = [{"size": {"law": "empirical", "file": name}}]
    fields = document(workload={"poisson": {"load": 0.5, "classes": classes}})
    plan = parse(yaml.safe_dump(fields), tmp_path).plan
    assert list(plan.mean_sizes.values()) == [10.75]
    assert {job.sizes for job in islice(plan.arrivals(1), 50)} == {(1.5,), (20.0,)}


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ({"law": "empirical"}, "size.values: law: empirical needs either values or a file"),
        ({"law": "empirical", "values": [1], "file": "bad"}, "size.values: law: empirical needs either"),
        ({"values": [1]}, "size.values: is valid only with law: empirical"),
        ({"file": "bad"}, "size.file: is valid only with law: empirical"),
        ({"law": "empirical", "values": [1, 0]}, r"size.values\[1\]: 0 s is too small"),
        ({"law": "empirical", "file": "bad"}, r"size.file: bad, line 2: 'x' is not a size"),
        ({"law": "empirical", "file": "nan"}, r"size.file: nan, line 1: 'nan' is not a size"),
        ({"law": "empirical", "file": "empty"}, "size.file: empty contains no number"),
        ({"law": "empirical", "file": "none"}, r"size.file: none cannot be read"),
    ],
)
def test_invalid_sizes_are_refused(size: dict[str, Any], words: str, tmp_path: Path) -> None:
    for name, text in (("bad", "1\nx\n"), ("nan", "nan\n"), ("empty", "\n")):
        (tmp_path / name).write_text(text)
    fields = document(workload={"poisson": {"load": 0.5, "classes": [{"size": size}]}})
    with pytest.raises(SettingsError, match=r"workload.poisson.classes\[0\]." + words):
        parse(yaml.safe_dump(fields), tmp_path)


def test_jobs_arrive_at_the_given_rate_and_shares() -> None:
    classes = [{"name": "a", "share": 3}, {"name": "b", "tasksPerJob": 4}]
    asked = scenario(
        cluster={"groups": [{"count": 1000}]}, workload={"poisson": {"rate": 70, "classes": classes}}
    )
    jobs = list(islice(asked.plan.arrivals(1), 20_000))
    assert sum(len(job.sizes) for job in jobs) / jobs[-1].at == pytest.approx(70, rel=0.03)
    assert sum(job.work_class.name == "a" for job in jobs) / len(jobs) == pytest.approx(0.75, rel=0.02)
    gaps = np.diff([job.at for job in jobs])
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_a_class_may_prefer_nodes() -> None:
    preferences = [{"key": "zone", "values": ["a", "b"], "weight": 2}]
    (work_class,) = scenario(
        workload={"poisson": {"rate": 0.1, "classes": [{"preferences": preferences}]}}
    ).plan.mean_sizes
    (preference,) = work_class.spec.preferences
    assert preference.weight == 2
    assert preference.term.expressions == (Requirement("zone", "In", ("a", "b")),)


def test_classes_may_share_a_workload() -> None:
    """A learner and reports see one class of work, and its sizes are those of all of them."""
    classes = [{"name": "any"}, {"name": "ssd", "workload": "any", "nodeSelector": {"disk": "ssd"}}]
    groups = [{"labels": {"disk": "ssd"}}]
    plan = scenario(cluster={"groups": groups}, workload={"poisson": {"rate": 0.1, "classes": classes}}).plan
    assert [(each.name, bool(each.spec.node_selector)) for each in plan.mean_sizes] == [
        ("any", False),
        ("any", True),
    ]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({}, r"classes\[1\]: needs and workload are those of classes\[0\]"),
        ({"priority": 1, "size": {"mean": 3}}, r"classes\[1\].size.mean: differs from that of classes\[0\]"),
    ],
)
def test_classes_of_one_workload_that_differ_in_nothing_or_in_size_are_refused(
    other: dict[str, Any], words: str
) -> None:
    classes = [{"name": "a"}, {"name": "b", "workload": "a", **other}]
    with pytest.raises(SettingsError, match=words):
        scenario(workload={"poisson": {"rate": 0.1, "classes": classes}})


def test_a_preference_that_no_node_can_meet_is_refused() -> None:
    classes = [{"preferences": [{"key": "zone", "values": []}]}]
    with pytest.raises(SettingsError, match=r"preferences\[0\].values: is empty"):
        scenario(workload={"poisson": {"rate": 0.1, "classes": classes}})


def test_seeds_differ_and_random_streams_are_independent() -> None:
    def sizes(seed: int, mean: float) -> list[float]:
        asked = scenario(workload={"poisson": {"rate": 0.1, "classes": [{"size": {"mean": mean}}]}})
        return [job.sizes[0] / mean for job in islice(asked.plan.arrivals(seed), 5)]

    def times(seed: int, mean: float) -> list[float]:
        asked = scenario(workload={"poisson": {"rate": 0.1, "classes": [{"size": {"mean": mean}}]}})
        return [job.at for job in islice(asked.plan.arrivals(seed), 5)]

    assert sizes(1, 1.0) == pytest.approx(sizes(1, 2.0))
    assert times(1, 1.0) == times(1, 2.0)
    assert sizes(1, 1.0) != sizes(2, 1.0)


@pytest.mark.parametrize("name", ["t.trace", "t.trace.gz"])
def test_a_trace_is_read(name: str, tmp_path: Path) -> None:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt") as file:
        file.write(TRACE)
    plan = Jobtrace(name, cut_off=5.0, stretch=2.0).plan({}, tmp_path)
    assert [(job.at, job.work_class.name, job.sizes) for job in plan.arrivals(0)] == [
        (0.0, "short", (1.0, 2.0)),
        (3.0, "long", (9.0,)),
        (3.0, "short", (1.0, 1.0, 1.0)),
    ]
    assert (plan.tasks, plan.tasks_a_second) == (6, 2.0)
    assert {kind.name: mean for kind, mean in plan.mean_sizes.items()} == {"short": 1.2, "long": 9.0}
    assert Jobtrace(name, most_jobs=1).plan({}, tmp_path).tasks == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1 1 1\n0 2 1 1\n", "line 2: has 2 tasks but 1 durations"),
        ("5 1 1 1\n4 1 1 1\n", "line 2: submitted before the job above"),
        ("0 1 1\n", "line 1: a job needs"),
        ("0 1 1 x\n", "line 1: could not convert"),
        ("0 1 1 0\n", "line 1: submit times must be 0 or more, and durations above 0"),
        ("0 1 1 inf\n", "line 1: submit times must be 0 or more"),
        ("\n", "contains no job"),
    ],
)
def test_an_invalid_trace_is_refused_with_the_line_number(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(SettingsError) as refused:
        Jobtrace("t").plan({}, tmp_path)
    assert words in str(refused.value)


def test_quantiles_of_a_histogram_are_those_of_the_sample() -> None:
    sample = np.random.default_rng(1).lognormal(0, 3, 20_001)
    histogram = Histogram()
    for value in sample.tolist():
        histogram.add(value)
    histogram.aggregate()
    for share in (0.01, 0.5, 0.9, 0.99, 0.999):
        assert histogram.quantile(share) == pytest.approx(float(np.quantile(sample, share)), rel=0.01)
    assert histogram.mean == pytest.approx(sample.mean())
    assert histogram.largest == sample.max()
    assert len(histogram.buckets) < 8000


def test_histograms_can_be_merged() -> None:
    one, other, both = Histogram(), Histogram(), Histogram()
    for at in range(1, 100):
        (one if at % 3 else other).add(at)
        both.add(at)
    for each in (one, other, both):
        each.aggregate()
    one.merge(other)
    assert (one.buckets, one.count, one.total, one.largest) == (
        both.buckets,
        both.count,
        both.total,
        both.largest,
    )


def test_it_does_not_matter_when_a_histogram_is_aggregated() -> None:
    often, once = Histogram(), Histogram()
    sample = [0.0, *np.random.default_rng(2).exponential(1.0, 5000).tolist(), 1.0]
    for at, value in enumerate(sample):
        often.add(value)
        once.add(value)
        if at % 7 == 0:
            often.aggregate()
    for each in (often, once):
        each.aggregate()
    assert (often.buckets, often.total, often.largest) == (once.buckets, once.total, once.largest)
    assert (once.total, once.count, once.buckets[ZERO_BUCKET]) == (reduce(add, sample), len(sample), 1)
