"""Delay scheduling: a task waits a little for a node with its data, because one is likely to be free soon.

Zaharia and others, "Delay Scheduling: A Simple Technique for Achieving Locality and Fairness in Cluster
Scheduling", EuroSys 2010, in the form of the Hadoop Fair Scheduler: a wait for each level of nearness, beside
which nodes that are passed over may be counted. Departures:
- time counts only while a node had room that stayed unused. Hadoop counts all time from one chance to the
  next, and Spark's first clock began again with each start: both kept machines idle (SPARK-18886);
- a node counts as passed over once, when it gets room; heartbeats there are none;
- what ends a wait is whichever comes first, the time or the count. The paper has one or the other, and with a
  count alone a cluster in which nothing ends would keep tasks waiting for ever;
- whether waiting pays is learned (maths/data_gain.py), and a task waits for a node with its data no longer
  than pays by what runs there (maths/next_slot.py). The paper takes for granted that it pays, and warns of
  long tasks on these nodes.
"""

from dataclasses import dataclass
from math import ceil, inf

from msgspec.structs import replace

from eclectus.cluster.locality import names_of
from eclectus.framework import Hold, HoldTraits, Reach, SettingsError, Task, View, Waited, setting
from eclectus.maths.delay import skips_for

WAIT_MOST = 3600.0


@dataclass(frozen=True)
class Level:
    """Nodes with one value of a label, and how long to wait for one of them."""

    key: str
    wait: float = setting(
        10.0,
        "how long tasks wait for a node with this label's value in common with a node that has their data",
        why="twice the wait for such a node itself: within a rack reading costs little",
        unit="s",
        least=0,
        most=WAIT_MOST,
    )

    def __post_init__(self) -> None:
        if not self.key:
            raise SettingsError("key", "must name a label of nodes, such as topology.kubernetes.io/zone")


@dataclass(eq=False)
class Delay(Hold):
    """Tasks with data wait for nodes near these, as long as that is short."""

    node_wait: float = setting(
        5.0,
        "how long at most tasks wait for a node that has their data while other nodes have room for them",
        why="published: nearly all tasks find their data with 5 s, seven of ten with 1 s",
        unit="s",
        least=0,
        most=WAIT_MOST,
    )
    levels: tuple[Level, ...] = setting(
        (),
        "labels of nodes by which others are near the data, the nearest first, each with its wait: a rack, "
        "then perhaps a zone",
        why="Kubernetes has no label for racks; without any, a node with the data is followed by all others",
    )
    skips: int | None = setting(
        None,
        "after how many nodes that got room and were passed over tasks go to any node, before their waits "
        "are over. null: only the waits end it, or targetLocality",
        why="time is easier to choose",
        least=0,
        most=1_000_000,
    )
    target_locality: float | None = setting(
        None,
        "the share of a job's tasks that shall start where their data are: makes skips, by the paper's "
        "formula, from how many tasks wait, how many nodes there are and how many of them have the data. "
        "null: not used",
        why="time is easier to choose",
        least=0.01,
        most=0.999,
    )

    least_gain: float | None = setting(
        1.05,
        "how many times as long pods of a namespace and class must take away from their data for others of "
        "them to wait; learned from those that have ended. null: they wait in any case, whatever they "
        "gain and whatever runs there",
        why="a wait is certain and what it saves is not, so little does not pay",
        least=1,
        most=1000,
    )

    def __post_init__(self) -> None:
        if self.skips is not None and self.target_locality is not None:
            raise SettingsError("targetLocality", "makes skips, so leave one of the two out")
        keys = [each.key for each in self.levels]
        if len(set(keys)) < len(keys):
            raise SettingsError("levels", "name a label twice; a second wait for it would be for nothing")
        self._waits = (self.node_wait, *(each.wait for each in self.levels))
        self._traits = HoldTraits(waits=True, levels=tuple(keys), longest=sum(self._waits))

    @property
    def traits(self) -> HoldTraits:
        """Its levels, and the sum of all waits."""
        return self._traits

    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        """By the waits from the level of the last start on; any node for starved pools and trials."""
        last = len(self._waits)
        skips = self._skips(view, head, waited)
        is_over = skips is not None and waited.offers >= skips
        if is_over or _is_starved(view, head) or not self._pays(view, head):
            return Reach(last)
        level, until = self._widened(waited)
        if not level and (more := self._worth(view, head, until - waited.seconds)) is not None:
            over = replace(waited, seconds=until)
            level, until = (0, waited.seconds + more) if more else self._widened(over)
        return Reach(level, until) if skips is None or level == last else Reach(level, until, skips)

    def launched(self, waited: Waited, level: int) -> Waited:
        """The wait begins again; the nodes that were passed over count on until a task starts at its data.

        A start farther off than by the waits was allowed for another reason, and opens no level to the next.
        """
        offers = waited.offers if level else 0
        return Waited(min(level, self._widened(waited)[0]), offers=offers, tasks=waited.tasks)

    def _widened(self, waited: Waited) -> tuple[int, float]:
        """The level that the waits allow, from that of the last start on, and until when, seconds."""
        until, last = 0.0, len(self._waits)
        for level in range(min(waited.level, last), last):
            until += self._waits[level]
            if waited.seconds < until:
                return level, until
        return last, inf

    def _pays(self, view: View, head: Task) -> bool:
        """Whether tasks of its kind are to wait: they are until it is known that it gains nothing."""
        gain = None if self.least_gain is None else view.data_gains.of(head.namespace, head.workload)
        if gain is None or self.least_gain is None:
            return True
        ratio = gain.ratio
        return not gain.wants_trial and (ratio is None or ratio >= self.least_gain)

    def _worth(self, view: View, head: Task, most: float) -> float | None:
        """For how long a wait for a node with the data pays by what runs there; None if that is not known."""
        slot = None if self.least_gain is None else view.near_slots.next(head, view.now)
        if slot is None:
            return None
        gain = view.data_gains.of(head.namespace, head.workload)
        saved = None if gain is None else gain.saved_seconds
        return slot.best_wait(inf if saved is None else saved, most)

    def _skips(self, view: View, head: Task, waited: Waited) -> int | None:
        if self.target_locality is None:
            return self.skips
        nodes = len(view.cluster)
        copies = sum(name in view.cluster.rows for name in names_of(head.inputs))
        return ceil(skips_for(self.target_locality, waited.tasks, nodes, max(copies, 1)))


def _is_starved(view: View, task: Task) -> bool:
    """Whether its pool may take back room now, for its minimum or its share."""
    return bool(task.pool) and any(view.starvation.claims(task, view.now))
