"""What the panels of the page are made of: questions to the API server, and answers in a form to be shown.

Each question is one request, or a few: a list is read one page at a time, whatever the cluster's size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from eclectus.api.names import (
    API_VERSION,
    DAG_JOB_LABEL,
    DAG_JOBS,
    PENDING_PODS,
    VISIBILITY_API,
)
from eclectus.cli.dag import NO_PLAN, amounts_text, rows, when
from eclectus.cli.explain.command import formatted
from eclectus.cli.explain.explained_text import STATES, quantity
from eclectus.cli.explain.transport import Asked, Target
from eclectus.cli.output import count
from eclectus.cli.ui.job_times import bars, seconds_to
from eclectus.cli.ui.problems import in_words
from eclectus.kubeclient.api_errors import ApiError
from eclectus.kubeclient.client import MAX_LINE_BYTES, ApiClient, ObjectApi
from eclectus.model.errors import EclectusError
from eclectus.model.printed import ABSENT, span

PAGE_ITEMS = 100  # lines of a list: what a person and a browser take at a time
PODS_MOST = 500  # of a job, whose times are shown
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")  # what may become a part of a path

Object = dict[str, Any]


class AskedError(EclectusError):
    """What the page asks for is no question."""


def named(text: str, what: str) -> str:
    """The name, which may become a part of a path. Raises AskedError."""
    if not NAME.fullmatch(text):
        raise AskedError(f"{text[:80]!r} is no name of a {what}")
    return text


@dataclass(frozen=True)
class Readings:
    """What the page reads of one cluster. All methods raise ApiError and AskedError."""

    client: ApiClient

    async def queue(self, namespace: str, after: str) -> Object:
        """A page of the pods that wait, in a namespace or in all."""
        place = f"/namespaces/{named(namespace, 'namespace')}" if namespace else ""
        return await self._page(f"/apis/{VISIBILITY_API}{place}/{PENDING_PODS}", after, pending_pod)

    async def nodes(self, after: str) -> Object:
        """A page of the nodes, with their learned speeds."""
        return await self._page(f"/apis/{VISIBILITY_API}/nodespeeds", after, node)

    async def pools(self, after: str) -> Object:
        """A page of the pools, parents before their children."""
        found = await self._page(f"/apis/{VISIBILITY_API}/poolstandings", after, pool)
        found["items"].sort(key=lambda each: each["path"].split("/"))
        return found

    async def jobs(self, namespace: str, after: str) -> Object:
        """A page of the DAG jobs, of a namespace or of all."""
        place = f"/namespaces/{named(namespace, 'namespace')}" if namespace else ""
        now, problems = datetime.now(UTC), list[str]()

        def summary(job: Object) -> Object | None:
            found, unreadable = rows([job], (), now)
            problems.extend(unreadable)
            return job_summary(found[0], now) if found else None

        page = await self._page(f"/apis/{API_VERSION}{place}/{DAG_JOBS}", after, summary)
        return {**page, "items": [each for each in page["items"] if each], "notes": problems}

    async def _page(self, path: str, after: str, shown: Callable[[Object], Object | None]) -> Object:
        query = {"limit": str(PAGE_ITEMS), **({"continue": after} if after else {})}
        answer = await ObjectApi(self.client).send("GET", path, query=query, most_bytes=MAX_LINE_BYTES)
        metadata = answer.get("metadata") or {}
        return {
            "items": [shown(each) for each in answer.get("items") or ()],
            "continue": metadata.get("continue") or "",
            "left": metadata.get("remainingItemCount") or 0,
        }

    async def explanation(self, target: Target) -> Object:
        """What `eclectus explain` prints of an object, and the answer as data."""
        kind = f"{target.kind}s"
        place = f"namespaces/{named(target.namespace, 'namespace')}/" if target.kind != "node" else ""
        path = f"/apis/{VISIBILITY_API}/{place}{kind}/{named(target.name, target.kind)}/explanation"
        body = await self.client.get(path)
        found: Object = {"text": formatted(body, target, "table")}
        if target.kind == "node":
            found["resources"] = [use(each) for each in msgspec.json.decode(body).get("resources") or ()]
        return found

    async def what_if(self, namespace: str, name: str, asked: Asked) -> Object:
        """What `eclectus explain --what-if` prints of a pod."""
        place = f"namespaces/{named(namespace, 'namespace')}/pods/{named(name, 'pod')}"
        body = await self.client.get(f"/apis/{VISIBILITY_API}/{place}/what-if", asked.query)
        return {"text": formatted(body, Target("pod", name, namespace), "table", asked)}

    async def job(self, namespace: str, name: str) -> Object:
        """A DAG job: its plan, its stages, when these have run, and why its pods wait."""
        place = f"namespaces/{named(namespace, 'namespace')}"
        api, now = ObjectApi(self.client), datetime.now(UTC)
        job = await api.send("GET", f"/apis/{API_VERSION}/{place}/{DAG_JOBS}/{named(name, 'DagJob')}")
        pods, notes = await self._pods_of(api, place, name)
        without_node = [each for each in pods if not each["spec"].get("nodeName") and _is_pending(each)]
        found, problems = rows([job], without_node, now)
        if not found:
            raise AskedError(problems[0])
        row = found[0]
        try:
            why = (await self.explanation(Target("job", name, namespace)))["text"]
        except ApiError as error:
            why = in_words(error).message
        if not (row["share"] or row["deadline"] or row["completionTime"]):
            notes.append(NO_PLAN)
        return {
            **job_summary(row, now),
            "plan": plan(row, now),
            "deadlineSeconds": None if row["completionTime"] else seconds_to(row["deadline"], now),
            "stages": [stage(each, now) for each in row["stages"]],
            "bars": bars(row, pods, now),
            "why": why,
            "notes": notes,
        }

    async def _pods_of(self, api: ObjectApi, place: str, job: str) -> tuple[list[Object], list[str]]:
        """The pods of a job, and what is not known without some of them."""
        query = {"labelSelector": f"{DAG_JOB_LABEL}={job}", "limit": str(PODS_MOST)}
        try:
            answer = await api.send("GET", f"/api/v1/{place}/pods", query=query, most_bytes=MAX_LINE_BYTES)
        except ApiError as error:
            return [], [f"When its tasks have run is not known. {in_words(error).message}"]
        is_all = not (answer.get("metadata") or {}).get("continue")
        left_out = f"The times are those of {PODS_MOST} of its pods; it has more."
        return answer.get("items") or [], [] if is_all else [left_out]


def _is_pending(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase", "Pending") == "Pending")


# -- the parts of answers, in a form to be shown ------------------------------------------------------


def _span(seconds: float | None) -> str:
    return ABSENT if seconds is None else span(seconds)


def pending_pod(item: Object) -> Object:
    """A line of the queue."""
    return {
        "namespace": item["metadata"]["namespace"],
        "name": item["metadata"]["name"],
        "state": item["state"],
        "means": STATES.get(item["state"], item["state"]),
        "ahead": item.get("ahead"),
        "group": item.get("group") or "",
        "priority": item["priority"],
        "age": _span(item.get("age")),
        "since": _span(item.get("since")),
        "reason": " ".join(item["reason"].split()),
    }


def node(item: Object) -> Object:
    """A line of the nodes."""
    classes = item.get("classes") or ()
    return {
        "name": item["metadata"]["name"],
        "state": item["state"],
        "speed": item.get("speed"),
        "confidence": item["confidence"],
        "samples": sum(each["samples"] for each in classes),
        "classes": len(classes),
        "price": item.get("price"),
    }


def use(each: Object) -> Object:
    """How much of a resource of a node is held."""
    resource, held, planned = each["resource"], each["held"], each.get("planned", 0)
    free = max(each["allocatable"] - held - planned, 0)
    amounts = {"of": each["allocatable"], "held": held, "planned": planned, "free": free}
    return {"resource": resource, **amounts, "text": _texts(resource, amounts)}


def pool(item: Object) -> Object:
    """A line of the tree of pools."""
    path = item["path"]
    below = item.get("belowMinimum")
    return {
        "path": path,
        "name": path.rpartition("/")[2],
        "depth": path.count("/"),
        "waiting": item.get("waitingPods", 0),
        "jobs": item.get("runningJobs", 0),
        "starved": _span(item.get("belowShare") if below is None else below),
        "resources": [_of_pool(each) for each in item.get("resources") or ()],
    }


def _of_pool(each: Object) -> Object:
    amounts = {name: each.get(name) for name in ("least", "share", "held", "demand", "most")}
    given = {name: amount for name, amount in amounts.items() if amount is not None}
    resource = each["resource"]
    return {"resource": resource, "nodes": each.get("nodes", ""), **given, "text": _texts(resource, given)}


def _texts(resource: str, amounts: Object) -> Object:
    return {name: quantity(resource, amount) for name, amount in amounts.items()}


def job_summary(row: Object, now: datetime) -> Object:
    """A line of the jobs."""
    finish = row["finishSeconds"]
    return {
        **{name: row[name] for name in ("namespace", "name", "state", "message", "tasks")},
        **{name: amounts_text(row[name]) for name in ("share", "lent", "borrowed")},
        "finish": _span(finish),
        "deadline": when(row["deadline"], now),
    }


def plan(row: Object, now: datetime) -> list[tuple[str, str]]:
    """What the scheduler plans for a job: names with what they have."""
    moved = f"{count(row['slips'], 'time')}, {span(row['slipSeconds'])}" if row["slips"] else ABSENT
    facts: Iterable[tuple[str, str]] = (
        ("Share: what it is entitled to", amounts_text(row["share"])),
        ("Lent now, of its share to other jobs", amounts_text(row["lent"])),
        ("Borrowed now, beyond its share", amounts_text(row["borrowed"])),
        ("Lent in all, times seconds", amounts_text(row["lentSeconds"])),
        ("Borrowed in all, times seconds", amounts_text(row["borrowedSeconds"])),
        ("Finish: the rest of it inside its share", _span(row["finishSeconds"])),
        ("Deadline: what is lent must not delay it beyond", when(row["deadline"], now)),
        ("Deadline moved to a later time", moved),
        ("Node that is kept free for it", row["reservedNode"] or ABSENT),
    )
    return list(facts)


def stage(each: Object, now: datetime) -> Object:
    """A stage of a job."""
    kept = ("name", "dependsOn", "state", "tasks", "waiting", "running", "succeeded", "failed", "why")
    return {
        **{name: each[name] for name in kept},
        "estimate": _span(each["estimateSeconds"]),
        "due": when(each["due"], now),
    }
