"""What a pod requests and what it holds on its node, computed as Kubernetes does.

Sources: KEP-753 (sidecars), KEP-1287 (in-place resize), KEP-2837 (pod-level resources) and the package
`component-helpers/resource` of Kubernetes 1.37, whose results these equal. Sums are in thousandths; amounts
are rounded up to whole units once, at the end.

    running  = app containers + sidecars
    starting = max over init containers of (itself + the sidecars started before it)
    total    = max(running, starting); pod-level requests replace it; overhead comes on top

Kubernetes quantities (`250m`, `1.5Gi`, `12e6`) are read as whole numbers of thousandths. The grammar is
that of apimachinery's package `resource`: digits with an optional point, then a binary suffix (Ki..Ei), a
decimal suffix (n u m k M G T P E) or an exponent. The API server rounds resource lists up to thousandths
when it stores them, so thousandths lose nothing and sums are exact.

The API server stores many quantities as they were written: `0064`, `64e000`, `64e4294967296` (an exponent
counts modulo 2**32) are 64 cores to a kubelet. They must be read as it reads them, or a pod would take room
that no scheduler counts; and the work must not grow with the exponent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from eclectus.api.names import ROOM_ANNOTATION

if TYPE_CHECKING:  # commands read quantities, and no pods
    from eclectus.kube.objects import Container, ContainerStatus, Pod, PodSpec, PodStatus, Resources
    from eclectus.model.objects import Amounts

    _Read = Callable[[ContainerStatus], Resources]

MOST = 2**53 - 1
"""The largest amount that is counted exactly, because cluster/ stores amounts as float64: 8 PiB - 1 byte."""

BEYOND_MOST = MOST + 1
"""Stands for every larger amount, and is exact as float64 too."""

_FORM = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?"
    r"([numkMGTPE]|[KMGTPE]i|[eE]([+-]?)(?=[0-9])0*+([0-9]{0,19}))?"
)
_SHORT = 64  # characters: of a text that is cached, and of one that a message shows
_MAX_DIGITS = 64  # that are read, the first ones; those after them only round up
_MAX_PLACES = 40  # digits of units before the point; an amount with more counts as `_HUGE`
_HUGE: int = 10 ** (_MAX_PLACES + 3)

_POWERS = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
_FACTORS = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}


def thousandths(text: str) -> int:
    """The quantity in thousandths of its unit, rounded up. Raises ValueError if it is no valid amount.

    Exact below 1e40 units; a larger amount is some number that is not below that.
    """
    return _cached(text) if len(text) <= _SHORT else _parse(text)


def units(amount: int) -> int:
    """Thousandths as whole units, rounded up."""
    return -(-amount // 1000)


def _parse(text: str) -> int:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:_SHORT]!r} is not a quantity such as 250m, 2 or 1.5Gi")
    sign, whole, fraction, suffix, exponent_sign, exponent = found.groups(default="")
    power = _POWERS.get(suffix, 0)
    if exponent:  # the lowest 32 bits, signed, are what apimachinery keeps of it
        power = (int(exponent_sign + exponent) + 2**31) % 2**32 - 2**31
    amount = _scaled(whole + fraction, power - len(fraction) + 3, _FACTORS.get(suffix, 1))
    if sign == "-" and amount:
        raise ValueError(f"{text[:_SHORT]!r} is negative; it must be 0 or more")
    return amount


# A cluster uses the same few hundred quantities again and again. Long ones are not cached: a pod may have one
# of a megabyte.
_cached = lru_cache(maxsize=8192)(_parse)


def _scaled(digits: str, power: int, factor: int) -> int:
    """digits * 10**power * factor, rounded up."""
    digits = digits.lstrip("0")
    places = len(digits) + power
    if not digits or places < -_MAX_PLACES:
        return int(bool(digits))
    if places > _MAX_PLACES + 3:
        return _HUGE
    rest = digits[_MAX_DIGITS:]
    number = (int(digits[:_MAX_DIGITS]) + bool(rest.strip("0"))) * factor
    power += len(rest)
    if power >= 0:
        return number * int(10**power)
    return -(-number // int(10**-power))


Total = dict[str, int]
"""Resource name -> thousandths."""

BEST_EFFORT: Total = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}
"""The requests that scores assume for a container without any (kube-scheduler: 100m and 200 MiB)."""


class FieldError(ValueError):
    """A field has an invalid value. The caller adds the name of the object."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Requested(NamedTuple):
    """What a pod requests: the amounts, and (cpu, memory) as scores count them."""

    amounts: Amounts
    scored: tuple[int, int]


def requested(pod: Pod) -> Requested:
    """What the pod requests, from its spec alone. Raises FieldError."""
    spec = pod.spec
    apps = [_requests(container) for container in spec.containers]
    inits = [_requests(container) for container in spec.init_containers]
    level = _pod_level(_spec_requests(spec))
    total = _total(spec, apps, inits, level)
    # With pod-level requests, only a resource that nothing requests gets the default.
    default = (
        {name: least for name, least in BEST_EFFORT.items() if name not in total} if level else BEST_EFFORT
    )
    scored = total
    if not all(default.keys() <= own.keys() for own in (*apps, *inits)):
        apps, inits = ([{**default, **own} for own in part] for part in (apps, inits))
        scored = _total(spec, apps, inits, level)
    cpu, memory = scored.get("cpu", 0), units(scored.get("memory", 0))
    return Requested(amounts(total), (min(cpu, BEYOND_MOST), min(memory, BEYOND_MOST)))


def held(pod: Pod) -> Amounts:
    """What a bound pod holds: the maximum of its spec, its allocation and what the kubelet has actuated.

    Each is the sum over the containers; what the pod's status says of the pod stands for those of its status.
    While a resize is infeasible, the spec does not count. Raises FieldError.
    """
    spec, status = pod.spec, pod.status
    counts_spec = ("PodResizePending", "Infeasible") not in (
        (each.type, each.reason) for each in status.conditions
    )
    known = {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}

    def summed(*read: _Read) -> Total:
        """Of each container what its status says first, or else its spec."""

        def own(container: Container) -> Total:
            seen = known.get(container.name)
            said = next(filter(None, (each(seen) for each in read)), None) if seen is not None else None
            if said is None:
                return _requests(container) if counts_spec else {}
            return parsed(said, f"status.containerStatuses[{container.name}].resources.requests")

        return _summed(
            spec, [own(each) for each in spec.containers], [own(each) for each in spec.init_containers]
        )

    total, of_pod = summed(), _pod_status(status)
    for seen in of_pod if all(of_pod) else (summed(_actuated, _allocated), summed(_allocated)):
        _raise_to(total, seen)
    level = _pod_level(_spec_requests(spec))
    if level and status.resources is not None:
        level = level if counts_spec else {}
        for seen in of_pod:
            _raise_to(level, _pod_level(seen))
    return amounts(_finished(spec, total, level))


def amounts(total: Total, most: int = BEYOND_MOST) -> Amounts:
    """Thousandths as amounts: whole units, for cpu thousandths; a larger amount counts as `most`.

    What a pod asks for beyond MOST fits on no node, whose amounts count as MOST at most.
    """
    whole = ((name, total[name] if name == "cpu" else units(total[name])) for name in sorted(total))
    return tuple((name, min(amount, most)) for name, amount in whole if amount)


def quantities(amounts: Iterable[tuple[str, int]], before: Iterable[str] = ()) -> dict[str, str | None]:
    """Amounts as quantities; null, for a merge patch, for each resource of `before` that is gone."""
    gone: dict[str, str | None] = dict.fromkeys(before)
    return gone | {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts}


def parsed(resources: Resources, field: str) -> Total:
    """A resource list in thousandths, without the names that a scheduler ignores. Raises FieldError."""
    total = {}
    for name, text in resources.items():
        if counted(name):
            try:
                total[name] = thousandths(text if isinstance(text, str) else repr(text))
            except ValueError as error:
                raise FieldError(f"{field}.{name}", str(error)) from error
    return total


@lru_cache(maxsize=1024)
def counted(name: str) -> bool:
    """Whether a node must have the resource: native names, and those with a domain except quotas."""
    if "/" in name:
        return "kubernetes.io/" in name or not name.startswith("requests.")
    return name in ("pods", "cpu", "memory", "ephemeral-storage") or name.startswith(
        ("hugepages-", "attachable-volumes-")
    )


# -- the sum ---------------------------------------------------------------------------------------


def _total(spec: PodSpec, apps: Sequence[Total], inits: Sequence[Total], level: Total) -> Total:
    return _finished(spec, _summed(spec, apps, inits), level)


def _summed(spec: PodSpec, apps: Sequence[Total], inits: Sequence[Total]) -> Total:
    total: Total = {}
    for own in apps:
        _add(total, own)
    if inits:
        sidecars = (container.sidecar for container in spec.init_containers)
        _start_up(total, zip(sidecars, inits, strict=True))
    return total


def _finished(spec: PodSpec, total: Total, level: Total) -> Total:
    total.update(level)
    if spec.overhead:
        _add(total, parsed(spec.overhead, "spec.overhead"))
    return total


def _start_up(total: Total, inits: Iterable[tuple[bool, Total]]) -> None:
    """Raise `total` to the peak of the start, and add sidecars to it. `inits`: (is a sidecar, requests)."""
    started: Total = {}
    peak: Total = {}
    for sidecar, own in inits:
        step = {**own}
        _add(step, started)
        _raise_to(peak, step)
        if sidecar:
            _add(total, own)
            started = step
    _raise_to(total, peak)


def _add(total: Total, more: Total) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Total, least: Total) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)


# -- where the numbers come from -------------------------------------------------------------------


def _requests(container: Container) -> Total:
    requests = container.resources.requests
    return parsed(requests, f"containers[{container.name}].resources.requests") if requests else {}


def _spec_requests(spec: PodSpec) -> Total:
    return {} if spec.resources is None else parsed(spec.resources.requests, "spec.resources.requests")


def _pod_level(total: Total) -> Total:
    """Of the resources that a pod may ask for as a whole."""
    return {n: total[n] for n in total if n in ("cpu", "memory") or n.startswith("hugepages-")}


def _actuated(seen: ContainerStatus) -> Resources:
    return {} if seen.resources is None else seen.resources.requests


def _allocated(seen: ContainerStatus) -> Resources:
    return seen.allocated_resources


def _pod_status(status: PodStatus) -> tuple[Total, Total]:
    """What is actuated and what allocated for the pod as a whole; empty where its status does not say."""
    actuated = {} if status.resources is None else status.resources.requests
    return (
        parsed(actuated, "status.resources.requests"),
        parsed(status.allocated_resources, "status.allocatedResources"),
    )


# -- the notional requests of a probe pod ------------------------------------------------------------

# A probe pod requests nothing, so that it takes no room from other pods (docs/operator.md). The annotation
# has what a pod of its class would request: its duration is a valid sample as long as its node has at least
# that much unreserved.
SHARED = ("cpu", "memory", "ephemeral-storage")
"""The resources that a container can use without having requested them."""
_FIELD = f"metadata.annotations[{ROOM_ANNOTATION}]"


def room_annotation(room: Amounts) -> str:
    """The value of the annotation: a resource list in JSON."""
    return msgspec.json.encode(quantities(room)).decode()


def annotated_room(annotations: Mapping[str, str]) -> Amounts:
    """The notional requests in a pod's annotations; empty without the annotation. Raises FieldError."""
    text = annotations.get(ROOM_ANNOTATION)
    if text is None:
        return ()
    try:
        found = msgspec.json.decode(text, type=dict[str, str | int | float])
    except msgspec.DecodeError as error:
        raise FieldError(_FIELD, f"{text[:80]!r} is not a resource list in JSON: {error}") from error
    for name in found.keys() - SHARED:
        raise FieldError(_FIELD, f"{name[:80]!r} is not allowed; it must be one of {', '.join(SHARED)}")
    return amounts(parsed(found, _FIELD))
