"""The experiment on real nodes without nodes: plan, observations, report, tables and picture."""

import json
import math

import msgspec
import pytest
from rich.console import Console

from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.real import experiment
from eclectus_e2e.demo.real.objects import node_probe, work_pod
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import Plan
from eclectus_e2e.demo.real.plots import draw
from eclectus_e2e.demo.real.report import make_report
from eclectus_e2e.demo.real.tables import tables
from eclectus_e2e.demo.speeds import LearnedRate

PLAN = Plan()


def reading(at, quotas, samples=5, **wrong):
    """Rates in proportion to quotas, some wrong by a factor; these by node name without dash."""
    rates = [
        LearnedRate(node, "unit", 0.07 * quota * wrong.get(node.replace("-", ""), 1.0), samples)
        for node, quota in quotas.items()
    ]
    return RatesAt(at, rates)


def stream(began, *seconds):
    """Pods with these response times, on the fastest node but for the last."""
    one = Stream(began, len(seconds))
    for number, took in enumerate(seconds):
        one.sent[str(number)] = began + number
        node = "real-2" if number == len(seconds) - 1 else "real-3"
        assert one.observe(str(number), node, "Succeeded", began + number + took)
    return one


def observations():
    """All is learned after 30 s, and again 20 s after the change at 200 s."""
    readings = [reading(30.0, PLAN.quotas), reading(220.0, PLAN.changed, real2=1.2)]
    intervals = [
        QuotaInterval(
            quotas,
            since,
            seen,
            {"eclectus": stream(50.0, 2.0, 6.0), "kube-scheduler": stream(99.0, 8.0, 8.0)},
        )
        for quotas, since, seen in zip((PLAN.quotas, PLAN.changed), (0.0, 200.0), readings, strict=True)
    ]
    return Observations(readings, intervals)


def test_quotas_are_swapped_by_a_factor_of_four():
    assert sorted(PLAN.changed.values()) == sorted(PLAN.quotas.values())
    shifts = sorted(PLAN.changed[name] / quota for name, quota in PLAN.quotas.items())
    assert shifts == pytest.approx([0.25, 0.25, 4.0, 4.0])


def test_arrivals_depend_on_the_seed_and_their_rate_on_the_load():
    arrivals = Plan(seconds=10_000.0).arrivals(2.0)
    assert arrivals == Plan(seconds=10_000.0).arrivals(2.0) != Plan(seed=2, seconds=10_000.0).arrivals(2.0)
    assert len(arrivals) == pytest.approx(10_000, rel=0.05)
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] < 10_000.0


@pytest.mark.parametrize(
    ("last", "learned"),
    [
        (reading(10.0, PLAN.quotas), True),
        (reading(10.0, PLAN.quotas, real2=1.3), True),
        (reading(10.0, PLAN.quotas, real2=1.4), False),
        (reading(10.0, PLAN.quotas, samples=2), False),
        (reading(4.0, PLAN.quotas), False),
        (RatesAt(10.0, reading(10.0, PLAN.quotas).rates[1:]), False),
    ],
    ids=["right", "nearly right", "one wrong", "few samples", "from before", "one unknown"],
)
def test_learned_is_when_every_node_is_within_a_third(last, learned):
    interval = QuotaInterval(PLAN.quotas, since=5.0)
    assert interval.check_learned([last]) == learned
    assert interval.learned is (last if learned else None)


def test_the_first_reading_that_is_learned_is_kept():
    interval, first = QuotaInterval(PLAN.quotas, since=0.0), reading(10.0, PLAN.quotas)
    assert interval.check_learned([first])
    assert interval.check_learned([first, reading(20.0, PLAN.changed)])
    assert interval.learned is first


def test_a_pods_end_is_recorded_once():
    one = Stream(0.0, 2)
    assert not one.observe("a", "n", "Running", 1.0)
    assert one.observe("a", "n", "Failed", 2.0)
    assert not one.observe("a", "n", "Failed", 3.0)
    assert (one.ended, one.failed) == ({"a": ("n", 2.0)}, {"a"})


def test_the_report_has_what_was_learned_and_response_times():
    found = make_report(PLAN, observations())
    assert (found.first.learned_seconds, found.again.learned_seconds) == (30.0, 20.0)
    assert all(abs(one.off) < 1e-9 for one in found.first.nodes)
    assert max(one.off for one in found.again.nodes) == pytest.approx(0.2)
    ours = found.first.schedulers["eclectus"]
    assert (ours.pods, ours.lost, ours.failed) == (2, 0, 0)
    assert (ours.response_seconds.mean, ours.response_seconds.p50) == (4.0, 4.0)
    assert ours.by_node == {"real-1": 0, "real-2": 1, "real-3": 1, "real-4": 0}
    assert found.first.mean_ratio == found.again.mean_ratio == pytest.approx(0.5)
    assert found.sound


def test_the_report_has_quotas_never_learned_and_pods_that_never_ended():
    seen = observations()
    seen.intervals[1].learned = None
    seen.intervals[1].streams["kube-scheduler"].ended.clear()
    found = make_report(PLAN, seen)
    assert found.again.learned_seconds is None
    assert found.again.schedulers["kube-scheduler"].lost == 2
    assert math.isnan(found.again.mean_ratio)
    assert not found.sound


def test_learning_is_predicted_by_the_pace_of_the_node_that_had_the_quota_before():
    """Five samples for an alarm, and the probe under way: six of the slowest node's, of ten seconds each."""
    seen = observations()
    seen.readings = [
        RatesAt(
            at,
            [
                LearnedRate(node, "unit", quota, int(at / 10 * (1 + quota)))
                for node, quota in PLAN.quotas.items()
            ],
        )
        for at in (10.0, 20.0, 30.0)
    ]
    seen.intervals[0].learned = seen.readings[-1]
    assert make_report(PLAN, seen).again.predicted_seconds == pytest.approx(60.0)
    assert make_report(PLAN, seen).first.predicted_seconds is None
    seen.intervals[0].learned = None
    assert make_report(PLAN, seen).again.predicted_seconds is None


def test_probes_during_a_stream_are_counted_with_the_pods_that_met_one():
    """Pods of 2 and 6 s from 50 s on: the second ran from 53 s, on a node on which a probe ran till then."""
    seen = observations()
    first = seen.intervals[0].streams["eclectus"]
    first.started.update({"0": 50.0, "1": 53.0})
    seen.observe_probe("long-gone", "real-2", "Running", 10.0)
    seen.observe_probe("long-gone", "real-2", "", 49.0)
    seen.observe_probe("beside", "real-2", "Pending", 49.0)
    seen.observe_probe("beside", "real-2", "Running", 49.5)
    seen.observe_probe("beside", "real-2", "Succeeded", 53.0)
    seen.observe_probe("beside", "real-2", "", 54.0)
    found = make_report(PLAN, seen).first.schedulers
    took = found["eclectus"].probes
    assert (took.ended, took.met.pods, took.unmet.pods) == (1, 1, 1)
    assert took.met.most_seconds == pytest.approx(2.0)  # it was sent at 51 s
    assert not took.delay_no_pod
    cores, fast, slow = 1.5, 0.8, 0.1
    left = cores * (57.0 - 50.0) - fast * 2.0 - slow * 4.0
    assert took.spare_share == pytest.approx(slow * 3.0 / left)
    assert found["kube-scheduler"].probes.ended == 0


def test_colocation_trials_compare_pods_with_and_without_a_probe():
    seen = observations()
    seen.colocated, seen.alone = stream(300.0, 3.0, 4.0, 9.0), stream(400.0, 2.0, 2.0, 8.0)
    seen.colocated.started |= {"0": 301.0, "1": 301.5, "2": 303.0}
    seen.alone.started |= {"0": 400.5, "1": 401.5, "2": 403.0}
    for name, node, began, until in (("met", "real-3", 290, 301.2), ("not", "real-2", 303, 304)):
        seen.observe_probe(name, node, "Running", began)
        seen.observe_probe(name, node, "", until)
    found = {one.node: one for one in make_report(PLAN, seen).colocation}
    beside, alone = found["real-3"].beside, found["real-3"].alone
    assert (beside.pods, beside.start_seconds, beside.start_most_seconds, beside.run_seconds) == (
        2,
        0.75,
        1.0,
        2.75,
    )
    assert (alone.pods, alone.start_seconds, alone.run_seconds) == (2, 0.5, 1.5)
    assert found["real-2"].beside is None, "its probe came after it"
    assert found["real-2"].alone.pods == 1
    assert (found["real-1"].beside, found["real-1"].alone) == (None, None)
    assert len(json.loads(msgspec.json.encode(make_report(PLAN, seen)))["colocation"]) == 4
    assert make_report(PLAN, seen).sound
    seen.alone.planned = 4
    assert not make_report(PLAN, seen).sound


def test_a_failed_pod_is_not_sound():
    seen = observations()
    seen.intervals[0].streams["eclectus"].failed.add("0")
    assert not make_report(PLAN, seen).sound


def test_tables_and_picture_are_made(tmp_path):
    seen = observations()
    seen.intervals[1].streams["kube-scheduler"].ended.clear()
    console = Console(width=140, record=True)
    for table in tables(make_report(PLAN, seen)):
        console.print(table)
    text = console.export_text()
    assert "within a third after 30 s" in text
    row = next(line for line in text.splitlines() if " real-3 " in line)
    assert row.split()[1:] == ["0.80", "0.80", "+0%", "5"]
    assert "0.50 of kube-scheduler's mean" in text
    draw(PLAN, seen, tmp_path / "real.png")
    assert (tmp_path / "real.png").read_bytes().startswith(b"\x89PNG")


def test_probes_have_the_work_of_the_pods():
    (klass,) = node_probe("demo", "unit", 15)["spec"]["classes"]
    pod = work_pod("a", "eclectus", "2", 15)
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"]["eclectus.dev/class"] == klass["name"]
    assert container["args"] == [klass["unit"]["kind"], "--units", str(klass["unit"]["units"])]


def test_a_machine_that_lacks_something_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(experiment.requirements, "unmet_requirement", lambda: "real nodes need root")
    with pytest.raises(experiment.MachineError, match="real nodes need root"):
        demo(["real"])
