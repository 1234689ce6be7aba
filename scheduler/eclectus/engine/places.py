"""Where a pending pod can be, and the ways between these places."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal

from eclectus.engine.queues.class_queues import Queued
from eclectus.model.objects import Reservation

PodPlace = Literal[
    "arriving",
    "deleting",
    "gated",
    "gang",
    "lead",
    "classQueue",
    "nodeQueue",
    "heldBack",
    "backOff",
    "assumed",
]

MOVES: Final[Mapping[PodPlace | None, frozenset[PodPlace | None]]] = {  # None: the pod is not pending here
    None: frozenset({"arriving", "deleting", "gated", "gang", "classQueue", "backOff"}),
    "arriving": frozenset({None, "deleting", "gated", "gang", "classQueue", "backOff"}),
    "deleting": frozenset({None, "deleting"}),
    "gated": frozenset({None, "deleting", "gated", "gang", "classQueue", "backOff"}),
    "gang": frozenset({None, "deleting", "gated", "gang", "lead", "classQueue", "backOff", "assumed"}),
    "lead": frozenset({None, "deleting", "gated", "gang", "classQueue", "backOff"}),
    "classQueue": frozenset(
        {
            None,
            "arriving",
            "deleting",
            "gated",
            "gang",
            "classQueue",
            "nodeQueue",
            "heldBack",
            "backOff",
            "assumed",
        }
    ),
    "nodeQueue": frozenset(
        {None, "deleting", "gated", "gang", "classQueue", "heldBack", "backOff", "assumed"}
    ),
    "heldBack": frozenset({None, "deleting", "gated", "gang", "classQueue", "backOff"}),
    "backOff": frozenset({None, "deleting", "gated", "gang", "classQueue", "backOff", "assumed"}),
    "assumed": frozenset({None, "deleting", "gated", "backOff"}),
}

IN_A_GANG: Final = frozenset({"gang", "lead"})  # places of pods that wait to be placed together


class Places:
    """Where a pending pod of ours is: in exactly one place. Written by State only.

    place       the pod                                            handle
    ---------   ------------------------------------------------   ------------------------------------
    arriving    its spec is completed in a later step (fuel)       -
    deleting    is being deleted, and is not placed any more       -
    gated       has scheduling gates                               -
    gang        waits for the other pods of its gang               -
    lead        is in a class queue for its whole gang             Queued
    classQueue  waits for its turn, for room, or for a time        Queued
    nodeQueue   waits at one node or several                       Reservation
    heldBack    waits for room in its pool                         -
    backOff     failed, and is tried again later                   when, seconds
    assumed     has a node, and its bind is under way              -

    What takes a pod out of its place, how many pods are where, and why a pod waits follow from this table.
    `MOVES` has the ways between the places. Whether the pods of a class queue are active, deferred, withheld
    or unschedulable is said of their class (queues/class_queues.py). A nomination changes no place: room
    elsewhere may come first.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[PodPlace, Any]] = {}

    def counts(self) -> Counter[PodPlace]:
        """How many pods are in each place. O(pods): a count that every move keeps would cost every pod."""
        return Counter(place for place, _ in self._of.values())

    def of(self, uid: str) -> PodPlace | None:
        """The place of a pod; None if it is not pending here."""
        found = self._of.get(uid)
        return None if found is None else found[0]

    def entry(self, uid: str) -> tuple[PodPlace | None, Any]:
        """The place of a pod and its handle; None and None if it is not pending here."""
        return self._of.get(uid, (None, None))

    def queued(self, uid: str) -> Queued | None:
        """The entry of a pod, or of the lead of a gang, in a class queue; None if it is in none."""
        place, handle = self._of.get(uid, (None, None))
        return handle if place in ("classQueue", "lead") else None

    def reservation(self, uid: str) -> Reservation | None:
        """The reservation behind which a pod waits at nodes; None if it is in no node queue."""
        place, handle = self._of.get(uid, (None, None))
        return handle if place == "nodeQueue" else None

    def move(self, uid: str, place: PodPlace, handle: Any = None) -> None:
        """Note that the pod is in this place now."""
        self._of[uid] = (place, handle)

    def forget(self, uid: str) -> None:
        """Note that the pod is bound or gone; no error if it was in no place."""
        self._of.pop(uid, None)
