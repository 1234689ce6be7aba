"""The experiment on real nodes without nodes: plan, observations, report, tables and picture."""

import json
import math

import msgspec
import pytest
from rich.console import Console

from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.real import experiment
from eclectus_e2e.demo.real.experiment import draw, tables
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import Plan, node_probe, real_plan, work_pod
from eclectus_e2e.demo.real.report import make_report, trial_name
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
            [
                {"eclectus": stream(50.0, 2.0, 6.0), "kube-scheduler": stream(70.0, 8.0, 8.0)},
                {"kube-scheduler": stream(90.0, 4.0, 4.0), "eclectus": stream(110.0, 1.0, 3.0)},
            ],
        )
        for quotas, since, seen in zip((PLAN.quotas, PLAN.changed), (0.0, 200.0), readings, strict=True)
    ]
    return Observations(readings, intervals)


def test_quotas_are_swapped_by_a_factor_of_four():
    assert sorted(PLAN.changed.values()) == sorted(PLAN.quotas.values())
    shifts = sorted(PLAN.changed[name] / quota for name, quota in PLAN.quotas.items())
    assert shifts == pytest.approx([0.25, 0.25, 4.0, 4.0])


def test_arrivals_depend_on_seed_and_pair_and_their_rate_on_the_load():
    plan = Plan(pods=10_000)
    arrivals = plan.arrivals(2.0, pair=0)
    assert arrivals == plan.arrivals(2.0, pair=0)
    assert arrivals != plan.arrivals(2.0, pair=1)
    assert arrivals != Plan(seed=2, pods=10_000).arrivals(2.0, pair=0)
    assert len(arrivals) == 10_000
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == pytest.approx(10_000.0, rel=0.05)


def test_the_plan_says_how_long_it_takes():
    assert "about 60 min" in str(real_plan(1))
    text = str(real_plan(1, 5))
    assert "60 pods go to each of eclectus, kube-scheduler, 5 times" in text
    quick = real_plan(1, 1, quick=True)
    assert quick.run_seconds < 12 * 60
    assert "10 pods go to each of eclectus, kube-scheduler, once" in str(quick)


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
    assert (ours.pods, ours.lost, ours.failed) == (4, 0, 0)
    assert (ours.response_seconds.mean, ours.response_seconds.p50) == (3.0, 2.5)
    assert ours.by_node == {"real-1": 0, "real-2": 2, "real-3": 2, "real-4": 0}
    assert found.sound


def test_ratios_are_of_pairs_and_have_an_interval():
    found = make_report(PLAN, observations())
    assert [(pair.first, pair.mean) for pair in found.first.pairs] == [
        ("eclectus", 0.5),
        ("kube-scheduler", 0.5),
    ]
    assert found.first.mean_ratio.text() == found.again.mean_ratio.text() == "0.50 (0.50 to 0.50)"
    seen = observations()
    seen.intervals[0].pairs[1]["eclectus"] = stream(110.0, 3.0, 5.0)
    ratio = make_report(PLAN, seen).first.mean_ratio
    assert ratio.pairs == 2
    assert ratio.mean == pytest.approx(math.sqrt(0.5))
    assert ratio.low < 0.5
    assert ratio.high > 1.0
    del seen.intervals[0].pairs[1]
    alone = make_report(PLAN, seen).first.mean_ratio
    assert (alone.mean, alone.low, alone.high) == (pytest.approx(0.5), None, None)


def test_the_report_has_quotas_never_learned_and_pods_that_never_ended():
    seen = observations()
    seen.intervals[1].learned = None
    seen.intervals[1].pairs[0]["kube-scheduler"].ended.clear()
    found = make_report(PLAN, seen)
    assert found.again.learned_seconds is None
    assert found.again.schedulers["kube-scheduler"].lost == 2
    assert math.isnan(found.again.pairs[0].mean)
    assert (found.again.mean_ratio.mean, found.again.mean_ratio.pairs) == (pytest.approx(0.5), 1)
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
    first = seen.intervals[0].pairs[0]["eclectus"]
    first.started.update({"0": 50.0, "1": 53.0})
    seen.observe_probe("long-gone", "real-2", "Running", 10.0)
    seen.observe_probe("long-gone", "real-2", "", 49.0)
    seen.observe_probe("beside", "real-2", "Pending", 49.0)
    seen.observe_probe("beside", "real-2", "Running", 49.5)
    seen.observe_probe("beside", "real-2", "Succeeded", 53.0)
    seen.observe_probe("beside", "real-2", "", 54.0)
    found = make_report(PLAN, seen).first.schedulers
    took, none = found["eclectus"].probes
    assert none.ended == 0
    assert (took.ended, took.met.pods, took.unmet.pods) == (1, 1, 1)
    assert took.met.most_seconds == pytest.approx(2.0)  # it was sent at 51 s
    assert not took.delay_no_pod
    cores, fast, slow = 1.5, 0.8, 0.1
    left = cores * (57.0 - 50.0) - fast * 2.0 - slow * 4.0
    assert took.spare_share == pytest.approx(slow * 3.0 / left)
    assert [one.ended for one in found["kube-scheduler"].probes] == [0, 0]


def trial(seen, node, number, start, run, *, is_probed):
    """A pod of a co-location trial that was sent at 1,000 s and started and ended after so many seconds."""
    one = seen.colocated if is_probed else seen.alone
    name = trial_name(node, number, is_probed=is_probed)
    one.planned += 1
    one.sent[name] = 1000.0
    one.observe(name, node, "Running", 1000.0 + start)
    one.observe(name, node, "Succeeded", 1000.0 + start + run)


def test_colocation_trials_compare_the_pods_of_each_pair():
    seen = observations()
    seen.observe_probe("met", "real-3", "Running", 990.0)
    for number, (beside, alone) in enumerate([((0.75, 2.5), (0.5, 1.5)), ((1.25, 3.5), (0.5, 1.5))]):
        trial(seen, "real-3", number, *beside, is_probed=True)
        trial(seen, "real-3", number, *alone, is_probed=False)
    trial(seen, "real-2", 0, 9.0, 9.0, is_probed=True)  # no probe ran there
    trial(seen, "real-2", 0, 0.5, 4.0, is_probed=False)
    report = make_report(PLAN, seen)
    found = {one.node: one for one in report.colocation}
    beside, alone = found["real-3"].beside, found["real-3"].alone
    assert (beside.pods, beside.start_seconds, beside.start_most_seconds, beside.run_seconds) == (
        2,
        1.0,
        1.25,
        3.0,
    )
    assert (alone.pods, alone.start_seconds, alone.run_seconds) == (2, 0.5, 1.5)
    later = found["real-3"].start_difference_seconds
    assert (later.mean, later.pairs) == (0.5, 2)
    assert later.low < 0.25
    assert later.high > 0.75
    assert found["real-2"].beside is None, "no probe ran beside it"
    assert found["real-2"].alone.pods == 1
    assert found["real-2"].run_difference_seconds.pairs == 0
    assert (found["real-1"].beside, found["real-1"].alone) == (None, None)
    assert report.colocation_ratio.mean == pytest.approx(math.sqrt(3.25 / 2.0 * 4.75 / 2.0))
    assert len(json.loads(msgspec.json.encode(report))["colocation"]) == 4
    assert report.sound
    seen.alone.planned += 1
    assert not make_report(PLAN, seen).sound


def test_a_failed_pod_is_not_sound():
    seen = observations()
    seen.intervals[0].pairs[0]["eclectus"].failed.add("0")
    assert not make_report(PLAN, seen).sound


def test_tables_and_picture_are_made(tmp_path):
    seen = observations()
    seen.intervals[1].pairs[0]["kube-scheduler"].ended.clear()
    report, console = make_report(PLAN, seen), Console(width=140, record=True)
    for table in tables(report):
        console.print(table)
    text = console.export_text()
    assert "within a third after 30 s" in text
    row = next(line for line in text.splitlines() if " real-3 " in line)
    assert row.split()[1:] == ["0.80", "0.80", "+0%", "5"]
    row = next(line for line in text.splitlines() if line.split()[:1] == ["mean"])
    assert row.split() == ["mean", "0.50", "0.50", "0.50", "(0.50", "to", "0.50)", "0.80", "met"]
    assert "pair 2, kube-scheduler first" in text
    draw(PLAN, seen, report, tmp_path / "real.png")
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
