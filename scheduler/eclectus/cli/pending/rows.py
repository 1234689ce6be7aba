"""The rows of `eclectus pending`, and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from eclectus.cli.columns import ABSENT, age, aligned
from eclectus.cli.pending.served import Served
from eclectus.config.configuration import DEFAULT_SCHEDULER

MESSAGE_CHARACTERS = 100  # in the plain table; `-o wide` shows all
GATED = "SchedulingGated"  # set by the API server, not by a scheduler

Row = dict[str, Any]
Object = dict[str, Any]


def rows(pods: Iterable[Object], known: Mapping[str, Served]) -> list[Row]:
    """One mapping for each pod that waits for a name of Eclectus or of nobody, the oldest first.

    Nobody serves a name that is neither Eclectus' nor kube-scheduler's, as far as anybody can tell: a pod
    on which some scheduler has reported is that scheduler's.
    """
    found = [_row(pod, known) for pod in pods if _waits(pod)]
    ours = [row for row in found if row["scheduler"] != "other"]
    return sorted(ours, key=lambda row: (row["createdTime"], row["namespace"], row["name"]))


def table(found: Sequence[Row], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """The lines of a table in columns."""
    heads = ["NAMESPACE", "POD", "SCHEDULER", "PRIORITY", "AGE", "REASON", "MESSAGE"]
    if wide:
        heads.insert(5, "SINCE")
    return aligned([heads, *(_cells(row, now, wide) for row in found)])


def summary(found: Sequence[Row], known: Mapping[str, Served], now: datetime) -> Iterator[str]:
    """How many pods wait for which scheduler, and what to do where none runs."""
    counts = Counter(row["schedulerName"] for row in found)
    of_each = ", ".join(f"{count} for {name}" for name, count in counts.most_common())
    noun, verb = ("pod", "waits") if len(found) == 1 else ("pods", "wait")
    yield f"{len(found)} {noun} {verb}: {of_each}; the oldest for {age(found[0]['createdTime'], now)}"
    for name in counts:
        state = known[name].state if name in known else "nobody"
        if state == "no leader":
            yield f"{name}: nobody holds the {known[name].where}; start the scheduler, or see its log"
        if state == "nobody":
            spelled = ", ".join(sorted({*known, DEFAULT_SCHEDULER}))
            yield f"{name}: no known scheduler serves this name; known are: {spelled}"


def _waits(pod: Object) -> bool:
    is_over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return not pod["spec"].get("nodeName") and not is_deleted and not is_over


def _row(pod: Object, known: Mapping[str, Served]) -> Row:
    metadata, spec = pod["metadata"], pod["spec"]
    name = spec.get("schedulerName", DEFAULT_SCHEDULER)
    conditions = pod.get("status", {}).get("conditions") or ()
    condition: Object = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    return {
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "schedulerName": name,
        "scheduler": _state(name, condition, known),
        "priority": spec.get("priority", 0),
        "createdTime": metadata.get("creationTimestamp"),
        "reason": condition.get("reason"),
        "message": condition.get("message"),
        "since": condition.get("lastTransitionTime"),
    }


def _state(name: str, condition: Object, known: Mapping[str, Served]) -> str:
    """The state of its scheduler; `other` if the pod is none of our business."""
    if name in known:
        return known[name].state
    is_reported_on = bool(condition) and condition.get("reason") != GATED
    return "other" if name == DEFAULT_SCHEDULER or is_reported_on else "nobody"


def _cells(row: Row, now: datetime, wide: bool) -> list[str]:
    state = row["scheduler"]
    name = f"{row['schedulerName']} ({state})" if state in ("no leader", "nobody") else row["schedulerName"]
    message = " ".join((row["message"] or "no scheduler has reported on it").split())
    if not wide and len(message) > MESSAGE_CHARACTERS:
        message = message[: MESSAGE_CHARACTERS - 1] + "…"
    cells = [row["namespace"], row["name"], name, str(row["priority"]), age(row["createdTime"], now)]
    return [*cells, *([age(row["since"], now)] if wide else []), row["reason"] or ABSENT, message]
