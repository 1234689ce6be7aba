"""Stories: what happens when, drawn from a seed. One that breaks a promise is shrunk to what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from eclectus_e2e.chaos.hostile import KINDS
from eclectus_e2e.chaos.oracles import ON_ITS_WAY_SECONDS

if TYPE_CHECKING:
    from eclectus_e2e.chaos.world import World

ACTING_SECONDS = 120.0  # in which things happen; then all faults end
QUIET_SECONDS = 150.0  # for everything to settle
SCHEDULERS, OPERATORS = 2, 2
CLOCK_STEP_SECONDS_MOST = 3600.0  # of one machine, forwards or backwards
CALM_SHARE = 0.2  # of the stories


@dataclass(frozen=True)
class Action:
    """What happens at a time, by name in `ACTIONS`, with its numbers."""

    at: float
    name: str
    which: int  # of the replicas, nodes or tenants
    amount: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.name:<16} {self.which} {self.amount:.3f} {self.seconds:.3f} s"


@dataclass(frozen=True)
class Story:
    """A seed decides what is not an action: delays, policies, sizes of nodes."""

    seed: int
    actions: tuple[Action, ...]

    def without(self, left_out: range) -> Story:
        """The story without some of its actions."""
        kept = tuple(each for at, each in enumerate(self.actions) if at not in left_out)
        return Story(self.seed, kept)


def _kill(world: World, action: Action) -> None:
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].kill()


def _terminate(world: World, action: Action) -> None:
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].terminate()


def _pause(world: World, action: Action) -> None:
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].pause(action.seconds)


def _pause_in_write(world: World, action: Action) -> None:
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].pause_in_write(action.seconds)


def _cut(world: World, action: Action) -> None:
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].cut(action.seconds)


SLOW_STEP_SECONDS = 10.0  # at most; what comes meanwhile is seen after it


def _slow_steps(world: World, action: Action) -> None:
    replica = world.schedulers[action.which % SCHEDULERS]
    replica.step_seconds = action.amount * SLOW_STEP_SECONDS
    world.oracles.step_seconds = SLOW_STEP_SECONDS
    world.network.later(action.seconds, lambda: setattr(replica, "step_seconds", 0.0))


SLOW = ("slow_share", "admission_seconds")
SLOW_SECONDS = 15.0  # that a request and an event can take then


def _step_clock(world: World, action: Action) -> None:
    seconds = (2 * action.amount - 1) * CLOCK_STEP_SECONDS_MOST
    world.replicas[action.which % (SCHEDULERS + OPERATORS)].step_clock(seconds)


def _network(name: str, most: float) -> Callable[[World, Action], None]:
    def act(world: World, action: Action) -> None:
        setattr(world.network, name, action.amount * most)
        if name in SLOW:
            world.oracles.on_its_way_seconds = ON_ITS_WAY_SECONDS + SLOW_SECONDS
        world.network.later(action.seconds, lambda: setattr(world.network, name, 0.0))

    return act


def _break_watches(world: World, action: Action) -> None:
    world.network.break_watches()


def _compact(world: World, action: Action) -> None:
    world.server.compact()


def _submit(world: World, action: Action) -> None:
    world.tenants.submit(f"tenant-{action.which}", 1 + int(action.amount * 12), action.seconds)


def _submit_urgent(world: World, action: Action) -> None:
    world.tenants.submit(f"tenant-{action.which}", 1 + int(action.amount * 3), action.seconds, priority=1000)


def _delete_pods(world: World, action: Action) -> None:
    world.tenants.delete_pods(f"tenant-{action.which}", action.amount)


def _submit_dag_job(world: World, action: Action) -> None:
    world.tenants.submit_dag_job(f"tenant-{action.which}", action.amount)


def _delete_dag_job(world: World, action: Action) -> None:
    world.tenants.delete_dag_job(f"tenant-{action.which}", action.amount)


def _suspend_dag_job(world: World, action: Action) -> None:
    world.tenants.suspend_dag_job(f"tenant-{action.which}", action.amount, action.seconds)


def _straggle(world: World, action: Action) -> None:
    world.tenants.straggle(action.amount, is_late=action.which > 0)


def _limit_pool(world: World, action: Action) -> None:
    world.tenants.limit_pool(action.amount, action.seconds)
    world.prompt.faults_end = max(world.prompt.faults_end, world.loop.time() + action.seconds)  # pods wait


def _drain(world: World, action: Action) -> None:
    world.remove_node(action.which, action.seconds)


def _cordon(world: World, action: Action) -> None:
    world.cordon(action.which, action.seconds)


def _flood(world: World, action: Action) -> None:
    world.oracles.on_its_way_seconds = ON_ITS_WAY_SECONDS + SLOW_SECONDS  # requests wait in queues
    flows, now = world.network.flows, world.loop.time
    flows.flood(f"tenant-{action.which}", now() + action.seconds, now)


def _squeeze(world: World, action: Action) -> None:
    world.oracles.on_its_way_seconds = ON_ITS_WAY_SECONDS + SLOW_SECONDS  # requests wait in queues
    flow = "scheduler" if action.which % 2 else "operator"
    world.network.flows.squeeze(flow, action.amount / 2, action.seconds)


def _hostile(kind: str) -> Callable[[World, Action], None]:
    return lambda world, action: KINDS[kind](world.hostile, action.amount)


OUTAGE_SECONDS = 6.0  # of the API server while etcd is restored: longer than a Lease lasts
BUMP = 1_000_000_000  # revisions, as etcd's documentation advises


def _restore(bump: int) -> Callable[[World, Action], None]:
    def act(world: World, action: Action) -> None:
        restores = world.oracles.counts["restores of etcd"] + 1
        world.restore_etcd(action.amount * 40, OUTAGE_SECONDS + action.seconds / 4, restores * bump)

    return act


@dataclass(frozen=True)
class Kind:
    """How often an action is drawn, and what it does."""

    weight: float
    act: Callable[[World, Action], None]
    is_fault: bool = True  # whether a pod may wait because of it
    loses: bool = False  # requests or answers, without a word to the client


ACTIONS: dict[str, Kind] = {
    "submit": Kind(12, _submit, is_fault=False),
    "submit-urgent": Kind(3, _submit_urgent, is_fault=False),
    "delete-pods": Kind(3, _delete_pods, is_fault=False),
    "submit-dag-job": Kind(4, _submit_dag_job, is_fault=False),
    "delete-dag-job": Kind(1, _delete_dag_job, is_fault=False),
    "suspend-dag-job": Kind(1, _suspend_dag_job, is_fault=False),
    "straggle": Kind(2, _straggle, is_fault=False),
    "remove-node": Kind(1, _drain, is_fault=False),
    "cordon": Kind(1, _cordon, is_fault=False),
    "limit-pool": Kind(2, _limit_pool, is_fault=False),
    "kill": Kind(2, _kill),
    "terminate": Kind(1, _terminate),
    "pause": Kind(2, _pause),
    "pause-in-write": Kind(1.5, _pause_in_write),
    "cut": Kind(1.5, _cut, loses=True),
    "slow-steps": Kind(1.5, _slow_steps),
    "step-clock": Kind(1, _step_clock, is_fault=False),
    "break-watches": Kind(1.5, _break_watches),
    "compact": Kind(1.5, _compact),
    "restore-etcd": Kind(0.3, _restore(BUMP), loses=True),
    "restore-restart": Kind(0.2, _restore(0), loses=True),
    "lose-requests": Kind(1, _network("lost_requests", 0.5), loses=True),
    "lose-answers": Kind(1.5, _network("lost_answers", 0.5), loses=True),
    "delay": Kind(1.5, _network("slow_share", 0.5)),
    "squeeze": Kind(1, _squeeze),
    "flood": Kind(1, _flood, is_fault=False),
    **{f"hostile-{kind}": Kind(0.15, _hostile(kind), is_fault=False) for kind in KINDS},
    "too-many": Kind(1, _network("busy_share", 0.7)),
    "slow-admission": Kind(1, _network("admission_seconds", 6.0)),
}


def drawn(seed: int) -> Story:
    """The story of a seed: twenty to sixty actions. One in five has no fault, but more of hostile tenants."""
    rng = Random(f"story {seed}")
    is_calm = rng.random() < CALM_SHARE
    names = [name for name, kind in ACTIONS.items() if not (is_calm and kind.is_fault)]
    weights = [ACTIONS[name].weight * (5 if is_calm and "hostile" in name else 1) for name in names]
    actions = [
        Action(
            at=rng.uniform(0.0, ACTING_SECONDS),
            name=rng.choices(names, weights)[0],
            which=rng.randrange(6),
            amount=rng.random(),
            seconds=rng.choice([0.5, 2.0, 8.0, 14.0, 16.0, 20.0, 40.0]) * rng.uniform(0.8, 1.2),
        )
        for _ in range(rng.randint(20, 60))
    ]
    return Story(seed, tuple(sorted(actions, key=lambda each: each.at)))


def shrunk(story: Story, fails: Callable[[Story], bool], runs_most: int = 150) -> Story:
    """The smallest story found that still fails: halves are left out, then quarters, then single actions."""
    size, runs = max(len(story.actions) // 2, 1), 0
    while runs < runs_most:
        for begin in range(0, len(story.actions), size):
            smaller = story.without(range(begin, begin + size))
            runs += 1
            if fails(smaller):
                story = smaller
                break
            if runs >= runs_most:
                return story
        else:
            if size == 1:
                return story
            size //= 2
    return story
