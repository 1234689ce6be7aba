"""The Learn role: what a learner is informed of, and what it answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.framework.traits import Policy, Traits
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary, NodeState
from eclectus.model.objects import Amounts


class Completion(Struct, frozen=True, gc=False):
    """A task has run to its end on a node, or was overtaken there: one sample for the learner."""

    row: int
    workload: str
    seconds: float  # from container start to container end, without queueing and image pull
    at: float  # when the scheduler saw that it had ended, seconds: independent of the kubelet's clock
    requests: Amounts = ()
    is_probe: bool = False
    uid: str = ""  # of the task, as in `started`; empty if it was not seen running
    turnaround: float | None = None  # seconds that it held its slot beside its run; None where unknown
    progress: float | None = None  # of one that has not ended: what part of its work is done, if it says so


class Speeds(Struct, frozen=True):
    """The learned speed of every node for one kind of work.

    `rate`: tasks a second that one slot serves, its turnaround included (maths/turnaround.py); shape
    [capacity], read-only. `most`: an upper bound of all rates.
    `epoch` changes whenever all rows may have changed at once; a single row changes only together with an
    entry in the cluster's usage change log. `differ`: whether nodes are known to differ by more than chance,
    apart from `share`, the part of its learned speed with which a silent or dead node counts; shape
    [capacity], None where that is all of it on every node.
    """

    rate: NDArray[np.float64]
    most: float
    epoch: int
    differ: bool = True
    share: NDArray[np.float64] | None = None


class LearnedCell(Struct, frozen=True, gc=False):
    """What was learned of one node for one kind of work, for people."""

    node: str
    workload: str
    rate: float  # tasks a second in one slot
    samples: int
    confidence: float = 0.0  # probability that the rate is within a third of the truth, 0..1
    state: NodeState = "live"  # of the node
    newest_at: float | None = None  # when the newest sample was taken, seconds


_PLAIN = Traits()


class Learn(Policy, ABC):
    """How fast is every node? One learner serves all profiles, because they share the nodes."""

    @property
    def traits(self) -> Traits:
        """What it says of itself: whether it needs task arrivals, start times and task ends."""
        return _PLAIN

    @abstractmethod
    def speeds(self, workload: str) -> Speeds:
        """The speed of every node for this kind of work. Called with every decision, so it must be cheap."""

    # Optional.

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """Node `node` now has row `row` of arrays of length `capacity`."""

    def remove_node(self, row: int) -> None:
        """The node of this row is gone."""

    def observe(self, done: Completion) -> None:
        """A task has run to its end."""

    # These three only of tasks that may have copies, and of copies.

    def overtaken(self, run: Completion) -> None:
        """A task would have run on, but another attempt of it has ended, or it was deleted.

        `seconds` is how long it ran.
        """

    def runs_on(self, run: Completion) -> bool:
        """A task has run for `seconds` and has not ended; said again and again of the same task.

        Whether that counts in what is learned of its node.
        """
        return False

    def runs_no_more(self, uid: str, workload: str) -> None:
        """The same task has ended or is gone."""

    # The engine calls these three only of a learner that needs them.

    def arrived(self, workload: str, now: float) -> None:
        """A task that ends by itself is pending here, or was bound by another scheduler; once a task."""

    def started(self, uid: str, row: int, workload: str, now: float, requests: Amounts) -> None:
        """A task of any scheduler that ends by itself was seen running; possibly more than once."""

    def left(self, uid: str, now: float) -> None:
        """A task has ended, failed or was deleted; it may never have been seen running."""

    def turnaround(self, workload: str) -> float:
        """For how long a slot is held beside the run of such a task, seconds; 0 where that is not learned."""
        return 0.0

    def known_speeds(self, workload: str) -> Speeds:
        """What `speeds` has answered last: to be asked between two steps, it brings nothing up to date."""
        return self.speeds(workload)

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Every pair of node and kind of work that has samples, in the order of the nodes' names.

        `after`: only nodes whose names come after this one. Nodes may change while this is read.
        """
        return iter(())

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """What was learned of every node, as values that another process can recall."""
        return iter(())

    def learned_node(self, node: str) -> LearnedNode | None:
        """What was learned of one node, without samples too; None where the learner has nothing to say."""
        return next((each for each in self.learned_nodes() if each.node == node), None)

    def learned_load(self, now: float) -> LearnedLoad | None:
        """Arrivals and capacity of all nodes together; None where the learner does not estimate them."""
        return None

    def summary(self, groups: NDArray[np.intp], now: float) -> LearnedSummary | None:
        """What was learned, by group of nodes; None where the learner has no summary.

        `groups`: the group of each row, -1 for none, shape [capacity].
        """
        return None

    def recall(self, learned: LearnedNode) -> None:
        """Take over what was learned of a node before, not after now, or elsewhere; it has a row."""
