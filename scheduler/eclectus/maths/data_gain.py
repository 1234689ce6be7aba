"""How many times as long tasks take away from their data: learned from those that have ended there and here.

Of a kind of work with means m and sample counts n of both, and squared coefficient of variation C^2,

    y = log(m_far / m_near),   d^2 = C^2 (1 / n_far + 1 / n_near)

and y is drawn towards 0 by two of its standard deviations d: as long as times do not say that far tasks take
longer, they do not. Then tasks are not kept waiting, so that more of them are far and d falls.

Tasks that wait are hardly ever far, so few start far for a *trial*: until enough have ended there, one of
ten, and then one of a hundred until d is small.

Far tasks are distinguished by level, a rack or any node, where more than one level is priced: each has its
own ratio to near ones.
"""

from math import copysign, exp, log, sqrt

from msgspec import Struct, field

MEMORY = 1000  # samples of a mean; older ones are weighted less
LEAST_SAMPLES = 20  # near and far, to say anything
TRIAL_EVERY = 10  # starts
LATER_TRIAL_EVERY = 100  # once twice LEAST_SAMPLES have started far: of those, too few end
DEVIATIONS = 2.0
SURE_DEVIATION = 0.1
LEAST_VARIATION = 0.01  # of C^2, as tasks of one length vary by more than is known of them
WORKLOADS_MOST = 32  # of a namespace; those of which no task has started or ended for longest are forgotten
NAMESPACES_MOST = 1000  # likewise


class RunTimes(Struct):
    """Mean and mean square of run times, in seconds and seconds squared."""

    samples: int = 0
    mean: float = 0.0
    square: float = 0.0

    def add(self, seconds: float) -> None:
        """A task has run for so long."""
        self.samples += 1
        weight = max(1.0 / self.samples, 1.0 / MEMORY)
        self.mean += weight * (seconds - self.mean)
        self.square += weight * (seconds * seconds - self.square)

    @property
    def weight(self) -> int:
        """Samples that the mean is of."""
        return min(self.samples, MEMORY)

    @property
    def variation(self) -> float:
        """C^2."""
        return max(self.square / self.mean**2 - 1.0, 0.0)


class DataGain(Struct):
    """Of one kind of work in one namespace: starts and run times at the data (near) and elsewhere (far).

    `levels`: of far ones, those at each level that is distinguished, by its name.
    """

    starts: int = 0
    far_starts: int = 0
    near: RunTimes = field(default_factory=RunTimes)
    far: RunTimes = field(default_factory=RunTimes)
    levels: dict[str, RunTimes] = field(default_factory=dict[str, RunTimes])

    @property
    def is_known(self) -> bool:
        """Whether enough tasks have ended near and far."""
        return min(self.near.samples, self.far.samples) >= LEAST_SAMPLES

    @property
    def ratio(self) -> float | None:
        """How many times as long a task takes when far, cautiously; None while too little is known."""
        return self._ratio_of(self.far)

    def ratio_at(self, level: str) -> float | None:
        """The same at a level that is distinguished."""
        return self._ratio_of(self.levels[level]) if level in self.levels else None

    def times(self, level: str = "") -> float:
        """The same as it is most likely, where times say that tasks take longer there; else 1.

        Of a level of which too little is known: of all far tasks.
        """
        ratio = self.ratio_at(level)
        far = self.far if ratio is None else self.levels[level]
        ratio = self.ratio if ratio is None else ratio
        return 1.0 if ratio is None or ratio <= 1.0 else far.mean / self.near.mean

    @property
    def saved_seconds(self) -> float | None:
        """How much sooner a task ends when near, cautiously, seconds; None while too little is known."""
        ratio = self.ratio
        return None if ratio is None else self.near.mean * (ratio - 1.0)

    @property
    def wants_trial(self) -> bool:
        """Whether the next task is to start far although it might wait."""
        if self.is_known and self._deviation(self.far) <= SURE_DEVIATION:
            return False
        if self.far.samples < LEAST_SAMPLES and self.far_starts < 2 * LEAST_SAMPLES:
            return self.far_starts < self.starts // TRIAL_EVERY
        return self.far_starts < self.starts // LATER_TRIAL_EVERY

    def _ratio_of(self, times: RunTimes) -> float | None:
        """How many times as long as near tasks those of these run times take, cautiously."""
        if min(self.near.samples, times.samples) < LEAST_SAMPLES:
            return None
        found = log(times.mean / self.near.mean)
        return exp(copysign(max(abs(found) - DEVIATIONS * self._deviation(times), 0.0), found))

    def _deviation(self, times: RunTimes) -> float:
        near, far = self.near.weight, times.weight
        pooled = (near * self.near.variation + far * times.variation) / (near + far)
        return sqrt(max(pooled, LEAST_VARIATION) * (1.0 / near + 1.0 / far))


class DataGains:
    """Of all kinds of work with data, lately; a namespace learns by its own tasks alone."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, DataGain]] = {}  # in each, what was used last is the last

    def of(self, namespace: str, workload: str) -> DataGain | None:
        """What is known of this work; None if nothing is."""
        return self._by_namespace.get(namespace, {}).get(workload)

    def start(self, namespace: str, workload: str, *, is_far: bool) -> None:
        """A task that will end has started."""
        found = self._used(namespace, workload)
        found.starts += 1
        found.far_starts += is_far

    def end(
        self, namespace: str, workload: str, seconds: float, *, is_far: bool, level: str | None = None
    ) -> None:
        """A task has run to its end, for so many seconds, above 0. `level`: of a far one, or none."""
        found = self._used(namespace, workload)
        (found.far if is_far else found.near).add(seconds)
        if level is not None:
            found.levels.setdefault(level, RunTimes()).add(seconds)

    def best_known(self, most: int) -> list[tuple[str, float]]:
        """Workloads and their ratios, where known; not more than those with the most samples.

        A workload that several namespaces share is that of the one with the most.
        """
        found = [
            (gain.near.samples + gain.far.samples, workload, gain.ratio)
            for works in self._by_namespace.values()
            for workload, gain in works.items()
        ]
        known: dict[str, float] = {}
        for _, workload, ratio in sorted(found, key=lambda each: (-each[0], each[1])):
            if ratio is not None and workload not in known and len(known) < most:
                known[workload] = ratio
        return list(known.items())

    def _used(self, namespace: str, workload: str) -> DataGain:
        works = self._by_namespace.pop(namespace, {})
        self._by_namespace[namespace] = works
        found = works[workload] = works.pop(workload) if workload in works else DataGain()
        for used, most in ((self._by_namespace, NAMESPACES_MOST), (works, WORKLOADS_MOST)):
            if len(used) > most:
                del used[next(iter(used))]
        return found
