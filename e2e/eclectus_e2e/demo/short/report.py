"""What was won and what was lost, computed from the measurement. Pure."""

from collections.abc import Iterator, Sequence
from math import isfinite

import msgspec

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import Report, Run, make_report
from eclectus_e2e.demo.stream.summary import Summary, summarise
from eclectus_e2e.demo.workload.pods import pod_name

EQUAL_WITHIN = 0.05  # relative difference; chosen, not measured: noise of a single run is no win
WAIT = "mean wait before a pod runs"
BETTER, WORSE, EQUAL, UNKNOWN = "better", "worse", "equal", "not measured"


class Figure(msgspec.Struct, frozen=True):
    """One row of the table: the same figure of both schedulers."""

    name: str
    eclectus: float
    kube_scheduler: float
    lower_is_better: bool = True
    is_share: bool = False  # else seconds

    @property
    def ratio(self) -> float:
        """Eclectus' figure as a share of kube-scheduler's; NaN when there is none."""
        return self.eclectus / self.kube_scheduler if self.kube_scheduler else float("nan")

    @property
    def verdict(self) -> str:
        """What Eclectus is in this figure."""
        if not isfinite(self.ratio):
            return UNKNOWN
        if abs(self.ratio - 1) <= EQUAL_WITHIN:
            return EQUAL
        return BETTER if (self.ratio < 1) == self.lower_is_better else WORSE


class ShortReport(Report, frozen=True, kw_only=True):
    """The file build/demo/report.json: that of the stream experiment, with the table and the sentence."""

    changed_seconds: float  # when the speeds changed
    figures: list[Figure]
    sentence: str


def make_short_report(plan: StreamPlan, runs: Sequence[Run]) -> ShortReport:
    """The report of both runs."""
    found = make_report(
        runs, plan.nodes_at_end, seed=plan.seed, main_load=plan.main_load, capacity=plan.capacity
    )
    changed = plan.perturbation.at_seconds if plan.perturbation else float("inf")
    figures = list(_figures(found, {run.scheduler: run for run in runs}, changed))
    fields = {name: getattr(found, name) for name in Report.__struct_fields__}
    return ShortReport(**fields, changed_seconds=changed, figures=figures, sentence=sentence(figures))


def sentence(figures: Sequence[Figure]) -> str:
    """What was won and what was lost. The first figure decides which of them comes first."""
    first, others = figures[0], figures[1:]
    if first.verdict == UNKNOWN:
        return "Nothing was won or lost: no pod was timed."
    head = {BETTER: "Eclectus won", WORSE: "Eclectus lost", EQUAL: "Neither won"}[first.verdict]
    text = (
        f"{head}: {first.name} {first.eclectus:.2f} s, {first.ratio:.2f} of kube-scheduler's "
        f"{first.kube_scheduler:.2f} s (lower is better)"
    )
    for verdict in (WORSE, BETTER) if first.verdict == WORSE else (BETTER, WORSE):
        if names := [one.name for one in others if one.verdict == verdict]:
            also = " also" * (verdict == first.verdict)
            text += f"; {verdict}{also} in {', '.join(names)}"
    return text + "."


def _figures(report: Report, runs: dict[str, Run], changed: float) -> Iterator[Figure]:
    results = [report.schedulers[name] for name in (ECLECTUS, KUBE_SCHEDULER)]
    ours, theirs = (result.response_seconds for result in results)
    yield Figure("mean response time", ours.mean, theirs.mean)
    yield Figure("median response time", ours.p50, theirs.p50)
    yield Figure("95th percentile", ours.p95, theirs.p95)
    yield Figure("99th percentile", ours.p99, theirs.p99)
    parts = [_before_and_after(runs[name], changed) for name in (ECLECTUS, KUBE_SCHEDULER)]
    yield Figure("mean before the speeds change", parts[0][0].mean, parts[1][0].mean)
    yield Figure("mean after the speeds change", parts[0][1].mean, parts[1][1].mean)
    waits = [result.start_seconds.mean for result in results]
    yield Figure(WAIT, waits[0], waits[1])
    met = [result.preferences_met for result in results]
    if met[0] is not None and met[1] is not None:
        yield Figure("preferences met", met[0], met[1], lower_is_better=False, is_share=True)


def _before_and_after(run: Run, changed: float) -> tuple[Summary, Summary]:
    """Response times of the pods sent before the speeds changed, and of those sent after."""
    early = {pod_name(one) for one in run.arrivals if one.at_seconds < changed}
    timed = run.timed()
    return (
        summarise(run.response_seconds([entry for entry in timed if entry.name in early])),
        summarise(run.response_seconds([entry for entry in timed if entry.name not in early])),
    )
