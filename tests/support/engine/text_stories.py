"""Stories as text: what an engine is given and what it answers, in files that a person reads.

A file begins with a comment. Each block is one step: lines of what happens, `----`, then the commands, how
many pods are in which queue, and when the engine wants to be asked again. What may happen:

    start [PROFILE]       an engine with this profile; `speeds` in it gives the nodes' speeds (others: 1)
    node NAME {FIELDS}    the node exists, as given (builders.make_node)
    node-gone NAME        it no longer exists
    pod NAME {FIELDS}     the pod exists, as given (builders.make_task)
    pod-gone NAME         it no longer exists
    ends NAME             the pod has succeeded
    terminates NAME       the pod is being deleted
    confirm NAME          the API server has done what was asked: bound the pod, or nominated it
    refuse NAME REASON    it has refused to bind or to nominate the pod
    refuse-eviction NAME REASON    the pod was not evicted
    budget NAME {FIELDS}  a PodDisruptionBudget exists: `allowed` disruptions of the pods with `labels`
    claim NAME {FIELDS}   a PersistentVolumeClaim exists, as given (storage.make_claim), of the class `late`
    volume NAME {FIELDS}  a PersistentVolume exists, as given (storage.make_volume)
    storage-class NAME {FIELDS}    a StorageClass exists
    group NAME MINIMUM    a PodGroup exists, of which so many pods (`gang: NAME`) start together
    group-gone NAME       it no longer exists
    job NAME {STAGES}     a DAG job exists: by stage `tasks`, `cpu` and `seconds`, and `after` which it comes
    job-gone NAME         it no longer exists
    after SECONDS         first in a block: time passes before the step
    look                  first in a block: time passes until the engine wants to be asked again
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml
from msgspec.structs import asdict, replace

from builders import ExactSpeeds, make_node, make_spec, make_task
from eclectus.config.profiles import read_profiles
from eclectus.engine.engine import Engine
from eclectus.model.commands import (
    AwaitVolume,
    Bind,
    Command,
    Evict,
    Fault,
    Nominate,
    RecordPlan,
    Report,
    ReserveVolume,
    SelectNode,
    VolumeStep,
)
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    BudgetSeen,
    Event,
    EvictRefused,
    JobGone,
    JobSeen,
    NodeGone,
    NodeSeen,
    NominateRefused,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Budget, Requirement, Task, UsedClaim
from eclectus.model.volumes import StorageClass
from gangs import group, key, no_group
from storage_objects import make_claim, make_volume, seen

LINE = "----"
NO_QUEUE = ("nodes", "classes", "dag_jobs", "resources", "counters")  # of QueueCounts


def rewritten(text: str) -> str:
    """The story with the answers that an engine gives now."""
    comment, *blocks = text.strip().split("\n\n")
    story = _Story()
    return "\n\n".join([comment, *(story.block(block) for block in blocks)]) + "\n"


class _Story:
    """One engine, the pods it knows, and what it has asked for."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._now = 0.0
        self._tasks: dict[str, Task] = {}
        self._asked: dict[str, Bind | Nominate] = {}  # of each pod the last, until it is answered
        self._happens: dict[str, Callable[..., Iterator[Event]]] = {
            "start": self._start,
            "node": lambda name, fields="{}": iter([NodeSeen(make_node(name, **_values(fields)))]),
            "node-gone": lambda name: iter([NodeGone(name)]),
            "pod": self._pod,
            "pod-gone": lambda name: iter([TaskGone(self._tasks.pop(name).uid)]),
            "ends": self._ends,
            "terminates": self._terminates,
            "confirm": self._confirm,
            "refuse": self._refuse,
            "refuse-eviction": lambda name, reason: iter([EvictRefused(self._tasks[name].uid, reason)]),
            "budget": _budget,
            "claim": lambda name, fields="{}": iter(seen(make_claim(name, **_values(fields)))),
            "volume": lambda name, fields="{}": iter(seen(make_volume(name, **_values(fields)))),
            "storage-class": lambda name, fields: iter(seen(StorageClass(name, **_values(fields)))),
            "group": lambda name, minimum: iter([group(name, int(minimum))]),
            "group-gone": lambda name: iter([no_group(name)]),
            "job": lambda name, fields: iter([JobSeen(_job(name, _fields(fields)))]),
            "job-gone": lambda name: iter([JobGone(f"uid-{name}")]),
            "after": self._after,
            "look": self._look,
        }

    def block(self, text: str) -> str:
        """One step: the lines of what happens, and the answer."""
        given = text.partition(f"\n{LINE}")[0]
        events: list[Event] = []
        for line in given.splitlines():
            word, *rest = line.split(" ", 2)
            events += self._happens[word](*rest)
        assert self._engine is not None, "a story begins with start"
        commands = self._engine.step(events, self._now)
        return "\n".join([given, LINE, *map(self._written, commands), *self._state(self._engine)])

    # -- what happens ----------------------------------------------------------------------------

    def _start(self, *profile: str) -> Iterator[Event]:
        said = _fields(" ".join(profile) or "{}")
        learn = ExactSpeeds(said.pop("speeds", {}))
        self._engine = Engine(read_profiles([{"schedulerName": "eclectus", **said}], "start"), learn)
        yield Resumed()

    def _pod(self, name: str, fields: str = "{}") -> Iterator[Event]:
        given = {"created": self._now} | _values(fields)
        used = tuple(UsedClaim(each) for each in given.pop("claims", ()))
        gang = key(given.pop("gang")) if "gang" in given else None
        self._tasks[name] = make_task(name, claims=used, gang=gang, **given)
        yield TaskSeen(self._tasks[name])

    def _ends(self, name: str) -> Iterator[Event]:
        task = self._tasks.pop(name)
        yield TaskSeen(replace(task, phase="Succeeded", started=task.created, finished=self._now))

    def _terminates(self, name: str) -> Iterator[Event]:
        self._tasks[name] = replace(self._tasks[name], deleting=True)
        yield TaskSeen(self._tasks[name])

    def _confirm(self, name: str) -> Iterator[Event]:
        match self._asked.pop(name):
            case Bind(uid=uid, node=node):
                self._tasks[name] = replace(self._tasks[name], node=node)
                yield BindConfirmed(uid, node)
            case Nominate(node=node):
                self._tasks[name] = replace(self._tasks[name], nominated=node)
        yield TaskSeen(self._tasks[name])

    def _refuse(self, name: str, reason: str) -> Iterator[Event]:
        asked = self._asked.pop(name)
        answer = BindRefused if isinstance(asked, Bind) else NominateRefused
        yield answer(asked.uid, asked.node, reason)

    def _after(self, seconds: str) -> Iterator[Event]:
        self._now += float(seconds)
        return iter(())

    def _look(self) -> Iterator[Event]:
        at = self._engine.next_step_at() if self._engine else None
        assert at is not None, "the engine does not want to be asked"
        self._now = at
        return iter(())

    # -- what is answered ------------------------------------------------------------------------

    def _written(self, command: Command) -> str:
        match command:
            case Bind():
                assert not isinstance(self._asked.get(command.name), Bind), f"{command.name} is bound twice"
                self._asked[command.name] = command
                steps = [_step(step) for step in command.before if isinstance(step, VolumeStep)]
                return f"Bind {command.name} to {command.node}{''.join(f', {step}' for step in steps)}"
            case Nominate():
                self._asked[command.name] = command
                return f"Nominate {command.name} to {command.node or 'no node'}"
            case Evict():
                return f"Evict {command.name} from {command.node} for {command.preemptor_name}"
            case Report():
                return f"Report {command.name} {command.reason}: {command.message}"
            case RecordPlan(plan=plan):
                amounts = {"share": plan.share, "lent": plan.lent, "above the share": plan.borrowed}
                said = [
                    f"{what} {' '.join(f'{name}={amount}' for name, amount in held)}"
                    for what, held in amounts.items()
                    if held
                ]
                end = "unknown" if plan.deadline is None else f"{plan.deadline:g}"
                slips = f", slipped {plan.slips} times by {plan.slip_seconds:g} s" if plan.slips else ""
                return f"RecordPlan {command.name}: {', '.join(said)}; deadline {end}{slips}"
            case Fault():
                return f"Fault {command.policy}: {command.message}"

    def _state(self, engine: Engine) -> Iterator[str]:
        counts = {
            name: count for name, count in asdict(engine.queue_counts()).items() if name not in NO_QUEUE
        }
        queues = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count]
        at = engine.next_step_at()
        look = "" if at is None else f"; next look at {at:g}"
        yield f"at {self._now:g}: {', '.join(queues) or 'no pod waits'}{look}"


def _step(step: VolumeStep) -> str:
    """A step before a bind."""
    match step:
        case ReserveVolume():
            return f"reserve {step.volume} for {step.claim}"
        case SelectNode():
            return f"provision {step.claim} for {step.node}"
        case AwaitVolume():
            return f"wait for {step.claim}"


def _budget(name: str, fields: str) -> Iterator[Event]:
    given = _fields(fields)
    selector = tuple(Requirement(key, "In", (value,)) for key, value in given["labels"].items())
    yield BudgetSeen(Budget("default", name, selector, given["allowed"]))


def _job(name: str, stages: dict[str, dict[str, Any]]) -> Job:
    at = {each: index for index, each in enumerate(stages)}
    every = tuple(
        JobStage(
            each,
            given["tasks"],
            make_spec(given["cpu"]),
            seconds=given.get("seconds"),
            parents=tuple(at[parent] for parent in given.get("after", ())),
        )
        for each, given in stages.items()
    )
    return Job(f"uid-{name}", "default", name, every)


def _fields(text: str) -> dict[str, Any]:
    read = yaml.safe_load(text)
    assert isinstance(read, dict), f"{text!r} must be a mapping, as {{cpu: 1}}"
    return read


def _values(text: str) -> dict[str, Any]:
    """Fields of a pod or node, in which a mapping becomes pairs: node_selector: {zone: z1}."""
    return {
        name: tuple(sorted(value.items())) if isinstance(value, dict) else value
        for name, value in _fields(text).items()
    }
