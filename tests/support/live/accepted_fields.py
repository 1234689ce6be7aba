"""Hypothesis strategies for pods and nodes as the API server accepts them: any text and size in any field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from accepted_pods import BEYOND, Box, Named, Pod, counted, written
from eclectus.api.names import (
    CLASS_LABEL,
    ESTIMATED_SECONDS,
    JOB_WORK_SECONDS,
    PATH_SECONDS,
    ROOM_ANNOTATION,
    RUN_ID_LABEL,
)

SLOW_TO_DRAW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
IN_ANY_RUN = settings(deadline=None, database=None, suppress_health_check=SLOW_TO_DRAW)

Drawn = st.SearchStrategy[Any]
some, one_of, many = st.fixed_dictionaries, st.sampled_from, st.lists

# -- amounts and texts -----------------------------------------------------------------------------

OFFERED = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")
MORE = tuple(f"odd.example.com/r{at}" for at in range(9))
HUGE = 10**60


def _spellings(thousandths: int) -> list[str]:
    whole, rest = divmod(thousandths, 1000)
    return [
        f"{thousandths}m",
        f"{'0' * 99}{thousandths}m",
        f"+{whole}.{rest:03}",
        f"{thousandths}e-{'0' * 99}3",
        f"{thousandths}E{2**32 - 3}",  # the API server counts exponents modulo 2**32
        f"{thousandths}000u",
    ]


def _binary(drawn: tuple[int, str]) -> tuple[str, int]:
    number, letter = drawn
    return f"{number}{letter}i", number * 1024 ** ("KMGTPE".index(letter) + 1) * 1000


_SOME = one_of([0, 1, 100, 250, 1000, 1500, 4000]) | st.integers(0, 2**64)
AMOUNTS = st.one_of(
    _SOME.flatmap(lambda amount: one_of([(text, amount) for text in _spellings(amount)])),
    st.tuples(st.integers(0, 2000), one_of("KMGTPE")).map(_binary),
    one_of([("1e102", HUGE), ("9" * 300, HUGE), ("1e-9", 1), (f".{'0' * 80}1", 1)]),
)
NAMED = st.dictionaries(one_of(OFFERED + MORE), AMOUNTS, max_size=4)
TEXTS = st.text(max_size=80) | one_of(["9" * 5000, "1e999", "nan", "-0", "1_0", "[" * 2000, '{"cpu":'])
LABELS = one_of(["", "a", "b", "17", "-17", "x" * 63, "A.b_c-1"])
KEYS = one_of(["zone", "kubernetes.io/hostname", "example.com/" + "k" * 63])
TIMES = one_of(["2026-03-01T12:00:00Z", "2026-03-01T12:00:09Z", "0001-01-01T00:00:00Z", None])

# -- the fields of a pod without amounts -----------------------------------------------------------

REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
EXPRESSIONS = st.one_of(
    some({"key": KEYS, "operator": one_of(["In", "NotIn"]), "values": many(LABELS | TEXTS, max_size=3)}),
    some({"key": KEYS, "operator": one_of(["Exists", "DoesNotExist"])}),
    some(
        {
            "key": KEYS,
            "operator": one_of(["Gt", "Lt"]),
            "values": many(LABELS | TEXTS, min_size=1, max_size=1),
        }
    ),
)
TERMS = some({"matchExpressions": many(EXPRESSIONS, max_size=2)})
PREFERENCES = some({"weight": st.integers(1, 100), "preference": TERMS})
NODE_AFFINITY = some(
    {
        REQUIRED: some({"nodeSelectorTerms": many(TERMS, min_size=1, max_size=2)}),
        PREFERRED: many(PREFERENCES, max_size=2),
    }
)
SELECTED = st.one_of(
    some({"key": KEYS, "operator": one_of(["In", "NotIn"]), "values": many(LABELS, min_size=1, max_size=3)}),
    some({"key": KEYS, "operator": one_of(["Exists", "DoesNotExist"])}),
)
SELECTORS = some(
    {
        "matchLabels": st.dictionaries(KEYS, LABELS, max_size=1),
        "matchExpressions": many(SELECTED, max_size=2),
    }
)
ABOUT_PODS = some(
    {
        "topologyKey": KEYS,
        "labelSelector": st.none() | SELECTORS,
        "namespaces": many(one_of(["default", "a", "b"]), max_size=2),
        "namespaceSelector": st.none() | SELECTORS,
    }
)
WEIGHED = some({"weight": st.integers(1, 100), "podAffinityTerm": ABOUT_PODS})
OF_PODS = some({REQUIRED: many(ABOUT_PODS, max_size=2), PREFERRED: many(WEIGHED, max_size=2)})
SPREAD = some(
    {
        "maxSkew": st.integers(1, 2**31 - 1),
        "minDomains": st.none() | st.integers(1, 2**31 - 1),
        "topologyKey": KEYS,
        "whenUnsatisfiable": one_of(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": st.none() | SELECTORS,
        "matchLabelKeys": many(KEYS, max_size=1),
        "nodeAffinityPolicy": one_of(["Honor", "Ignore", None]),
        "nodeTaintsPolicy": one_of(["Honor", "Ignore", None]),
    }
).map(lambda drawn: {name: each for name, each in drawn.items() if each is not None})
TOLERATIONS = some(
    {
        "key": KEYS | st.just(""),
        "operator": one_of(["Equal", "Exists", "Lt", "Gt", ""]),
        "value": LABELS,
        "effect": one_of(["", "NoSchedule", "PreferNoSchedule", "NoExecute"]),
    }
)
FIELDS = some(
    {
        "schedulerName": one_of(["eclectus", "eclectus", "default-scheduler", "x" * 253]),
        "priority": one_of([-(2**31), 0, 0, 1, 2**31 - 1]),
        "preemptionPolicy": one_of(["", "Never", "PreemptLowerPriority"]),
        "restartPolicy": one_of(["Always", "OnFailure", "Never"]),
        "activeDeadlineSeconds": one_of([None, 1, 2**31 - 1]),
        "schedulingGates": one_of([[], [], [], [{"name": "example.com/gate"}]]),
        "nodeSelector": st.dictionaries(KEYS, LABELS, max_size=1),
        "tolerations": many(TOLERATIONS, max_size=2),
        "affinity": st.one_of(
            st.none(),
            some({"nodeAffinity": NODE_AFFINITY}),
            some({"podAntiAffinity": OF_PODS}),
            some({"podAffinity": OF_PODS}),
        ),
        "topologySpreadConstraints": st.just([]) | many(SPREAD, max_size=2),
        "volumes": one_of(
            [
                [],
                [],
                [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
                [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}],
            ]
        ),
    }
)
HINTS = (ESTIMATED_SECONDS, PATH_SECONDS, JOB_WORK_SECONDS, ROOM_ANNOTATION, "example.com/any")
METADATA = some(
    {
        "annotations": st.dictionaries(one_of(HINTS), TEXTS | one_of(["5", "1e9", '{"cpu": "1"}'])),
        "labels": st.dictionaries(KEYS | one_of([CLASS_LABEL, RUN_ID_LABEL]), LABELS),
        "creationTimestamp": TIMES,
        "ownerReferences": one_of([[], [{"uid": "job", "controller": True}, {"uid": "other"}]]),
    },
    optional={"deletionTimestamp": st.just("2026-03-01T12:00:00Z")},
)
UNPLACED = some({"type": st.just("PodScheduled"), "status": st.just("False"), "message": TEXTS})
STATUS = some({"nominatedNodeName": one_of(["", "", "nowhere"]), "conditions": many(UNPLACED, max_size=1)})
PHASES = one_of(["Pending", "Pending", "Running", "Unknown", "Succeeded", "Failed"])
SEEN = st.none() | st.tuples(NAMED, NAMED)

# -- pods ------------------------------------------------------------------------------------------


def _boxes(prefix: str, least: int, sidecars: Drawn) -> st.SearchStrategy[tuple[Box, ...]]:
    drawn = many(st.builds(Box, st.just(""), NAMED, sidecars, SEEN), min_size=least, max_size=2)
    return drawn.map(lambda boxes: tuple(replace(box, name=f"{prefix}{at}") for at, box in enumerate(boxes)))


_APPS, _INITS = _boxes("app", 1, st.just(False)), _boxes("init", 0, st.booleans())


def pods(name: str, on: Iterable[str]) -> st.SearchStrategy[Pod]:
    """A pod of this name that waits, or is bound to one of these nodes."""
    parts: list[Drawn] = [st.just(name), one_of(["", "", *on]), PHASES, _APPS, _INITS, NAMED, NAMED]
    return st.builds(Pod, *parts, st.booleans(), METADATA, FIELDS, STATUS)


def later(pod: Pod) -> st.SearchStrategy[Pod]:
    """The same pod later: with another status and, if it is bound, resized."""
    drawn: dict[str, Drawn] = {"status": STATUS, "is_infeasible": st.booleans()}
    drawn["phase"] = st.just(pod.phase) if pod.has_ended else PHASES
    if pod.node:
        drawn |= {"apps": _resized(pod.apps), "inits": _resized(pod.inits), "metadata": METADATA}
        drawn["generation"] = st.just(pod.generation + 1)
    return some(drawn).map(lambda changes: replace(pod, **changes))


def _resized(boxes: tuple[Box, ...]) -> st.SearchStrategy[tuple[Box, ...]]:
    return st.tuples(*(st.builds(replace, st.just(box), requests=NAMED, seen=SEEN) for box in boxes))


# -- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    allocatable: Named
    labels: Mapping[str, str]
    spec: Mapping[str, Any]

    def body(self, version: int) -> dict[str, Any]:
        """The object."""
        return {
            "metadata": {"name": self.name, "resourceVersion": str(version), "labels": self.labels},
            "spec": self.spec,
            "status": {"allocatable": written(self.allocatable)},
        }

    def offers(self) -> dict[str, int]:
        """What it has, in the units that are counted."""
        amounts = {name: min(counted(name, each), BEYOND - 1) for name, (_, each) in self.allocatable.items()}
        return {name: amount for name, amount in amounts.items() if amount}


_ROOM: Named = {"cpu": ("8", 8000), "memory": ("64Gi", 2**36 * 1000), "pods": ("110", 110_000)}
_TAINTS = some(
    {"key": KEYS, "value": LABELS, "effect": one_of(["NoSchedule", "PreferNoSchedule", "NoExecute"])}
)
_NODE_SPECS = some({"unschedulable": one_of([False, False, True]), "taints": many(_TAINTS, max_size=1)})


def nodes(name: str) -> st.SearchStrategy[Node]:
    """A node of this name."""
    odd = st.dictionaries(one_of(OFFERED), AMOUNTS, max_size=3)
    room = odd.map(lambda amounts: {**_ROOM, **amounts})
    return st.builds(Node, st.just(name), room, st.dictionaries(KEYS, LABELS), _NODE_SPECS)
