"""Which pods on nodes may be ended for others, because they say that their work may begin anew."""

from collections.abc import Iterator

from eclectus.model.objects import Task


class RestartablePods:
    """The uids of these pods. What else keeps one of them where it is, a policy looks at."""

    def __init__(self) -> None:
        self._uids: dict[str, None] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._uids)

    def __reversed__(self) -> Iterator[str]:
        """The newest first: those that have got their nodes last."""
        return reversed(self._uids)

    def hold(self, task: Task) -> None:
        """A pod has a node, or room is held for it."""
        if task.restartable:
            self._uids[task.uid] = None

    def release(self, uid: str) -> None:
        """It holds nothing any more; no error if it is none of them."""
        self._uids.pop(uid, None)

    def regroup(self, task: Task) -> None:
        """Labels, by which others count it, say nothing of this."""
