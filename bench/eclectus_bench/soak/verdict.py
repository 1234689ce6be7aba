"""What a soak has shown, and whether it stays within the bounds. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np

from eclectus_bench.soak.scrape import BIND, UNTIL_BOUND, Steps, mean_seconds, step_percentile
from eclectus_bench.soak.sizes import Sizes, Span
from eclectus_e2e.pairs import ratio_interval

SCHEDULER, OPERATOR = "scheduler", "operator"
MEMORY_MIB = {SCHEDULER: 1024.0, OPERATOR: 256.0}  # the chart's limits
GROWTH_SHARE, GROWTH_MIB = 0.1, 16.0  # from the third quarter to the last; a leak of more is seen in an hour
# The chart's, by Lease: how long each lasts, and for how long a leader that could not renew it writes on.
LEASE_SECONDS = {"eclectus": 5.0, "eclectus-operator": 15.0}
RENEW_DEADLINE_SECONDS = {"eclectus": 3.5, "eclectus-operator": 10.0}
MORE_BESIDE_ATTACK = 1.5  # times as long other tenants' pods may wait
STEP_P99_SECONDS = (
    0.1  # what most pods wait for others is not noticed; beside an attack waits themselves count
)
STEP_SECONDS = 1.0  # for which no bind is sent: one in a hundred pods notices
GAUGE_SECONDS = 120.0  # for which a longest step is shown: that of start-up is no part of the soak
WAIT_SECONDS = 60.0  # an arriving pod fits on every node
MAX_ERRORS_SHOWN = 10


@dataclass(frozen=True)
class Reading:
    """One moment. `longest_step`: of the last one to two minutes; None without an answer within 2 s."""

    seconds: float  # since the soak began
    memory: Mapping[str, float]  # MiB by process
    longest_step: float | None  # seconds
    steps: Steps  # since the process began; empty without an answer
    bound: int  # arriving pods, since the soak began
    renewals: int  # of all Leases
    times: Mapping[str, float] = field(default_factory=dict)  # as Scrape.times; empty without an answer
    cpu: Mapping[str, float] = field(default_factory=dict)  # seconds by process, since each began


@dataclass(frozen=True)
class Waits:
    """Mean waits of arriving pods in a part of the soak, seconds: the whole, and two parts of it.

    The rest is the API server's and the bench's: to take the pod, to show it, and to show the bind.
    """

    whole: float
    undecided: float  # from the moment at which the scheduler saw the pod to its decision
    bind: float  # until the API server had answered


@dataclass(frozen=True)
class Attacked:
    """99th percentiles of the waits of other tenants' pods, seconds."""

    calm: float
    beside: float

    @property
    def ratio(self) -> float:
        """How many times as long they waited beside the attack; 0 without a pod in one of both."""
        return self.beside / self.calm if self.calm else 0.0


@dataclass(frozen=True)
class Soak:
    """All that was observed. Seconds, and MiB."""

    sizes: Sizes
    readings: Sequence[Reading]
    peaks: Mapping[str, float]  # of scheduler and operator
    renewals: Mapping[str, int]  # by Lease
    longest_gaps: Mapping[str, float]  # likewise
    waits: Sequence[float]  # of arriving pods, until their bind was seen
    unbound: Sequence[float]  # for how long others have waited at the end
    probes: Mapping[str, int]  # how many succeeded and failed
    sent: Sequence[float] = ()  # when each of the pods of `waits` was sent, since the soak began
    errors: Sequence[str] = ()  # one line each

    @property
    def longest_step(self) -> float:
        """The longest step, that of start-up left out where the soak lasts long enough."""
        late = [each for each in self.readings if each.seconds > GAUGE_SECONDS] or self.readings
        return max((each.longest_step or 0.0 for each in late), default=0.0)

    def step_p99(self, begin: float, end: float) -> float:
        """The 99th percentile of the steps in a part of the soak, seconds; 0 without any."""
        steps = [each.steps for each in self._read((begin, end)) if each.steps]
        return step_percentile(steps[0], steps[-1], 0.99) if steps else 0.0

    def mean_waits(self, spans: Sequence[Span]) -> Waits:
        """What pods that were sent in some parts of the soak waited for."""
        times = [[each.times for each in self._read(span) if each.times] for span in spans]
        ends = [(each[0], each[-1]) for each in times if each]
        until_bound, bind = (mean_seconds(name, ends) for name in (UNTIL_BOUND, BIND))
        waits = [wait for span in spans for wait in self._waits(*span)]
        return Waits(mean(waits or [0.0]), max(0.0, until_bound - bind), bind)

    def cores(self, spans: Sequence[Span]) -> dict[str, float]:
        """What each process used of the CPU in some parts of the soak, in cores."""
        ends = [(read[0], read[-1]) for span in spans if len(read := self._read(span)) > 1]
        seconds = sum(after.seconds - before.seconds for before, after in ends)
        names = dict.fromkeys(name for before, _ in ends for name in before.cpu)
        return {
            name: sum(after.cpu[name] - before.cpu[name] for before, after in ends) / seconds
            for name in names
        }

    def _read(self, span: Span) -> list[Reading]:
        return [each for each in self.readings if span[0] <= each.seconds <= span[1]]

    def _waits(self, begin: float, end: float) -> list[float]:
        sent = zip(self.waits, self.sent, strict=True)
        return [wait for wait, at in sent if begin <= at < end]

    def wait_p99(self, begin: float, end: float) -> float:
        """The 99th percentile of the waits of pods that were sent in a part of the soak; 0 without any."""
        waits = self._waits(begin, end)
        return float(np.percentile(waits, 99)) if waits else 0.0

    def attacked(self, *, served: bool) -> list[Attacked]:
        """What others waited for in each calm and beside the attack after it, in pairs' order."""
        return [
            Attacked(self.wait_p99(*each.calm), self.wait_p99(*each.attack))
            for each in self.sizes.attacks
            if each.served == served
        ]


@dataclass(frozen=True)
class Row:
    """One measure and the most that it may be."""

    what: str
    found: float
    most: float
    unit: str = ""

    @property
    def kept(self) -> bool:
        """Whether it is within the bound."""
        return self.found <= self.most


def rows(soak: Soak) -> list[Row]:
    """Every measure with its bound."""
    late = sum(wait > WAIT_SECONDS for wait in (*soak.waits, *soak.unbound))
    silent = sum(each.longest_step is None for each in soak.readings)
    quiet = soak.sizes.quiet_until
    return [
        *(_peak(soak, name) for name in MEMORY_MIB),
        *(_growth(soak, name) for name in MEMORY_MIB),
        Row("99th percentile of steps", soak.step_p99(0.0, quiet) * 1000, STEP_P99_SECONDS * 1000, "ms"),
        Row("longest step after start-up", soak.longest_step * 1000, STEP_SECONDS * 1000, "ms"),
        *(
            Row(f"longest time without a renewal of Lease {name}", gap, RENEW_DEADLINE_SECONDS[name], "s")
            for name, gap in sorted(soak.longest_gaps.items())
        ),
        Row(f"arriving pods that waited for more than {WAIT_SECONDS:g} s", late, 0),
        *(_beside_attack(soak) if soak.sizes.attackers else ()),
        Row("scrapes without an answer within 2 s", silent, 0),
        Row("errors", len(soak.errors), 0),
    ]


def verdict(soak: Soak) -> Iterator[str]:
    """The rows for people, and the first errors."""
    for row in rows(soak):
        found = f"{row.found:,.4g}{row.unit and ' ' + row.unit}"
        most = f"<= {row.most:,.4g}{row.unit and ' ' + row.unit}"
        yield f"{row.what:<58}{found:>12}  {most:<14}{'kept' if row.kept else 'EXCEEDED'}"
    yield from (f"  {error}" for error in soak.errors[:MAX_ERRORS_SHOWN])


def _beside_attack(soak: Soak) -> Iterator[Row]:
    """What an attacking tenant may cost the others through Eclectus.

    Where an attack that nobody serves makes them wait longer, that is API server's and etcd's doing.
    """
    served, unserved = (_times_as_long(soak, served=each) for each in (True, False))
    what = "times as long, 99th percentile of waits beside an attack"
    yield Row(what, served, MORE_BESIDE_ATTACK * max(1.0, unserved))
    for name, gap in sorted(soak.longest_gaps.items()):
        yield Row(f"the same of Lease {name}, half of its length", gap, LEASE_SECONDS[name] / 2, "s")


def _times_as_long(soak: Soak, *, served: bool) -> float:
    found = ratio_interval([each.ratio for each in soak.attacked(served=served)])
    return found.mean if found.pairs else 0.0


def _peak(soak: Soak, name: str) -> Row:
    return Row(f"peak memory of the {name}", soak.peaks[name], MEMORY_MIB[name], "MiB")


def _growth(soak: Soak, name: str) -> Row:
    """How much more memory it has in the last quarter than in the one before."""
    third, last = (mean(_memory(soak, name, quarter) or [0.0]) for quarter in (2, 3))
    what = f"growth of the {name} in the last quarter"
    return Row(what, last - third, GROWTH_SHARE * third + GROWTH_MIB, "MiB")


def _memory(soak: Soak, name: str, quarter: int) -> list[float]:
    of_time = 4 / soak.sizes.seconds
    return [each.memory[name] for each in soak.readings if min(int(each.seconds * of_time), 3) == quarter]
