"""The results of simulations have the form that `--json` writes, and are divided into groups.

All times are in seconds of simulated time. `docs/simulation.schema.json` is the JSON schema of these types.
No scheduler sees the labels of groups, which jobs and tasks get on arrival. A job's length is judged by its
true task sizes and not by the estimates shown to the scheduler, so that policies with different cut-offs, or
none, are compared on the same jobs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final

from msgspec import Meta, Struct

from eclectus.model.learned import NodeState
from eclectus.model.objects import Spec, Term
from eclectus.sim.base.work import Arrival, WorkClass

DIMENSIONS = ("class", "length", "constrained", "set")
CROSS = "+"  # `length+constrained`: every pair of labels is a group

Labels = tuple[str | None, ...]
"""One label for each dimension, in order; None where the tasks of a job differ."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The requested groupings, each of one dimension or several crossed, and the cut-off for length."""

    requested: tuple[str, ...] = ()
    cut_off: float = 0.0  # seconds at speed 1: a job is short if the mean size of its tasks is below
    dimensions: tuple[str, ...] = field(init=False)  # those that any requested grouping needs

    def __post_init__(self) -> None:
        needed = {dimension for name in self.requested for dimension in dimensions_of(name)}
        object.__setattr__(self, "dimensions", tuple(each for each in DIMENSIONS if each in needed))

    def length(self, job: Arrival) -> str:
        """`short` or `long`, the same for all tasks of the job; empty if no grouping needs it."""
        if "length" not in self.dimensions:
            return ""
        return "short" if sum(job.sizes) < self.cut_off * len(job.sizes) else "long"

    def labels(self, work_class: WorkClass, length: str) -> Labels:
        """The labels of a task."""
        return tuple([_label(dimension, work_class, length) for dimension in self.dimensions])

    def job_labels(self, job: Arrival, length: str) -> Labels:
        """The labels of a whole job."""
        if job.dag is None:
            return self.labels(job.work_class, length)
        by_stage = {self.labels(stage.work_class, length) for stage in job.dag.stages}
        by_dimension = map(set, zip(*by_stage, strict=True))
        return tuple(found.pop() if len(found) == 1 else None for found in by_dimension)

    def group_of(self, name: str, labels: Labels) -> str | None:
        """The group of the grouping `name` that has these labels, such as `short, free`; None if in none."""
        by_dimension = dict(zip(self.dimensions, labels, strict=True))
        chosen = [by_dimension[dimension] for dimension in dimensions_of(name)]
        return None if None in chosen else ", ".join(label for label in chosen if label is not None)


def dimensions_of(name: str) -> list[str]:
    """The dimensions that a grouping crosses."""
    return name.split(CROSS)


def sorted_groups(groups: Iterable[str]) -> list[str]:
    """Short before long, free before preferring before constrained, classes and sets by name."""
    return sorted(groups, key=lambda group: [_RANK.get(label, label) for label in group.split(", ")])


_RANK = {"short": "0", "long": "1", "free": "0", "preferring": "1", "constrained": "2"}


def _label(dimension: str, work_class: WorkClass, length: str) -> str:
    if dimension == "class":
        return work_class.name
    if dimension == "length":
        return length
    constraints = "+".join(_hard_constraints(work_class.spec))
    if not constraints:
        return "preferring" if work_class.spec.preferences else "free"
    return constraints if dimension == "set" else "constrained"


def _hard_constraints(spec: Spec) -> Iterator[str]:
    """What keeps the pod off some nodes, or lets it onto tainted ones, one text for each constraint."""
    yield from (f"{key}={value}" for key, value in spec.node_selector)
    if spec.affinity is not None:
        yield " or ".join(map(_term, spec.affinity)) or "nowhere"
    yield from (f"tolerates {each.key or 'everything'}" for each in spec.tolerations)


def _term(term: Term) -> str:
    requirements = (*term.expressions, *term.fields)
    return " and ".join(f"{each.key} {each.op} {'|'.join(each.values)}".strip() for each in requirements)


NonNegative = Annotated[float, Meta(ge=0)]


class DagJob(Struct, frozen=True, array_like=True):
    """One measured job that has ended. Jobs with the same number are the same in all runs with one seed."""

    number: int
    name: str
    tasks: int
    arrived: float  # seconds
    response: NonNegative  # arrival to the end of its last stage, seconds
    alone: NonNegative  # what it would take on 1/N of the cluster; N: mean number of jobs while it was there

    @property
    def unfairness(self) -> float:
        """Response over the time that it would take alone: finish-time fairness, as in Themis (NSDI 2020)."""
        return self.response / self.alone if self.alone else 1.0


class DagResult(Struct, frozen=True):
    """The jobs with stages of one run.

    A share is the largest share of a resource of the whole cluster that a job's tasks hold. A job is
    entitled to 1/N of the cluster, N being the number of jobs at that moment. One share-second is the whole
    cluster for a second.
    """

    jobs: list[DagJob]  # in the order of their ends
    fairness: float | None  # Jain's index of received over entitled share, mean over windows; null: no window
    fairness_least: float | None  # of all windows
    windows: int  # in which at least two jobs had tasks waiting all the time
    below_share: NonNegative  # share-seconds below what waiting jobs were entitled to
    above_share: NonNegative  # share-seconds above what jobs were entitled to
    lost: int  # attempts of tasks that failed, or were lost with their machine
    slips: int  # how often deadlines of plans were moved to a later time
    slip_seconds: NonNegative  # by how much in all, over jobs


class DagComparison(Struct, frozen=True):
    """The jobs with stages of one run beside the same jobs in another run with the same seed.

    The factor of a job is its response in the other run over its response here: above 1 it is faster here.
    """

    factor: NonNegative  # ratio of the mean responses
    p25: NonNegative  # of the factors of jobs
    p50: NonNegative
    p75: NonNegative
    p95: NonNegative
    worst: NonNegative
    losers: NonNegative  # share of the jobs with a factor below 0.8
    makespan: NonNegative  # end of the last job here over that there


FORMAT: Final = 1


class Times(Struct, frozen=True):
    """A sample of times: exact count, mean and maximum; quantiles within 0.25 %."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    largest: float
    buckets: dict[int, int]  # bucket -> count; bucket b holds times from 1.005**b to 1.005**(b+1) s


class GroupResult(Struct, frozen=True):
    """The measured tasks and jobs of one group."""

    response: Times  # arrival to end, of tasks
    wait: Times  # arrival to start, of tasks
    jobs: Times  # arrival to the end of a job's last task
    slowdown: float  # mean of response over size
    met: NonNegative | None = None  # mean share of preferences that nodes met; null if no task had any


class PoolResult(Struct, frozen=True):
    """What one pool got. Parts are of the whole cluster, means over samples of the measured window."""

    resource: str  # of which it was entitled to the largest part: the one of the three parts
    share: NonNegative  # what it was entitled to
    held: NonNegative
    off: NonNegative  # how far held was from that, either way
    wait: Times  # arrival to start, of measured pods
    first_arrival: float | None  # of a pod in the whole run, seconds; null: none came
    first_start: float | None


class PoolsResult(Struct, frozen=True):
    """The pools of one run, by path from the root."""

    pools: dict[str, PoolResult]
    fairness: float | None  # Jain's index of held over entitled, mean over windows; null: no window
    fairness_least: float | None  # of all windows
    windows: int  # of 60 s in which at least two pools without children had pods waiting all the time


class CopiesResult(Struct, frozen=True):
    """Copies of stragglers in the whole run."""

    stragglers: int  # attempts that were drawn as such, copies included
    marked: int  # pods that the scheduler has marked as late
    started: int  # copies that have run
    won: int
    lost: int
    lost_copy_seconds: NonNegative  # for which copies have run that lost, or were withdrawn
    lost_original_seconds: NonNegative  # for which what copies have beaten has run
    busy_seconds: NonNegative  # of all slots


class SeriesPoint(Struct, frozen=True, array_like=True):
    """Means over one interval of a run, from the previous point to `at`."""

    at: float
    in_system: float
    waiting: float
    utilisation: float


class LearnedSpeed(Struct, frozen=True):
    """A learned speed and the true one at the end of the measured window."""

    node: str
    group: str  # machine group
    workload: str
    samples: int
    learned: float  # tasks per second in one slot
    true: float  # tasks per second in one slot: speed over mean size
    state: NodeState = "live"  # of the node, as is believed


class LearningError(Struct, frozen=True, array_like=True):
    """Learned over true rates of a machine group at one time, scaled to a geometric mean of 1 over all."""

    at: float
    group: str
    pairs: int  # pairs of machine and class with a learned rate
    ratio: float  # geometric mean over the group; 1 is correct
    error: NonNegative  # mean of |ratio - 1|


class RunResult(Struct, frozen=True):
    """The result of one run: one profile with one seed."""

    profile: str
    seed: int
    complete: bool  # False: stopped early; results cover the tasks that had ended
    tasks: int  # that arrived, measured or not
    seconds: float  # simulated time until the end of the run
    response: Times  # of all groups
    wait: Times
    jobs: Times
    slowdown: float
    groups: dict[str, dict[str, GroupResult]]  # grouping -> group -> its results
    measured_from: float  # start of the measured window, seconds
    measured_until: float
    in_system_mean: float  # over the measured window
    waiting_most: int
    evictions: int  # of running tasks, to make room for others
    dropped: int  # withdrawn before they had started
    allocation: dict[int, float]  # requested so far, % of capacity -> allocated, %; for tasks that never end
    utilisation: NonNegative  # mean slots in use over slots; running tasks over nodes if classes are unknown
    growth: float  # slope of the number in the system over the window, tasks per second
    series: list[SeriesPoint]  # over the whole run
    learned: list[LearnedSpeed]  # at the end of the window
    learning_errors: list[LearningError]  # over the whole run
    steps: int  # engine steps
    faults: int  # invalid actions that policies returned
    first_fault: str
    probes: int = 0  # benchmark probes that completed
    probes_killed: int = 0  # benchmark probes that were killed to yield their room
    probe_share: NonNegative = 0.0  # slots used by probes over all slots, mean until the last arrival
    met: NonNegative | None = None  # mean share of preferences that nodes met; null if no task had any
    dags: DagResult | None = None  # of jobs with stages; null if there were none
    pools: PoolsResult | None = None  # null for a scenario without pools
    copies: CopiesResult | None = None  # null for a scenario without stragglers
    locality: NonNegative | None = None  # share of starts on nodes with the data; null without data
    across_gigabytes: NonNegative | None = None  # of data read from other racks; null without racks


def counted_runs(runs: Iterable[RunResult]) -> dict[str, list[RunResult]]:
    """The runs that count, by profile: the complete ones, or all if none is complete."""
    by_profile: dict[str, list[RunResult]] = {}
    for run in runs:
        by_profile.setdefault(run.profile, []).append(run)
    return {name: [run for run in some if run.complete] or some for name, some in by_profile.items()}


class RunFailure(Struct, frozen=True):
    """A run that failed."""

    profile: str
    seed: int
    reason: str
    traceback: str = ""  # only if the cause is a defect


class Interval(Struct, frozen=True):
    """A mean over runs and half the width of its Student 95 % interval (null for a single run)."""

    mean: float
    half_width: float | None


class TimeStatistics(Struct, frozen=True):
    """Statistics of a time, each with its interval over runs."""

    mean: Interval
    p50: Interval
    p90: Interval
    p99: Interval


class Statistics(Struct, frozen=True):
    """Statistics of the measured tasks and jobs over runs; null if none has ended."""

    response: TimeStatistics | None
    wait: TimeStatistics | None
    jobs: TimeStatistics | None
    slowdown: Interval | None
    met: Interval | None = None  # share of preferences that nodes met; null if no task had any


class WorstGroup(Struct, frozen=True):
    """The group of a grouping with the largest mean slowdown over runs."""

    group: str
    slowdown: Interval


class DagSummary(Struct, frozen=True):
    """Jobs with stages of one profile. A factor is the response under the first profile over this one."""

    mean: Interval  # response, arrival to the end of the last stage
    p50: Interval
    p95: Interval
    end: Interval  # of the last job: the makespan if all arrive at 0
    fairness: Interval | None  # Jain's index, mean over windows
    unfairness: Interval  # response over the time alone on 1/N of the cluster, mean over jobs
    unfairness_p95: Interval
    below_share: Interval  # share-seconds
    above_share: Interval
    lost: Interval  # attempts of tasks
    slips: Interval
    slip_seconds: Interval
    factor: Interval | None  # ratio of the mean responses; null if no job ended in both runs
    factor_p50: Interval | None  # median of the factors of jobs
    losers: Interval | None  # share of the jobs with a factor below 0.8


class PoolSummary(Struct, frozen=True):
    """One pool under one profile, as in PoolResult."""

    share: Interval
    held: Interval
    off: Interval
    wait: TimeStatistics | None  # null if no measured pod has started
    first_wait: (
        Interval | None
    )  # from the first arrival to the first start, seconds; null if none has started


class PoolsSummary(Struct, frozen=True):
    """The pools under one profile, by path."""

    pools: dict[str, PoolSummary]
    fairness: Interval | None  # Jain's index, mean over windows
    fairness_least: Interval | None


class ProfileSummary(Struct, frozen=True):
    """The results of one profile over all its runs."""

    profile: str
    runs: int
    all: Statistics
    groups: dict[str, dict[str, Statistics]]  # grouping -> group -> its statistics
    in_system_mean: Interval
    utilisation: Interval
    dropped: Interval
    allocation: dict[int, Interval]  # at every whole per cent of requests; empty if tasks end
    worst: dict[str, WorstGroup] = {}  # grouping -> its worst group; none for a single group
    probe_share: Interval | None = None  # null if no probes were sent
    evictions: Interval | None = None  # of running tasks; null if there were none
    dags: DagSummary | None = None  # null without jobs with stages
    pools: PoolsSummary | None = None  # null without pools
    locality: Interval | None = None  # share of starts on nodes with the data; null without data
    across_gigabytes: Interval | None = None  # of data read from other racks; null without racks


class ComparisonReport(Struct, frozen=True):
    """The results of a comparison of profiles."""

    eclectus: str
    scenario: str
    about: str
    load: float | None  # null if there is no steady arrival rate
    load_is_exact: bool
    seeds: list[int]
    summaries: list[ProfileSummary]
    runs: list[RunResult]
    failures: list[RunFailure] = []
    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)] = FORMAT

    @property
    def profiles(self) -> list[str]:
        """The names of the profiles."""
        return [each.profile for each in self.summaries]

    def counted_runs(self) -> list[list[RunResult]]:
        """The runs behind each summary."""
        return [*counted_runs(self.runs).values()]

    @property
    def shows_allocation(self) -> bool:
        """Whether tasks never end, so that the result is the allocation curve and not response times."""
        return all(each.allocation for each in self.summaries)
