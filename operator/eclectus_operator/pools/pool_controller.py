"""The controller of Pools: lists all of them, and writes what it finds of each into its condition Ready.

Every sync starts from what the API server says. Nothing is written of a Pool of which the same was found
before. A Pool whose status cannot be written delays no other.
"""

import logging
from dataclasses import dataclass

from msgspec import Struct

from eclectus.api import pool as api
from eclectus.api.common import Condition, ObjectMeta, time_text
from eclectus.api.names import POOLS_PATH
from eclectus.kube.pools import pool_from
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import Object, list_pages
from eclectus.model.errors import MalformedError
from eclectus.model.pool import Pool
from eclectus_operator import convert
from eclectus_operator.convert import ShapeError
from eclectus_operator.operator_context import NotLeadingError, OperatorContext
from eclectus_operator.pools.pool_tree import findings, updated

RETRY_SECONDS = 2.0  # after a status that was not written, such as when the scheduler has just written it
MOST_WRITES = 100  # of one sync, so that it does not hold the API server up when all change at once
_log = logging.getLogger(__name__)


class _Spec(Struct, frozen=True):
    spec: api.PoolSpec


class _Status(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Listed:
    """A Pool of a list. `pool` None: it cannot be read, and `problem` says why."""

    metadata: ObjectMeta
    conditions: tuple[Condition, ...]
    pool: Pool | None
    problem: str = ""


class PoolController:
    """The work of one operator on Pools, sync by sync."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._is_defined = True

    async def sync(self) -> float:
        """Write the conditions that have changed. Seconds until the next sync. Raises ApiError."""
        try:
            pools = [
                listed(each) async for page in list_pages(self._context.api, POOLS_PATH) for each in page
            ]
        except MissingError:
            if self._is_defined:
                _log.info("Pool is not defined here: there are none")
            self._is_defined = False
            return self._context.settings.look_seconds
        self._is_defined = True
        unread = {each.metadata.name: each.problem for each in pools if each.pool is None}
        found = findings([each.pool for each in pools if each.pool is not None], unread)
        now, writes, is_whole = time_text(self._context.now()), 0, True
        for each in pools:
            name = each.metadata.name
            conditions = updated(each.conditions, found[name], each.metadata.generation, now)
            if conditions is None:
                continue
            if writes == MOST_WRITES:
                is_whole = False
                break
            writes += 1
            is_whole = await self._write(each.metadata, conditions) and is_whole
        return self._context.settings.look_seconds if is_whole else RETRY_SECONDS

    async def _write(self, metadata: ObjectMeta, conditions: tuple[Condition, ...]) -> bool:
        """Whether the conditions are written, or the Pool is gone."""
        written = [convert.written(each) for each in conditions]
        version = {"resourceVersion": metadata.resource_version}
        try:
            body = {"metadata": version, "status": {"conditions": written}}
            await self._context.api.send("PATCH", f"{POOLS_PATH}/{metadata.name}/status", body)
        except NotLeadingError:
            raise
        except MissingError:
            return True
        except ConflictError as error:
            _log.info("Pool %s: to be repeated: %s", metadata.name, error)
            return False
        except ApiError as error:
            _log.warning("Pool %s: condition not written: %s", metadata.name, error)
            return False
        return True


def listed(found: Object) -> Listed:
    """A Pool of a list, as far as it can be read."""
    metadata = convert.read(found["metadata"], ObjectMeta)
    try:
        conditions = convert.read(found.get("status") or {}, _Status).conditions
    except ShapeError:
        conditions = ()  # they are written anew
    try:
        spec = convert.read_authored({"spec": found.get("spec") or {}}, _Spec).spec
        return Listed(metadata, conditions, pool_from(api.Pool(metadata, spec)))
    except ShapeError as error:
        return Listed(metadata, conditions, None, str(error))
    except MalformedError as error:
        return Listed(metadata, conditions, None, f"{error.field}: {error.problem}")
