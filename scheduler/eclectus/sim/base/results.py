"""What a simulation tells: documented values, the same that `--json` writes.

All times are seconds of simulated time. `docs/simulation.schema.json` is this file as a JSON schema.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

FORMAT: Final = 1
QUANTILES = (0.5, 0.9, 0.99, 0.999)

Share = Annotated[float, Meta(ge=0)]


class Times(Struct, frozen=True):
    """A sample of times: exact count, mean and extreme; quantiles within a quarter of a per cent."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    largest: float
    buckets: dict[int, int]  # bucket -> count; bucket b holds times from 1.005**b to 1.005**(b+1) s


class Group(Struct, frozen=True):
    """The measured tasks and jobs of one group."""

    response: Times  # arrival to end, of tasks
    wait: Times  # arrival to start, of tasks
    jobs: Times  # arrival to the end of a job's last task
    slowdown: float  # mean of a task's response over its size


class Point(Struct, frozen=True, array_like=True):
    """One stretch of a run, from the point before to `at`; means over it."""

    at: float
    in_system: float
    waiting: float
    utilisation: float


class Cell(Struct, frozen=True):
    """One learned speed beside the truth, when the measured window closed."""

    node: str
    group: str  # of machines
    workload: str
    samples: int
    learned: float  # tasks a second in one slot
    true: float  # tasks a second in one slot: speed over mean size


class Lesson(Struct, frozen=True, array_like=True):
    """What was known of a group of machines at a moment: learned over true rates, brought to one scale."""

    at: float
    group: str
    cells: int  # pairs of a machine and a workload of which anything was known
    ratio: float  # geometric mean; 1 is right
    error: Share  # mean of |ratio - 1|


class Run(Struct, frozen=True):
    """One profile, one seed."""

    profile: str
    seed: int
    complete: bool  # False: stopped before its end; what had ended by then is told
    tasks: int  # arrived, measured or not
    seconds: float  # of simulated time
    response: Times  # of all groups
    wait: Times
    jobs: Times
    slowdown: float
    groups: dict[str, dict[str, Group]]  # by what they are told apart -> group
    measured_from: float  # the window, seconds
    measured_until: float
    in_system_mean: float  # over the measured window
    waiting_most: int
    dropped: int  # went away before they had started
    allocation: dict[int, float]  # asked for so far, % of what there is -> held, %; where nothing ever ends
    utilisation: Share  # slots in use over slots, mean over the window; tasks over nodes where slots vary
    growth: float  # slope of the number in system over the window, tasks a second
    series: list[Point]  # of the whole run
    learned: list[Cell]  # when the window closed
    lessons: list[Lesson]  # over the whole run
    steps: int  # of the engine
    faults: int  # of a policy that asked for what must not be
    first_fault: str
    probes: int = 0  # benchmark probes that have run to their end
    probes_killed: int = 0  # and those that had to make way for tasks
    probe_share: Share = 0.0  # slots that probes used over slots, mean until nothing more arrived


class Failure(Struct, frozen=True):
    """A run that came to no end, and why."""

    profile: str
    seed: int
    why: str
    traceback: str = ""  # of a defect


class Interval(Struct, frozen=True):
    """A mean over runs and half the width of its Student 95 % interval; null for a single run."""

    mean: float
    half_width: float | None


class Spread(Struct, frozen=True):
    """How times are spread, over runs."""

    mean: Interval
    p50: Interval
    p90: Interval
    p99: Interval


class Figures(Struct, frozen=True):
    """Measured tasks and jobs over runs; null where none has ended."""

    response: Spread | None
    wait: Spread | None
    jobs: Spread | None
    slowdown: Interval | None


class Summary(Struct, frozen=True):
    """One profile over its runs."""

    profile: str
    runs: int
    all: Figures
    groups: dict[str, dict[str, Figures]]  # as in the runs
    in_system_mean: Interval
    utilisation: Interval
    dropped: Interval
    allocation: dict[int, Interval]  # as in the runs, at every whole per cent; empty where tasks end
    probe_share: Interval | None = None  # null where no probes were sent


class Report(Struct, frozen=True):
    """A whole comparison."""

    eclectus: str
    scenario: str
    about: str
    load: float | None  # None where there is no steady rate
    load_is_exact: bool
    seeds: list[int]
    summaries: list[Summary]
    runs: list[Run]
    failures: list[Failure] = []
    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)] = FORMAT

    @property
    def profiles(self) -> list[str]:
        """Their names."""
        return [each.profile for each in self.summaries]

    def counted(self) -> list[list[Run]]:
        """The runs that each summary is made of: those that are complete, if any is."""
        found = []
        for each in self.summaries:
            runs = [run for run in self.runs if run.profile == each.profile]
            found.append([run for run in runs if run.complete] or runs)
        return found

    @property
    def fills(self) -> bool:
        """Whether nothing ever ends, so that there are no times to tell, but what is held."""
        return all(each.allocation for each in self.summaries)
