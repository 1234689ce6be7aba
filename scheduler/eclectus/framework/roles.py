"""The roles that policies play: what each is asked, and what it may answer.

A policy is asked, and answers with actions (actions.py). Each action is in force before the next one is
asked for: a policy that answers from a generator sees in the view (view.py) what it has done so far, and
keeps no plan of its own. docs/policies.md walks through every role.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from eclectus.accounts.accounts import Grouping
from eclectus.cluster.changelog import ChangeLog
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.actions import Action, Nominate, ReliefAction, Wait
from eclectus.framework.learner import Learn
from eclectus.framework.profile_settings import ProfileSettings
from eclectus.framework.traits import (
    HoldTraits,
    LineTraits,
    Need,
    OrderTraits,
    PlaceTraits,
    Policy,
    RelieveTraits,
    SpeculateTraits,
)
from eclectus.framework.view import View
from eclectus.maths.numbers import Floats
from eclectus.model.explanation import FlowPart
from eclectus.model.job import JobPlan
from eclectus.model.objects import ClassKey, Reservation, Spec, Task


class ClassQueue(Protocol):
    """Pending tasks of one profile, class and group, in the Order's order."""

    def __len__(self) -> int:
        """How many tasks it has, those that were answered in this scheduling cycle included."""

    @property
    def group(self) -> str:
        """What `Order.group` answered for its tasks."""

    @property
    def head(self) -> Task | None:
        """The next task of the queue; None when all have been taken in this scheduling cycle."""


class PendingTasks(Iterator[Task], ABC):
    """The pending tasks of one profile in the Order's order, each offered once a scheduling cycle."""

    @abstractmethod
    def queues(self) -> Iterator[ClassQueue]:
        """Every class queue with tasks left, in the order of their heads.

        For a policy that compares the heads instead of taking task after task: it takes tasks with `take`,
        and the queues that it was given here are not offered task by task any more in this cycle.
        """

    @abstractmethod
    def take(self, queue: ClassQueue) -> Task | None:
        """Offer the head of a class queue; None if it has none, or if its class was refused."""

    @abstractmethod
    def skip(self, task: Task, most: int) -> int:
        """Do not offer the next `most` tasks of this pending task's class in this scheduling cycle.

        Of the class in all groups, in the Order's order. Returns how many are skipped.
        """

    @abstractmethod
    def left(self, task: Task) -> int:
        """How many tasks of this pending task's class are still to be offered in this scheduling cycle."""


class Refused(Struct, frozen=True):
    """Tasks of one class for which no node has room: highest priority first, then in the Order's order.

    They were refused, or wait for a busy node. Tasks that are nominated already are not among them, nor those
    whose `preemptionPolicy` is Never.
    """

    task_class: TaskClass
    tasks: Sequence[Task]


class RoomTrial(Protocol):
    """What would be if room were held for some tasks: nothing of it is written, and nothing of it stays."""

    def hold(self, task: Task, row: int) -> None:
        """Count room on this row as held for a task for which none is held."""

    def end(self) -> None:
        """Count no such room as held any more. The engine calls it too, whatever a policy has left."""


class RefusedGang(Struct, frozen=True):
    """The tasks of a gang, of which `needed` start together, and for which nodes have not enough room.

    In the order in which they are placed. None of them is nominated.
    """

    tasks: Sequence[Task]
    needed: int
    trial: RoomTrial


# Of the plainest policies, made once: the engine reads traits in every scheduling cycle.
_ORDER, _PLACE, _LINE, _RELIEVE = OrderTraits(), PlaceTraits(), LineTraits(), RelieveTraits()
_SPECULATE, _HOLD = SpeculateTraits(), HoldTraits()


class Order(Policy, ABC):
    """Which pending task is next? Kubernetes' counterpart is QueueSort."""

    @property
    def traits(self) -> OrderTraits:
        """What it says of itself."""
        return _ORDER

    def group(self, task: Task) -> str:
        """A pool, a job, or nothing: tasks of different groups never share a class queue."""
        return ""

    def counted_by(self, task: Task) -> str:
        """The group by which `view.shares(self)` adds up what placed pods hold, if it needs shares."""
        return self.group(task)

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Sort key within the class queue, smallest first: priority, then age; `serial` counts entries."""
        return (-task.priority, task.created, serial)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        """Rank of a group, smallest first; of groups of equal rank, the one whose head has the smallest key.

        `head` is the group's first task in this scheduling cycle: of its class queues that are asked about,
        the head with the smallest key. The answer may depend on `head`, on what the group holds
        (`view.shares(self)`) and, if groups are jobs, on `view.work_left(head)`. It is asked again when one
        of these has changed, and after each of the group's tasks. If the order's traits say that ranks follow
        the time, it may depend on `view.now` too. By default all groups are equal.

        An order whose traits say that it withholds may answer Wait: then nothing of the group is offered.
        """
        return ()

    def rank_prefix(self, view: View, prefix: str, spec: Spec) -> tuple[float, ...]:
        """Rank of a prefix of paths among its siblings, for tasks of this spec; if its traits say so.

        Groups are then compared by the first number of `rank` (their priority), then by the ranks of their
        prefixes from the root down, then by the rest of `rank`. The answer may depend on what is counted of
        the prefix (`view.shares(self)`), and is asked for again when that has changed.
        """
        return ()

    def changes(self, view: View) -> ChangeLog[str] | None:
        """The groups, or prefixes of paths, whose ranks have changed for reasons that the engine cannot see.

        Asked before ranks are used: the time to bring up to date what they depend on. None: there are none.
        """
        return None

    def placed(self, view: View, task: Task, row: int) -> None:
        """A task of the profile is bound to the node of this row. Called only if it needs binds."""


class JobPlanner(Order):
    """An Order that also plans DAG jobs, and keeps nodes free for tasks that find no room."""

    def plans(self, view: View) -> Iterable[tuple[str, JobPlan]]:
        """The uids and plans of DAG jobs whose plans have changed since the last call, to be written to them.

        Asked after each step that decides. The engine bounds how often a job is written, and adds up what is
        lent and borrowed: a job that ends, or is gone, needs a last plan, without a share.
        """
        return ()

    @property
    def is_behind(self) -> bool:
        """Whether it has left jobs to the next step, which is then due at once."""
        return False

    def reserve_nodes(self, view: View, refused: Refused) -> Iterator[Nominate]:
        """Nodes to be kept free for refused tasks until they have room, though no pod is evicted there.

        `refused` has the first task of each group, whatever its `preemptionPolicy`. Asked about a class that
        has been refused, at once and then every 1 to 30 s, and only if its traits say that it reserves nodes.
        """
        return iter(())

    def keeps_node(self, view: View, task: Task, row: int) -> bool:
        """Whether a node is still kept free for this task, which is nominated to it and does not fit yet.

        Asked when the node has changed, and every 30 s. The task need not be one for which this order has
        reserved the node: a process before may have done so, or it was nominated for another reason.
        """
        return False


class Place(Policy, ABC):
    """Which node gets the task? Kubernetes' counterpart is Score."""

    @property
    def traits(self) -> PlaceTraits:
        """What it says of itself, with its settings."""
        return _PLACE

    def counted_by(self, task: Task) -> str:
        """The group by which `view.shares(self)` adds up what placed pods hold, if it needs shares."""
        return ""

    @abstractmethod
    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Answer pending tasks with actions: one by one, all at once, or by comparing class queues."""

    def epoch(self, view: View) -> int:
        """Another number when answers may have changed for a reason that the engine does not watch.

        Asked at the beginning of a cycle if tasks are deferred. With another one all deferred classes are
        asked about again (`PlaceTraits.defers_until_change`).
        """
        return 0

    def class_prices(self) -> Mapping[ClassKey, Floats]:
        """For people: by class and row, how many times longer a task counts as running; 1 where left out."""
        return {}

    def data_cost(self, view: View, task: Task) -> str:
        """For people: what it costs a task to run away from its data; empty where that is not priced."""
        return ""

    def flow_part(self, uid: str, now: float) -> FlowPart | None:
        """For people: the part of its last flow problem that is about a pod. None if there is none."""
        return None

    @property
    def learner_settings(self) -> Mapping[str, object]:
        """Settings that the policy requires of the learner, which all profiles share: field -> value."""
        return {}


class Line(Policy, ABC):
    """In which order does a node serve its node queue?"""

    @property
    def traits(self) -> LineTraits:
        """What it says of itself."""
        return _LINE

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The reservation to dispatch once it fits, by default the first; None for none yet."""
        return queue[0]

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """Reservations to move to this node, each with the row it comes from.

        Asked when the node of this row has changed and has an empty node queue, and only of policies whose
        traits say that they steal.
        """
        return iter(())


class Relieve(Policy, ABC):
    """Which pods must make room for tasks that were refused? Kubernetes' counterpart is PostFilter."""

    @property
    def traits(self) -> RelieveTraits:
        """What it says of itself."""
        return _RELIEVE

    @abstractmethod
    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """Make room for some of the refused tasks, the first ones first.

        Asked when tasks of the class are refused, and again later while tasks are left.
        """

    def next_at(self, view: View) -> float:
        """When more might be done for the tasks asked about last, though nothing happens; seconds.

        Asked where nothing was done for them. inf: at no time that is known.
        """
        return inf

    def relieve_gang(self, view: View, refused: RefusedGang) -> Iterator[ReliefAction]:
        """Make room for as many of the tasks as start together, or for none; by default for none.

        Asked about gangs of pools, where the policy takes room back. Nobody may be evicted before so many
        tasks are nominated; room that is held for fewer is given up.
        """
        return iter(())


class Siblings(Protocol):
    """The tasks of one job, stage and class that have opted in; copies are not among them."""

    @property
    def running(self) -> Mapping[str, "Attempt"]:
        """Those that run, by uid."""

    @property
    def ended(self) -> Sequence[float]:
        """For how long each that has succeeded has run, seconds, ascending; of very many the last ones."""

    @property
    def ended_count(self) -> int:
        """How many have succeeded."""

    @property
    def tasks(self) -> int:
        """How many there are, as far as is known: they wait, run or have succeeded."""


class Attempt(Protocol):
    """A running task that has opted in."""

    @property
    def task(self) -> Task:
        """As last seen."""

    @property
    def row(self) -> int:
        """Of its node."""

    @property
    def age(self) -> float:
        """For how long its container runs, seconds; above 0."""

    @property
    def usual_rate(self) -> float:
        """Tasks a second that its node serves, as was believed before it has itself shown that it is slow."""

    @property
    def progress(self) -> float | None:
        """The part of its work that is done, 0..1, as it has said last: never falling. None: it says none."""

    @property
    def siblings(self) -> Siblings:
        """Its group, itself among them."""

    @property
    def past(self) -> Sequence[tuple[str, float]]:
        """Node and run time, in seconds, of the last tasks of its kind that have ended, of whatever job."""


class Straggler(NamedTuple):
    """Why an attempt should get a copy; both in seconds."""

    left: float  # what it is expected to need more
    elsewhere: float  # what a copy is expected to take, with its start
    why: str  # in words
    restart: bool = False  # it should be ended, so that its Job makes another pod, and get no copy


class Speculate(Policy, ABC):
    """Which running tasks are late, so that copies of them are worth their room? Kubernetes has none."""

    @property
    def traits(self) -> SpeculateTraits:
        """What it says of itself, with its settings."""
        return _SPECULATE

    @abstractmethod
    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """Whether the attempt is a straggler, and what a copy saves; None if it is not worth one.

        Asked some times in the life of each attempt, more seldom the longer it runs, whether or not pods
        wait; not about one that has had a copy.
        """

    # Optional.

    def too_slow(self, view: View, task: Task) -> Sequence[int]:
        """The rows of the nodes on which no copy of this running task is put, whatever Place prefers."""
        return ()


class Waited(Struct, frozen=True, gc=False):
    """How the tasks of a class queue have waited for nodes with their data, since one has started there.

    Level 0 is a node with the data, the last one any node; between them are those of the policy's traits.
    """

    level: int = 0  # at which the last one has started
    seconds: float = 0.0  # for which a node had room for them that stayed unused
    offers: int = 0  # nodes that got room for them; each counts once, until it is full and gets room again
    tasks: int = 1  # the most that were in the queue


class Reach(NamedTuple):
    """How far a task may go now: to nodes of this level or a nearer one.

    And after how many seconds and nodes in all of `Waited` it may go further, if none starts before.
    """

    level: int
    seconds: float = inf
    offers: float = inf


class Hold(Policy, ABC):
    """Does a task wait for a node with its data, or take another one? Kubernetes has no counterpart.

    The engine chooses which task of a class queue starts: the first that has its data on a node with room,
    on nodes of the nearest level first. A task without data never waits.
    """

    @property
    def traits(self) -> HoldTraits:
        """What it says of itself, with its settings."""
        return _HOLD

    @abstractmethod
    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        """How far the tasks of the class queue of this head may go.

        Asked where a node has room for them and none of the nearest level has; again when it has said that
        they may go further, and when another node has room.
        """

    def launched(self, waited: Waited, level: int) -> Waited:
        """What counts as waited after a task of the queue has started on a node of this level."""
        return Waited(level, tasks=waited.tasks)


class Profile(Struct, frozen=True):
    """One schedulerName and the policies that decide for its pods."""

    scheduler_name: str
    order: Order
    place: Place
    line: Line
    relieve: Relieve
    speculate: Speculate
    hold: Hold
    settings: ProfileSettings = field(default_factory=ProfileSettings)


def needs_of(profiles: Iterable[Profile], learn: Learn) -> Mapping[Need, frozenset[str]]:
    """What the profiles and the learner need -> the schedulerNames of the profiles that do.

    What the learner needs, all do. A profile that evicts needs budgets, and one that spreads pods by default
    needs to know of the objects by which it finds them.
    """
    found: dict[Need, set[str]] = {}
    for each in profiles:
        needs: set[Need] = set(learn.traits.needs)
        roles = (each.order, each.place, each.line, each.relieve, each.speculate, each.hold)
        needs.update(*(policy.traits.needs for policy in roles))
        if each.relieve.traits.evicts or each.place.traits.preempts:
            needs.add("budgets")
        if each.settings.topology_spread.constraints:
            needs.add("spread objects")
        for need in needs:
            found.setdefault(need, set()).add(each.scheduler_name)
    return {need: frozenset(names) for need, names in found.items()}


def groupings_of(profiles: Iterable[Profile], fault: Callable[[Policy, str], None]) -> Iterator[Grouping]:
    """How policies that need shares group pods. `fault`: takes the defects of their `counted_by`."""
    for each in profiles:
        for policy in (each.order, each.place):
            if "shares" in policy.traits.needs:
                by_path = isinstance(policy, Order) and (
                    policy.traits.ranks_by_path or policy.traits.ranks_prefixes
                )
                yield Grouping(policy, policy.counted_by, partial(fault, policy), by_path)
