"""Pool: a part of the cluster that pods of some namespaces share, with a weight, a minimum and a maximum.

The types follow the definition in the chart's files/crds field by field, in camel case there. Users write the
spec, the operator the conditions, and the scheduler the rest of the status.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert

from eclectus.api.common import Condition, ObjectMeta, without_nulls
from eclectus.api.names import POOL
from eclectus.model.errors import MalformedError

MAX_RESOURCES = 16  # of a minimum or a maximum
MAX_KINDS = 16  # of nodes, of which a minimum or a maximum states amounts
MAX_NAMESPACES = 256  # that a pool lists by name
MAX_WEIGHT = 1_000_000.0
MAX_PREEMPTION_SECONDS = 1_000_000_000.0
MAX_LEVELS = 8  # of the tree: a pool that is deeper does not count
POOL_NAME_CHARACTERS = 63  # it is a label value of pods and namespaces
READY = "Ready"  # type of its condition

Quantities = Mapping[str, str | int | float]
SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class NodeShare(Struct, frozen=True):
    """Amounts by resource, of what is held on nodes with this value of a label."""

    key: str
    value: str
    amounts: Quantities = {}


class PoolShare(Struct, frozen=True, rename="camel"):
    """Amounts by resource, and the part of what the parent has of every other resource, percent."""

    amounts: Quantities = {}
    percent: float | None = None
    by_node: tuple[NodeShare, ...] = ()


class PoolExpression(Struct, frozen=True):
    """A condition on a label of namespaces."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()


class PoolSelector(Struct, frozen=True, rename="camel"):
    """A selector of namespaces; an empty one selects all."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[PoolExpression, ...] = ()


class PoolNamespaces(Struct, frozen=True):
    """The namespaces whose pods may name the pool. `selector` None: none but those of `names`."""

    names: tuple[str, ...] = ()
    selector: PoolSelector | None = None


class PoolPreemption(Struct, frozen=True, rename="camel"):
    """When the pool takes room back, and what may be taken from it. None of a time: never."""

    min_share_seconds: float | None = None
    fair_share_seconds: float | None = None
    fair_share_threshold: float = 0.5
    min_runtime_seconds: float = 0.0
    allow_from: bool = True
    dry_run: bool = False


class PoolSpec(Struct, frozen=True, rename="camel"):
    """Where the pool is in the tree, what it is entitled to, and whose pods may belong to it."""

    parent: str = ""
    weight: float = 1.0
    min_share: PoolShare = PoolShare()
    max_share: PoolShare = PoolShare()
    policy: Literal["fair", "fifo", "sjf", "srtf"] = "fair"
    max_running_jobs: int | None = None
    altruism: float = 1.0
    namespaces: PoolNamespaces = PoolNamespaces()
    preemption: PoolPreemption = PoolPreemption()
    suspend: bool = False


class PoolStatus(Struct, frozen=True, rename="camel"):
    """What the scheduler measures, and the operator's conditions."""

    held: Quantities = {}
    held_by_node: tuple[NodeShare, ...] = ()
    demand: Quantities = {}
    share: Quantities = {}
    waiting_pods: int = 0
    running_jobs: int = 0
    below_min_share_since: str | None = None
    below_fair_share_since: str | None = None
    conditions: tuple[Condition, ...] = ()


class Pool(Struct, frozen=True):
    """A Pool."""

    metadata: ObjectMeta
    spec: PoolSpec = PoolSpec()
    status: PoolStatus = PoolStatus()


def pool_of(name: str, content: Mapping[str, Any]) -> Pool:
    """A Pool from the content of its JSON; null means not set. Raises MalformedError naming the field."""
    parts = {part: without_nulls(content.get(part) or {}) for part in ("spec", "status")}
    try:
        return convert({"metadata": content["metadata"], **parts}, Pool)
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise MalformedError(POOL, name, path.rstrip("`").lstrip("."), problem) from error
