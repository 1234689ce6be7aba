"""False alarms of the test for a change of speed, and how late it finds one (docs/results/rosella.md).

`python -m eclectus_bench.learner.alarms` draws tasks that overlap on nodes, and feeds the test of
maths/cusum.py in the order in which they end, once with the scores of ended tasks alone and once with what
running tasks have shown. It prints samples to a false alarm on equal nodes, and the time from a change of one
node to the alarm. Expected times are exact here; the learner's are estimates. It takes some minutes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from eclectus.maths import numbers
from eclectus.maths.cusum import AT_REST, changed_since, shown, step
from eclectus.maths.estimators.ratio import Spread

SLACK, THRESHOLD = 0.5, 6.0  # the learner's defaults
NODES, END, CHANGE_AT = 30, 60.0, 20.0  # times in mean times of a task
SEEDS = range(40)  # of each case
NEVER = END - CHANGE_AT  # counts as the time to an alarm that did not come

Size = Callable[[Random], float]
SIZES: dict[str, Size] = {
    "exponential": lambda rng: rng.expovariate(1.0),
    "gamma, shape 4": lambda rng: rng.gammavariate(4.0, 0.25),
    "log-normal, sd 0.3": lambda rng: rng.lognormvariate(-0.045, 0.3),
}


@dataclass(frozen=True, order=True)
class Event:
    """A task starts or, with `has_ended`, ends."""

    at: float
    has_ended: bool
    node: int
    task: int
    began: float


# -- when tasks start on a node ----------------------------------------------------------------------


def _one_by_one(rng: Random) -> Iterator[float]:
    """Three run at a time on average."""
    at = rng.expovariate(3.0)
    while at < END:
        yield at
        at += rng.expovariate(3.0)


def _bursts(rng: Random) -> Iterator[float]:
    """Eight a mean time for three mean times, then a pause of ten on average."""
    at = rng.uniform(0.0, 10.0)
    while at < END:
        until = at + 3.0
        while at < until:
            yield at
            at += rng.expovariate(8.0)
        at += rng.expovariate(0.1)


def _batches(rng: Random) -> Iterator[float]:
    """Fifteen at once, every eight mean times on average."""
    at = rng.uniform(0.0, 5.0)
    while at < END:
        yield from [at] * 15
        at += rng.expovariate(0.125)


STARTS = {"one by one": _one_by_one, "bursts": _bursts, "batches of 15": _batches}


def events(starts: str, size: Size, nodes: int, seed: int, factor: float = 1.0) -> list[Event]:
    """All events; from CHANGE_AT on, node 0 works `factor` times as fast."""
    rng, found = Random(seed), []
    for node in range(nodes):
        for task, began in enumerate(STARTS[starts](rng)):
            ends = _end(began, size(rng), factor if node == 0 else 1.0)
            found += [Event(began, False, node, task, began), Event(ends, True, node, task, began)]
    return sorted(each for each in found if each.at < END)


def _end(began: float, work: float, factor: float) -> float:
    before = min(work, max(0.0, CHANGE_AT - began))
    return began + before + (work - before) / factor


# -- the test ----------------------------------------------------------------------------------------


@dataclass
class Tested:
    """The test over the tasks of one node."""

    counts_running: bool
    running: dict[int, float] = field(default_factory=dict)  # task -> when it began
    sums = AT_REST
    so_far = 0.0

    def ended(self, event: Event, spread: Spread) -> bool:
        """Whether the end of a task raises an alarm, after which the test starts again."""
        score = spread.score(event.at - event.began)
        del self.running[event.task]
        so_far = sum(spread.so_far(event.at - began) for began in self.running.values())
        growth = so_far - self.so_far if self.counts_running else 0.0
        self.sums = step(numbers, self.sums, shown(score, growth), event.at, SLACK)
        self.so_far = so_far
        if changed_since(self.sums, THRESHOLD) is None:
            return False
        self.sums = AT_REST
        return True


def alarms(sequence: list[Event], nodes: int, counts_running: bool) -> tuple[int, list[Event]]:
    """The number of samples, and the ends that raised an alarm."""
    spread, tested, samples, raised = Spread(), [Tested(counts_running) for _ in range(nodes)], 0, []
    for event in sequence:
        if not event.has_ended:
            tested[event.node].running[event.task] = event.at
            continue
        samples += 1
        if tested[event.node].ended(event, spread):
            raised.append(event)
    return samples, raised


# -- the table ---------------------------------------------------------------------------------------


def false_alarm(starts: str, size: Size, counts_running: bool, seeds: range = SEEDS) -> float:
    """Samples to a false alarm."""
    found = [alarms(events(starts, size, NODES, seed), NODES, counts_running) for seed in seeds]
    return sum(samples for samples, _ in found) / max(1, sum(len(raised) for _, raised in found))


def delay(starts: str, size: Size, factor: float, counts_running: bool, seeds: range = SEEDS) -> float:
    """Mean time from the change of a node to its first alarm, in mean times of a task before it."""
    found = []
    for seed in seeds:
        _, raised = alarms(events(starts, size, 4, seed, factor), 4, counts_running)
        times = [each.at - CHANGE_AT for each in raised if each.node == 0 and each.at > CHANGE_AT]
        found.append(min(times, default=NEVER))
    return fmean(found)


def main() -> None:
    """Print the table, a line as soon as it is known: ends alone, then with running tasks."""
    print(
        "| tasks | sizes | samples to a false alarm | alarm after x 1/4 | after x 4 |\n|---|---|---|---|---|"
    )
    for starts in STARTS:
        for name, size in SIZES.items():
            both = (False, True)
            cells = [" / ".join(f"{false_alarm(starts, size, each):,.0f}" for each in both)]
            for factor in (0.25, 4.0):
                cells.append(" / ".join(f"{delay(starts, size, factor, each):.1f}" for each in both))
            print(f"| {starts} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
