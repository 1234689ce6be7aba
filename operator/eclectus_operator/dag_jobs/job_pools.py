"""Whether the Pools that jobs ask for take their pods, and why not.

The scheduler decides that for each pod (accounts/pool_tree.py): one that its Pool does not take is in that
of its namespace. Here the same is found out for the job, from the Pools, their conditions, and the labels of
the namespace. It is read at each look at all jobs, and again before a job is said to be refused which was
not: its Pool may have been made a moment before it.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec import Struct

from eclectus.api import pool as api
from eclectus.api.common import Condition, ObjectMeta
from eclectus.api.dag_job import POOL_REFUSED, DagJob
from eclectus.api.names import POOL_LABEL, POOLS_PATH
from eclectus.kube.pools import minimum_problem, pool_from
from eclectus.kubeclient.api_errors import ApiError, MissingError, NotDoneError
from eclectus.kubeclient.client import Object, list_pages
from eclectus.model.errors import MalformedError
from eclectus.model.pool import AT_THE_TOP, DEFAULT, REFUSALS, Pool, admits_pods, refusal_of
from eclectus_operator import convert
from eclectus_operator.convert import ShapeError
from eclectus_operator.operator_context import OperatorContext

FRESH_SECONDS = 1.0  # so old may be what is known when a job is first said to be refused
COUNTING = ("Accepted", "MinimaExceedParent")  # reasons of the condition Ready of a Pool that counts
_log = logging.getLogger(__name__)


class _Namespace(Struct, frozen=True):
    metadata: "_Labelled"


class _Labelled(Struct, frozen=True):
    labels: Mapping[str, str] = {}


@dataclass(frozen=True)
class KnownPool:
    """A Pool that can be read. `is_valid`: its condition does not say that it does not count."""

    pool: Pool
    is_valid: bool


class JobPools:
    """The Pools of the cluster, and the labels of the namespaces whose jobs ask for some."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._pools: dict[str, KnownPool] = {}  # by name
        self._labels: dict[str, Mapping[str, str] | None] = {}  # by namespace; None: they cannot be read
        self._read_at = float("-inf")

    def __bool__(self) -> bool:
        """Whether there is any Pool."""
        return bool(self._pools)

    async def look(self) -> None:
        """Read all Pools; labels of namespaces when they are asked for. Raises ApiError."""
        found = dict[str, KnownPool]()
        try:
            async for page in list_pages(self._context.api, POOLS_PATH):
                found.update((each.pool.name, each) for each in map(known_pool, page) if each is not None)
        except MissingError:
            pass  # they are not defined here: there are none
        self._pools, self._read_at = found, self._context.now()
        self._labels.clear()

    async def refusal(self, job: DagJob) -> str:
        """Why pods of the job are not in the Pool that it asks for; empty if they are, or there is no Pool.

        Raises ApiError where the Pools cannot be read.
        """
        found = await self._refusal(job)
        is_old = self._context.now() - self._read_at >= FRESH_SECONDS
        if found and is_old and job.status.condition(POOL_REFUSED) is None:
            await self.look()
            found = await self._refusal(job)
        return found

    async def _refusal(self, job: DagJob) -> str:
        asked, namespace = dict(asked_pools(job)), job.metadata.namespace
        if not asked or not self._pools:
            return ""
        if namespace not in self._labels:
            self._labels[namespace] = await self._read_labels(namespace)
        labels = self._labels[namespace]
        if labels is None:
            return ""
        problems = (refusal(name, field, namespace, labels, self._pools) for name, field in asked.items())
        return "; ".join(filter(None, problems))

    async def _read_labels(self, namespace: str) -> Mapping[str, str] | None:
        try:
            found = await self._context.api.send("GET", f"/api/v1/namespaces/{namespace}")
        except NotDoneError:
            raise
        except ApiError as error:
            _log.warning("%s: whether its Pools take its DagJobs is not known: %s", namespace, error)
            return None
        return convert.read_authored(found, _Namespace).metadata.labels


class _Listed(Struct, frozen=True):
    metadata: ObjectMeta
    spec: api.PoolSpec = api.PoolSpec()


class _Status(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


def known_pool(found: Object) -> KnownPool | None:
    """A Pool of a list; None for one that the scheduler takes for gone, as its condition says."""
    try:
        listed = convert.read_authored({"metadata": found["metadata"], "spec": found.get("spec")}, _Listed)
        pool = pool_from(api.Pool(listed.metadata, listed.spec))
        conditions = convert.read(found.get("status") or {}, _Status).conditions
    except (ShapeError, MalformedError):
        return None
    if minimum_problem(pool):
        return None
    ready = next((each for each in conditions if each.type == api.READY), None)
    return KnownPool(pool, ready is None or ready.status == "True" or ready.reason in COUNTING)


def asked_pools(job: DagJob) -> Iterator[tuple[str, str]]:
    """The Pools that pods of the job ask for by their label, each with the field that says so."""
    for stage in reversed(job.spec.stages):
        labels = (stage.template.get("metadata") or {}).get("labels") or {}
        own = labels.get(POOL_LABEL)
        if own is None and job.spec.pool:
            yield job.spec.pool, "spec.pool"
        elif own:
            yield own, f"the label {POOL_LABEL} of the template of stage {stage.name}"


def refusal(
    name: str, field: str, namespace: str, labels: Mapping[str, str], pools: Mapping[str, KnownPool]
) -> str:
    """Why a Pool takes no pods of a namespace with these labels, and what to do; empty if it takes them.

    Of a Pool that does not admit them is not said whether it exists. `field`: what names it.
    """
    known = pools.get(name)
    pool = None if known is None else known.pool
    why = refusal_of(
        is_admitted=admits_pods(pool, namespace, labels, labels.get(POOL_LABEL, "")),
        is_valid=known is not None and known.is_valid,
        is_inner=any(each.is_valid and _parent(each.pool) == name for each in pools.values()),
    )
    match why:
        case None:
            return ""
        case "notAdmitted":
            to_do = f"set {field} to a Pool that does"
            if name != DEFAULT:
                to_do += f", or let the Pool {name} list the namespace in its spec.namespaces"
        case "notValid":
            to_do = f"correct that Pool, or set {field} to another"
        case "inner":
            to_do = f"set {field} to a pool below it"
    said = REFUSALS[why].format(pool=name, namespace=namespace)
    return f"{said}, so its pods are in the pool of their namespace: {to_do}"


def _parent(pool: Pool) -> str:
    return "" if pool.name in AT_THE_TOP else pool.parent
