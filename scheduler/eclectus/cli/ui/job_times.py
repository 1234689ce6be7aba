"""When the stages of a DAG job have run, and when they would: the bars of its Gantt chart.

What has been is read from the pods that still exist, what is to come from the estimates alone: as if every
stage ran all tasks it has left at once, as soon as its parents have ended. Times are seconds from now, those
before it negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from eclectus.api.names import STAGE_LABEL
from eclectus.kube.requests import FieldError
from eclectus.kube.stage_order import topological

Object = dict[str, Any]
Row = Mapping[str, Any]
SUCCEEDED = "Succeeded"


class Ran(NamedTuple):
    """From the first start of a pod of a stage to the last end; None: it has not ended."""

    began: float
    ended: float | None


def bars(row: Row, pods: Iterable[Object], now: datetime) -> list[Object]:
    """One mapping for each stage of a job, in the order of its spec; `row` is as `eclectus dag` has it."""
    ran = runs(pods, now)
    expected = {} if row["completionTime"] else dict(forecasts(row, ran))
    found = []
    for stage in row["stages"]:
        began, ended = ran.get(stage["name"], (None, None))
        begins, ends = expected.get(stage["name"], (None, None))
        due = seconds_to(stage["due"], now)
        times = {"began": began, "ended": ended, "begins": begins, "ends": ends, "due": due}
        found.append({"name": stage["name"], "state": stage["state"], **times})
    return found


def runs(pods: Iterable[Object], now: datetime) -> dict[str, Ran]:
    """By stage, what its pods say that have started."""
    found: dict[str, Ran] = {}
    for pod in pods:
        began = seconds_to(pod.get("status", {}).get("startTime"), now)
        if began is None:
            continue
        ended = _ended(pod, now)
        stage = (pod["metadata"].get("labels") or {}).get(STAGE_LABEL, "")
        known = found.get(stage, Ran(began, ended))
        last = None if ended is None or known.ended is None else max(ended, known.ended)
        found[stage] = Ran(min(began, known.began), last)
    return found


def _ended(pod: Object, now: datetime) -> float | None:
    status = pod["status"]
    if status.get("phase") not in (SUCCEEDED, "Failed"):
        return None
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    ends = [seconds_to((each.get("terminated") or {}).get("finishedAt"), now) for each in states]
    return max((each for each in ends if each is not None), default=0.0)


def forecasts(row: Row, ran: Mapping[str, Ran]) -> Iterator[tuple[str, tuple[float, float]]]:
    """By stage that has not succeeded: when what is left of it would begin and end.

    None is given for a stage without an estimate, or behind such a one.
    """
    stages = {each["name"]: each for each in row["stages"]}
    try:
        order = topological([(name, each["dependsOn"]) for name, each in stages.items()])
    except FieldError:
        return  # the operator refuses such a job
    names, ends = list(stages), dict[str, float]()
    for name in (names[at] for at in order):
        stage = stages[name]
        if stage["state"] == SUCCEEDED:
            ends[name] = 0.0
            continue
        estimate, parents = stage["estimateSeconds"], stage["dependsOn"]
        if estimate is None or any(each not in ends for each in parents):
            continue
        begins = max((ends[each] for each in parents), default=0.0)
        since = -ran[name].began if stage["running"] and not stage["waiting"] and name in ran else 0.0
        ends[name] = begins + max(estimate - since, 0.0)
        yield name, (begins, ends[name])


def seconds_to(moment: str | None, now: datetime) -> float | None:
    """From now to an RFC 3339 moment."""
    return None if moment is None else (datetime.fromisoformat(moment) - now).total_seconds()
