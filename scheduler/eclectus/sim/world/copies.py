"""Stragglers of a run, and copies of them, by the operator's table (maths/copies.py).

An attempt is slower than others with a given probability, whatever the machine. Which ones are depends on the
uid and the seed alone, so that all profiles meet the same stragglers; a copy draws for itself. Pods may say
their progress, well or badly.

The scheduler's marks reach the operator `delay` seconds later, as do ends of pods. Until then both go on, and
both may end: the first one counts, and the other one has run for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from eclectus.maths.copies import Attempt, Doing, Step, copy_name, next_step
from eclectus.maths.stragglers import progress_of_phases
from eclectus.model.commands import MarkStraggling
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, TaskGone, TaskSeen
from eclectus.model.objects import Requirement, Spec, Term
from eclectus.model.settings import setting
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.base.random_draws import stream
from eclectus.sim.base.results import CopiesResult
from eclectus.sim.world.jobs import as_running
from eclectus.sim.world.run_record import RunRecord

WAIT_SECONDS = 60.0  # after which a copy that waits is withdrawn
PHASES = (0.1, 0.1, 0.8)  # parts of the work


@dataclass(frozen=True)
class Straggling:
    """Which attempts are stragglers, what pods say of themselves, and what copies cost."""

    share: float = setting(0.0, "probability that an attempt is a straggler", least=0, most=1)
    factor: float = setting(5.0, "how many times as long a straggler takes", least=1, most=1000)
    progress: float | None = setting(
        None, "how often pods say their progress; by default they do not", unit="s", least=0.1
    )
    shape: Literal["linear", "phases", "early"] = setting(
        "linear",
        "what they say of the work w that is done: w; the progress within each of three phases, of which the "
        "last has four fifths of the work; or the root of w",
    )
    weights: tuple[float, ...] = setting((1.0, 1.0, 1.0), "of these three phases, as they are stated")
    crowding: float = setting(
        0.0, "by how much each task on a machine slows each of the others", least=0, most=10
    )
    delay: float = setting(
        1.0,
        "how long the operator takes to see a mark or an end, and to act",
        why="it syncs once a second",
        unit="s",
        least=0,
        most=3600,
    )

    def __post_init__(self) -> None:
        if len(self.weights) != len(PHASES) or not min(self.weights) > 0.0:
            raise SettingsError("weights", f"must be {len(PHASES)} numbers above 0, not {list(self.weights)}")

    def said(self, done: float) -> float:
        """The progress that is said when this part of the work is done, both 0..1."""
        if self.shape == "linear":
            return done
        if self.shape == "early":
            return float(done**0.5)
        before = (sum(PHASES[:at]) for at in range(len(PHASES)))
        within = [(done - start) / part for start, part in zip(before, PHASES, strict=True)]
        return progress_of_phases(within, self.weights)


_ALIVE = (Doing.WAITS, Doing.RUNS, Doing.LEAVING)


class CopyRun(TaskRun, kw_only=True):
    """A copy of a pod. It has the same work."""

    original: TaskRun


class CopyWorld(Protocol):
    """What copies need of the world."""

    record: RunRecord
    now: float

    def submit_copy(self, copy: CopyRun) -> None:
        """It waits to be bound."""

    def withdraw_copy(self, copy: CopyRun) -> None:
        """It waits no more."""

    def end_task(self, run: TaskRun, started: float) -> None:
        """The work of a task is done, by a pod that started then."""


class _Pair:
    """A pod that was marked, and its copy."""

    def __init__(self, run: TaskRun) -> None:
        self.run = run
        self.is_straggling = True
        self.copy: CopyRun | None = None
        self.original = Attempt(Doing.RUNS, run.task.name)
        self.second = Attempt(Doing.GONE)
        self.is_done = False  # one of them has succeeded, and counts
        self.took_over = False  # the original is lost, and the copy is the attempt

    def see(self, run: TaskRun, doing: Doing, now: float = inf) -> None:
        """One of the two does something else from now on."""
        attempt = Attempt(doing, run.task.name, now)
        if isinstance(run, CopyRun):
            self.second = attempt
        else:
            self.original = attempt


class Copies:
    """Draws stragglers, and does what the operator does for marked pods.

    Of a pair the record counts one as the task, the attempt: the original, or the copy where the original is
    lost. The other one is a surplus as long as it runs.
    """

    def __init__(
        self,
        settings: Straggling,
        seed: int,
        world: CopyWorld,
        schedule: Callable[[float, Callable[[Any], None], object], None],
        notify: Callable[[Event], None],
        *,
        termination_seconds: float,
    ) -> None:
        self.settings = settings
        self._seed = seed
        self._world = world
        self._schedule = schedule
        self._notify = notify
        self._termination_seconds = termination_seconds
        self._running: dict[str, TaskRun] = {}  # pods that may have copies, by uid
        self._pairs: dict[str, _Pair] = {}  # by the uid of the original
        self._stragglers = self._marked = self._started = self._won = self._lost = 0
        self._lost_seconds = {"copy": 0.0, "original": 0.0}

    def draw(self, run: TaskRun) -> None:
        """An attempt is about to start: whether it is a straggler."""
        share = self.settings.share
        drawn = float(stream(self._seed, f"straggler {run.task.uid}").random()) if share else 1.0
        self._stragglers += drawn < share
        run.pace = 1.0 / self.settings.factor if drawn < share else 1.0

    def started(self, run: TaskRun) -> None:
        """A pod runs."""
        record = self._world.record
        if isinstance(run, CopyRun):
            pair = self._pairs[run.task.copy_of]
            pair.see(run, Doing.RUNS)
            self._started += 1
            if pair.took_over:
                record.start(run, self._world.now)
            else:
                record.surplus += 1
        else:
            record.start(run, self._world.now)
            if run.task.speculative:
                self._running[run.task.uid] = run
        if self.settings.progress is not None and run.due < inf:
            self._schedule(self._world.now + self.settings.progress, self._say, (run, run.task.uid))

    def _say(self, of: tuple[TaskRun, str]) -> None:
        """A pod says its progress, and will say it again."""
        run, uid = of
        machine, every = run.machine, self.settings.progress
        if machine is None or run.task.uid != uid or every is None:
            return
        left = (run.due - self._world.now) * machine.speed_of(run)
        said = self.settings.said(min(max(1.0 - left / run.size, 0.0), 1.0))
        run.task = replace(run.task, progress=said)
        self._show(run, machine)
        self._schedule(self._world.now + every, self._say, of)

    def _show(self, run: TaskRun, machine: Machine, *, deleting: bool = False) -> None:
        shown = as_running(run, machine.node.name, run.started)
        self._notify(TaskSeen(replace(shown, deleting=deleting)))

    # -- what the operator sees and does -----------------------------------------------------------

    def mark(self, command: MarkStraggling) -> None:
        """The scheduler has written whether a pod is late."""
        run = self._running.get(command.uid)
        if run is None or run.machine is None:
            return
        run.task = replace(run.task, straggling=command.is_straggling)
        self._show(run, run.machine)
        pair = self._pairs.get(command.uid)
        if pair is None:
            self._marked += 1
            pair = self._pairs[command.uid] = _Pair(run)
        pair.is_straggling = command.is_straggling
        self._later(pair, self.settings.delay)

    def _later(self, pair: _Pair, seconds: float) -> None:
        self._schedule(self._world.now + seconds, self._step, pair)

    def _step(self, pair: _Pair) -> None:
        waits_since = pair.copy.arrived if pair.copy is not None else inf
        is_overdue = pair.second.doing is Doing.WAITS and self._world.now >= waits_since + WAIT_SECONDS
        step = next_step(pair.original, pair.second, is_straggling=pair.is_straggling, is_overdue=is_overdue)
        if step is Step.CREATE:
            self._create(pair)
        elif step is Step.WIN:
            self._delete(pair.run, pair)
        elif step in (Step.LOSE, Step.WITHDRAW) and pair.copy is not None:
            self._delete(pair.copy, pair)
        elif pair.is_done and pair.run.task.uid not in self._running and pair.second.doing not in _ALIVE:
            self._pairs.pop(pair.run.task.uid, None)

    def _create(self, pair: _Pair) -> None:
        run, now = pair.run, self._world.now
        if run.machine is None:
            return
        task, name = run.task, copy_name(run.task.name)
        changed = {"uid": name, "name": name, "created": now, "copy_of": task.uid, "preempts": False}
        spec = _elsewhere(task.spec, run.machine.node.name)
        task = replace(task, spec=spec, speculative=False, straggling=False, progress=None, **changed)
        pair.copy = CopyRun(task, run.work_class, run.job, run.size, now, original=run)
        pair.see(pair.copy, Doing.WAITS)
        self._world.submit_copy(pair.copy)
        self._later(pair, WAIT_SECONDS)

    def _delete(self, run: TaskRun, pair: _Pair) -> None:
        """A pod whose work another one does or has done is deleted; its container runs on for a moment."""
        if isinstance(run, CopyRun) and pair.second.doing is Doing.WAITS:
            pair.see(run, Doing.GONE)
            self._world.withdraw_copy(run)
            return
        pair.see(run, Doing.LEAVING)
        if run.machine is not None:
            self._show(run, run.machine, deleting=True)
            at = self._world.now + self._termination_seconds
            self._schedule(at, self._stop, (run, run.task.uid, pair))

    def _stop(self, of: tuple[TaskRun, str, _Pair]) -> None:
        run, uid, pair = of
        machine = run.machine
        if machine is None or run.task.uid != uid:
            return  # it has ended in the meantime
        machine.stop(run, self._world.now)
        self._count_lost(run)
        self._world.record.lose_surplus(run)
        self._notify(TaskGone(uid))
        self._over(run, pair, Doing.GONE)

    def _count_lost(self, run: TaskRun) -> None:
        kind = "copy" if isinstance(run, CopyRun) else "original"
        self._lost_seconds[kind] += self._world.now - run.started

    def _over(self, run: TaskRun, pair: _Pair, doing: Doing) -> None:
        """A pod of a pair runs no more."""
        pair.see(run, doing, self._world.now)
        self._running.pop(run.task.uid, None)
        if pair.is_done and Doing.RUNS not in (pair.original.doing, pair.second.doing):
            self._later(pair, self.settings.delay)

    # -- ends and losses ---------------------------------------------------------------------------

    def end(self, run: TaskRun) -> None:
        """A pod has succeeded, and its machine is rid of it."""
        pair = self._pair_of(run)
        if pair is None:
            self._running.pop(run.task.uid, None)
            self._world.end_task(run, run.started)
            return
        if pair.is_done:  # the other one was first
            self._count_lost(run)
            self._world.record.end_surplus(run)
        else:
            pair.is_done = True
            is_copy, has_run = isinstance(run, CopyRun), pair.second.doing is Doing.RUNS
            self._won += is_copy and not pair.took_over
            self._lost += has_run and not is_copy
            self._world.end_task(pair.run, run.started)  # an original that runs on is a surplus now
        self._over(run, pair, Doing.SUCCEEDED)
        self._later(pair, self.settings.delay)

    def lose(self, run: TaskRun, record: Callable[[TaskRun], None]) -> TaskRun | None:
        """A pod was lost, with its machine or by an eviction, and its machine is rid of it.

        Returns the task of which a new pod is made; None if the other one does its work, or has done it.
        `record`: how the record counts a task that is lost.
        """
        pair = self._pair_of(run)
        if pair is None:
            self._running.pop(run.task.uid, None)
            record(run)
            return run
        self._over(run, pair, Doing.FAILED)
        is_attempt = isinstance(run, CopyRun) == pair.took_over and not pair.is_done
        if not is_attempt:
            self._count_lost(run)
            self._world.record.lose_surplus(run)
            return None
        record(run)
        other = pair.second.doing
        if isinstance(run, CopyRun) or other not in (Doing.WAITS, Doing.RUNS):
            del self._pairs[pair.run.task.uid]
            return pair.run
        pair.took_over = True
        if other is Doing.RUNS:
            self._world.record.surplus -= 1
            self._world.record.running += 1
        return None

    def _pair_of(self, run: TaskRun) -> _Pair | None:
        return self._pairs.get(run.task.copy_of or run.task.uid)

    def result(self) -> CopiesResult:
        """Of the whole run."""
        return CopiesResult(
            self._stragglers,
            self._marked,
            self._started,
            self._won,
            self._lost,
            self._lost_seconds["copy"],
            self._lost_seconds["original"],
            self._world.record.busy_seconds,
        )


def _elsewhere(spec: Spec, node: str) -> Spec:
    """The spec of a pod that does not run on this node."""
    other = Requirement("metadata.name", "NotIn", (node,))
    terms = (Term(),) if spec.affinity is None else spec.affinity
    return replace(spec, affinity=tuple(replace(term, fields=(*term.fields, other)) for term in terms))
