"""Lists of the aggregated API: what a request asks for, and the page that answers it, as objects or a table.

A page has at most so many items, also where the request names no limit: `metadata.continue` then says that
there are more, and is what `continue` must be for the next one. It names the last item, so it never expires.

kubectl asks for a table and prints its columns, those of priority 1 with `-o wide` alone.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from eclectus.api.names import VISIBILITY_API
from eclectus.kubeclient.serving.pages import QueryError
from eclectus.model.explanation import Listed, Oldest, PendingPod, PoolStanding
from eclectus.model.learned import LearnedNode
from eclectus.model.printed import ABSENT, amount_text, shortened, span

ITEMS_MOST = 500  # of a page, as kubectl asks for: some milliseconds
TOKEN_MOST = 1024  # characters; that of a pod has at most half as many
NOT_SERVED = ("watch", "labelSelector", "fieldSelector")  # to leave these out of account would mislead

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Asked(Generic[Key]):
    """What a request asks for: so many items, those after one, as a table or as objects."""

    limit: int
    after: Key | None
    is_table: bool


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: Literal["string", "integer", "number"]
    priority: Literal[0, 1]  # 0: always shown; 1: with -o wide
    description: str


@dataclass(frozen=True)
class ListKind(Generic[Item, Key]):
    """A kind that is listed.

    `key`: by what its items are in order. The last three are the parts of an item: as an object, and its
    cells in the order of the columns. `names_others`: whether an item may name what its reader may not read.
    """

    kind: str
    key: type[Key]
    names_others: bool
    columns: Sequence[Column]
    metadata_of: Callable[[Item], dict[str, Any]]
    fields_of: Callable[[Item], dict[str, Any]]
    cells_of: Callable[[Item], list[str | int]]

    def asked(self, query: Mapping[str, str], accept: str) -> Asked[Key]:
        """What a request with this query and header Accept asks for. Raises QueryError."""
        for name in NOT_SERVED:
            if query.get(name, "false") not in ("", "false", "0"):
                raise QueryError(f"{name} is not served here: ask for the whole list, page by page")
        limit = query.get("limit", "0")
        if not re.fullmatch("[0-9]{1,9}", limit):
            raise QueryError(f"limit must be a whole number, not {limit[:20]!r}")
        token = query.get("continue", "")
        after = self._after(token) if token else None
        return Asked(min(int(limit) or ITEMS_MOST, ITEMS_MOST), after, wants_table(accept))

    def _after(self, token: str) -> Key:
        try:
            if len(token) > TOKEN_MOST:
                raise ValueError
            return msgspec.json.decode(urlsafe_b64decode(token.encode()), type=self.key)
        except (ValueError, msgspec.MsgspecError):
            raise QueryError("continue must be what the page before has in metadata.continue") from None

    def page(self, found: Listed[Item, Key], *, is_table: bool) -> bytes:
        """The answer in JSON."""
        token = urlsafe_b64encode(msgspec.json.encode(found.last)).decode()
        metadata = {"continue": token, "remainingItemCount": found.left} if found.left else {}
        if not is_table:
            head = {"kind": f"{self.kind}List", "apiVersion": VISIBILITY_API, "metadata": metadata}
            objects = [{"metadata": self.metadata_of(each), **self.fields_of(each)} for each in found.items]
            return msgspec.json.encode({**head, "items": objects})
        head = {"kind": "Table", "apiVersion": TABLE_API, "metadata": metadata}
        columns = [{**each._asdict(), "format": FORMATS.get(each.name, "")} for each in self.columns]
        rows = [{"cells": self.cells_of(each), "object": self._named(each)} for each in found.items]
        return msgspec.json.encode({**head, "columnDefinitions": columns, "rows": rows})

    def _named(self, item: Item) -> dict[str, Any]:
        """What names the item of a row: kubectl prints namespaces by it."""
        head = {"kind": "PartialObjectMetadata", "apiVersion": TABLE_API}
        return {**head, "metadata": self.metadata_of(item)}


TABLE_API = "meta.k8s.io/v1"
FORMATS = {"Name": "name"}  # by which kubectl knows the column


def wants_table(accept: str) -> bool:
    """Whether a table is the first of the forms asked for that there is."""
    for each in accept.split(","):
        form, *rest = (part.strip() for part in each.split(";"))
        options = dict(part.partition("=")[::2] for part in rest)
        asked = options.get("as"), f"{options.get('g')}/{options.get('v')}"
        if form == "application/json" and asked == ("Table", TABLE_API):
            return True
        if form in ("application/json", "application/*", "*/*") and "as" not in options:
            return False
    return False


# -- pods that wait -----------------------------------------------------------------------------------


def _pod_metadata(pod: PendingPod) -> dict[str, Any]:
    created = None if pod.created is None else datetime.fromtimestamp(pod.created, UTC)
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "creationTimestamp": None if created is None else created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _pod_fields(pod: PendingPod) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(pod)
    for name in ("namespace", "name", "uid", "created"):  # which are in the metadata
        del fields[name]
    return fields


def _pod_cells(pod: PendingPod) -> list[str | int]:
    return [
        pod.name,
        pod.state,
        ABSENT if pod.ahead is None else str(pod.ahead),
        pod.priority,
        _span(pod.age),
        _span(pod.since),
        pod.scheduler_name,
        pod.group or ABSENT,
        shortened(" ".join(pod.reason.split())),
    ]


def _span(seconds: float | None) -> str:
    return ABSENT if seconds is None else span(seconds)


PENDING_POD = ListKind[PendingPod, Oldest](
    kind="PendingPod",
    key=Oldest,
    names_others=False,  # who may list the pods of a namespace may read all that is said of them
    columns=(
        Column("Name", "string", 0, "Name of the pod."),
        Column("State", "string", 0, "Where it waits."),
        Column("Ahead", "string", 0, "How many pods are before it in its queue."),
        Column("Priority", "integer", 0, "Its priority."),
        Column("Age", "string", 0, "For how long it has existed."),
        Column("Since", "string", 1, "For how long it has been in this state, where that is known."),
        Column("Scheduler", "string", 1, "Its schedulerName."),
        Column("Group", "string", 1, "By which the Order ranks it: a job, a namespace or a pool."),
        Column("Reason", "string", 0, "Why it waits, shortened."),
    ),
    metadata_of=_pod_metadata,
    fields_of=_pod_fields,
    cells_of=_pod_cells,
)


# -- nodes --------------------------------------------------------------------------------------------


def _node_fields(node: LearnedNode) -> dict[str, Any]:
    return {
        "state": node.state,
        "speed": node.speed if node.work else None,
        "confidence": node.confidence,
        "price": node.price,
        "classes": [
            {
                "name": each.workload,
                "rate": each.rate,
                "samples": each.samples,
                "confidence": each.confidence,
                "price": each.price,
            }
            for each in node.work
        ],
    }


def _node_cells(node: LearnedNode) -> list[str | int]:
    return [
        node.node,
        f"{node.speed:.2f}" if node.work else ABSENT,
        node.state,
        f"{node.confidence:.0%}",
        sum(each.samples for each in node.work),
        ABSENT if node.price is None else f"{node.price:.2f}",
        len(node.work),
    ]


NODE_SPEED = ListKind[LearnedNode, str](
    kind="NodeSpeed",
    key=str,
    names_others=True,  # classes of work of namespaces
    columns=(
        Column("Name", "string", 0, "Name of the node."),
        Column("Speed", "string", 0, "Learned over all work; 1 is a typical node."),
        Column("State", "string", 0, "What the learner believes of it."),
        Column("Confidence", "string", 0, "Probability that the speed is within a third of the true one."),
        Column("Samples", "integer", 0, "Of the classes of work that the reader may see."),
        Column("Price", "string", 1, "Demand over supply of the constraints that it satisfies."),
        Column("Classes", "integer", 1, "How many classes of work with samples the reader may see."),
    ),
    metadata_of=lambda node: {"name": node.node},
    fields_of=_node_fields,
    cells_of=_node_cells,
)


# -- pools --------------------------------------------------------------------------------------------


def _pool_cells(pool: PoolStanding) -> list[str | int]:
    shares = ((each.resource, each.share) for each in pool.resources)
    held = ((each.resource, each.held) for each in pool.resources)
    least = ((each.resource, each.least) for each in pool.resources)
    below = pool.below_share if pool.below_minimum is None else pool.below_minimum
    amounts = (_amounts(each) for each in (least, shares, held))
    return [_pool_name(pool), *amounts, pool.waiting_pods, _span(below), pool.running_jobs, pool.path]


def _pool_name(pool: PoolStanding) -> str:
    return pool.path.rpartition("/")[2]


def _amounts(amounts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(amount_text(name, amount) for name, amount in amounts if amount) or ABSENT


POOL_STANDING = ListKind[PoolStanding, str](
    kind="PoolStanding",
    key=str,
    names_others=False,
    columns=(
        Column("Name", "string", 0, "Name of the Pool."),
        Column("Min", "string", 0, "Its minimum."),
        Column("Share", "string", 0, "What it is entitled to now."),
        Column("Held", "string", 0, "What its pods hold."),
        Column("Waiting", "integer", 0, "How many of its pods wait."),
        Column(
            "Starved",
            "string",
            0,
            "For how long it has had less than its minimum, or far less than its share.",
        ),
        Column("Jobs", "integer", 1, "How many of its jobs run."),
        Column("Path", "string", 1, "From the root."),
    ),
    metadata_of=lambda pool: {"name": _pool_name(pool)},
    fields_of=msgspec.to_builtins,
    cells_of=_pool_cells,
)
