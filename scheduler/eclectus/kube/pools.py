"""Pools of the API as pools of the model, and what is measured of a pool as a part of its status."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder
from msgspec.structs import astuple

from eclectus.api.common import ObjectMeta, micro_time_text
from eclectus.api.names import POOL
from eclectus.api.pool import (
    MAX_KINDS,
    MAX_PREEMPTION_SECONDS,
    MAX_WEIGHT,
    Pool,
    PoolSelector,
    PoolShare,
    PoolSpec,
    PoolStatus,
    Quantities,
    pool_of,
)
from eclectus.kube import objects
from eclectus.kube.constraints import label_selector
from eclectus.kube.objects import decode
from eclectus.kube.requests import MOST, FieldError, counted, parsed, quantities, units
from eclectus.model import pool as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Amounts, Selector
from eclectus.model.printed import amount_text

# Shares divide by weights, and one as small as floats are is no number.
LEAST_WEIGHT = 1e-6
MOST_JOBS = 2**31 - 1
# Of an amount in a status: maxProperties in the definition, which refuses the whole status for one more.
# Pods may request resources of any name, and each tenant's are in the status of all pools above its own.
MOST_RESOURCES = 64
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class _Open(Struct, frozen=True):
    """A Pool before its types are known: only what is below metadata may be nested deep."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


_decode_open = partial(decode, Decoder(_Open), POOL)


def decode_pool(raw: bytes | Raw) -> Pool:
    """A Pool; null means not set. Raises MalformedError naming the object and the field."""
    found = _decode_open(raw)
    content = {"metadata": found.metadata, "spec": found.spec, "status": found.status}
    return pool_of(found.metadata.name, content)


def pool_from(pool: Pool) -> model.Pool:
    """The pool in the model. Raises MalformedError naming the Pool and the field."""
    spec, names = pool.spec, pool.spec.namespaces
    try:
        _check(spec)
        min_share, max_share = _amounts(spec.min_share, "minShare"), _amounts(spec.max_share, "maxShare")
    except FieldError as error:
        raise MalformedError(POOL, pool.metadata.name, f"spec.{error.field}", error.problem) from error
    return model.Pool(
        name=pool.metadata.name,
        parent=spec.parent,
        weight=max(spec.weight, LEAST_WEIGHT) if spec.weight else 0.0,
        min_share=min_share,
        max_share=max_share,
        policy=spec.policy,
        running_jobs_most=spec.max_running_jobs,
        altruism=spec.altruism,
        namespaces=tuple(sorted(names.names)),
        selector=None if names.selector is None else _selector(names.selector),
        preemption=model.PoolPreemption(*astuple(spec.preemption)),
        suspended=spec.suspend,
        below_min_since=objects.seconds(pool.status.below_min_share_since),
        below_share_since=objects.seconds(pool.status.below_fair_share_since),
    )


def minimum_problem(pool: model.Pool) -> str:
    """How its minimum is above its own maximum; empty if it is not."""
    most = dict(pool.max_share.amounts)
    for name, least in pool.min_share.amounts:
        if name in most and least > most[name]:
            found, allowed = amount_text(name, least), amount_text(name, most[name])
            return f"it has a minimum of {found}, but a maximum of {allowed}"
    for kind in pool.min_share.by_node:
        most = next((dict(each.amounts) for each in pool.max_share.by_node if str(each) == str(kind)), {})
        for name, least in kind.amounts:
            if name in most and least > most[name]:
                found, allowed = amount_text(name, least), amount_text(name, most[name])
                return f"it has a minimum of {found} on nodes with {kind}, but a maximum of {allowed}"
    least_part, most_part = pool.min_share.percent, pool.max_share.percent
    if least_part is not None and most_part is not None and least_part > most_part:
        return f"it has a minimum of {least_part:g} percent, but a maximum of {most_part:g} percent"
    return ""


def pool_status(record: model.PoolRecord, before: PoolStatus) -> dict[str, Any]:
    """The measured part of the status in a merge patch; `before` is what the status has.

    A merge patch keeps what it does not name, so what is no longer measured is null.
    """
    by_node = [
        {"key": each.key, "value": each.value, "amounts": quantities(each.amounts)}
        for each in record.held_by_node
    ]
    return {
        **({"heldByNode": by_node or None} if by_node or before.held_by_node else {}),
        "held": _patched(record.held, before.held),
        "demand": _patched(record.demand, before.demand),
        "share": _patched(record.share, before.share),
        "waitingPods": min(record.waiting_pods, MOST_JOBS),
        "runningJobs": min(record.running_jobs, MOST_JOBS),
        "belowMinShareSince": _time(record.below_min_since),
        "belowFairShareSince": _time(record.below_share_since),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else micro_time_text(seconds)


def _check(spec: PoolSpec) -> None:
    """The bounds of the definition, which may have been another one when the object was stored."""
    if not 0 <= spec.weight <= MAX_WEIGHT:
        raise FieldError("weight", f"{spec.weight:g} is not between 0 and {MAX_WEIGHT:g}")
    jobs = spec.max_running_jobs
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise FieldError("maxRunningJobs", f"{jobs} is not between 1 and {MOST_JOBS}")
    if not 0 <= spec.altruism <= 1:
        raise FieldError("altruism", f"{spec.altruism:g} is not between 0 and 1")
    rules = spec.preemption
    if not 0 < rules.fair_share_threshold <= 1:
        problem = f"{rules.fair_share_threshold:g} is not above 0 and at most 1"
        raise FieldError("preemption.fairShareThreshold", problem)
    times = {
        "minShareSeconds": rules.min_share_seconds,
        "fairShareSeconds": rules.fair_share_seconds,
        "minRuntimeSeconds": rules.min_runtime_seconds,
    }
    for field, seconds in times.items():
        if seconds is not None and not 0 <= seconds <= MAX_PREEMPTION_SECONDS:
            problem = f"{seconds:g} is not between 0 and {MAX_PREEMPTION_SECONDS:g}"
            raise FieldError(f"preemption.{field}", problem)


def _amounts(share: PoolShare, field: str) -> model.PoolAmounts:
    """Amounts of 0 stay: of a maximum they mean that nothing of the resource may be held."""
    if share.percent is not None and not 0 <= share.percent <= 100:
        raise FieldError(f"{field}.percent", f"{share.percent:g} is not between 0 and 100")
    return model.PoolAmounts(_whole(share.amounts, field), share.percent, _by_node(share, f"{field}.byNode"))


def _by_node(share: PoolShare, field: str) -> tuple[model.NodeAmounts, ...]:
    """Sorted by label and value, each of which is there once."""
    found = dict[tuple[str, str], model.NodeAmounts]()
    for at, each in enumerate(share.by_node):
        if not each.key:
            raise FieldError(f"{field}[{at}].key", "it is empty; write a label of nodes")
        if (each.key, each.value) in found:
            raise FieldError(f"{field}[{at}]", f"{each.key}={each.value} is stated already")
        amounts = _whole(each.amounts, f"{field}[{at}]")
        found[each.key, each.value] = model.NodeAmounts(each.key, each.value, amounts)
    if len(found) > MAX_KINDS:
        raise FieldError(field, f"it states {len(found)} kinds of nodes, more than {MAX_KINDS}")
    return tuple(found[kind] for kind in sorted(found))


def _whole(amounts: Quantities, field: str) -> Amounts:
    """In the units of pods' requests, sorted."""
    for name in amounts:
        if not counted(name):
            known = "cpu, memory, ephemeral-storage, pods, hugepages-SIZE, or a name with a domain"
            raise FieldError(f"{field}.amounts.{name}", f"pods request no such resource; it must be {known}")
    total = parsed(dict(amounts), f"{field}.amounts")
    whole = ((name, total[name] if name == "cpu" else units(total[name])) for name in sorted(total))
    return tuple((name, min(amount, MOST)) for name, amount in whole)


def _selector(selector: PoolSelector) -> Selector:
    expressions = (
        objects.Expression(each.key, each.operator, each.values) for each in selector.match_expressions
    )
    return label_selector(objects.LabelSelector(dict(selector.match_labels), tuple(expressions)))


def _patched(found: Amounts, before: Iterable[str]) -> Mapping[str, str | None]:
    named = dict(found)
    first = [name for name in FIRST_RESOURCES if name in named]
    kept = [*first, *sorted(named.keys() - set(first))][:MOST_RESOURCES]
    return quantities(((name, named[name]) for name in kept), before)
