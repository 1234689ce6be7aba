"""`eclectus pending`: the pods that wait for an Eclectus scheduler, or for one that does not run.

Which schedulerNames Eclectus serves is read from its Leases and from the ConfigMaps of its releases. Both
remain while no scheduler runs. A Lease says which names its scheduler serves, and whether one leads.

Where the API server passes questions on to the leader, as an aggregated API, that says where each pod waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import click

from eclectus.api.names import (
    COPY_OF_LABEL,
    DEFAULT_SCHEDULER,
    ORIGINAL,
    PART_OF,
    PART_OF_LABEL,
    PENDING_PODS,
    SCHEDULER_CONFIGURATION,
    SCHEDULER_NAMES,
    VISIBILITY_API,
    VISIBILITY_SERVICE,
)
from eclectus.cli import cluster_commands
from eclectus.cli.output import age, aligned, structured
from eclectus.kubeclient.kubeconfigs import default_namespace
from eclectus.model.errors import SettingsError
from eclectus.model.printed import ABSENT, shortened

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient, ObjectApi

SKEW = timedelta(seconds=15)  # allowed between this machine's clock and the leader's

State = Literal["running", "no leader", "unknown", "nobody"]


@dataclass(frozen=True)
class Served:
    """A schedulerName and whether a scheduler leads for it; `where` names the object that says so."""

    name: str
    state: State
    where: str


def served(leases: Iterable[Object], config_maps: Iterable[Object], now: datetime) -> dict[str, Served]:
    """By name. A running leader counts before a Lease without one, and that before a mere configuration."""
    found: dict[str, Served] = {}
    of_leases = sorted(_of_leases(leases, now), key=lambda each: each.state != "running")
    of_config_maps = (
        Served(name, "unknown", f"ConfigMap {_place(each)}")
        for each in config_maps
        for text in (each.get("data") or {}).values()
        for name in _names(text)
    )
    for each in (*of_leases, *of_config_maps):
        found.setdefault(each.name, each)
    return found


def _of_leases(leases: Iterable[Object], now: datetime) -> Iterator[Served]:
    from eclectus.kubeclient.election import lease_from

    for each in leases:
        names = each["metadata"].get("annotations", {}).get(SCHEDULER_NAMES, "")
        lease = lease_from(each)
        state: State = "no leader"
        if lease.holder and lease.renewed:
            end = datetime.fromisoformat(lease.renewed) + timedelta(seconds=lease.duration) + SKEW
            state = "running" if now.astimezone(UTC) < end else "no leader"
        for name in filter(None, names.split(",")):
            yield Served(name, state, f"Lease {_place(each)}")


def _names(text: str) -> Iterator[str]:
    """The schedulerNames of a SchedulerConfiguration; nothing for any other text."""
    if SCHEDULER_CONFIGURATION not in text:
        return
    from eclectus.config.settings_reading import read_yaml

    try:
        document = read_yaml(text)
    except SettingsError:
        return
    if not isinstance(document, dict) or document.get("kind") != SCHEDULER_CONFIGURATION:
        return
    profiles = document.get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        name = profile.get("schedulerName") if isinstance(profile, dict) else None
        if isinstance(name, str):
            yield name


def _place(each: Object) -> str:
    metadata = each["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


PODS = "/api/v1/pods"
LEASES = "/apis/coordination.k8s.io/v1/leases"
CONFIG_MAPS = "/api/v1/configmaps"
OURS = {"labelSelector": f"{PART_OF_LABEL}={PART_OF}"}
UNPLACED = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}

Output = Literal["table", "wide", "json"]
Object = dict[str, Any]
Said = Mapping[str, Object]
"""What the leader says of pods that wait, by uid."""


@click.command()
@click.option("-n", "--namespace", help="Namespace of the pods. By default that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@cluster_commands.output_option(Output, "Output format; `wide` has whole messages and since when each holds.")
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Also count NAME as one of Eclectus; can be repeated. Needed only where Leases and ConfigMaps "
    "may not be listed.",
)
@cluster_commands.kubeconfig_options
def pending(
    *,
    namespace: str | None,
    all_namespaces: bool,
    output: Output,
    names: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """List the pods without a node that wait for an Eclectus scheduler, the oldest first, and say why.

    Also listed are pods with a schedulerName that nobody serves: neither Eclectus nor kube-scheduler
    (default-scheduler), and no scheduler has reported on them. REASON and MESSAGE are those of the pod's
    condition PodScheduled. The names that Eclectus serves are read from its Leases and from the ConfigMaps
    of the chart, so that the command also works while no scheduler runs.

    Where the chart's visibility.enabled is set, the leader is asked too: STATE is where a pod waits, AHEAD
    how many others are before it in its queue, and MESSAGE why it waits now.

    COPY OF is there if a copy of a pod that straggles waits, and names that pod.

    \b
    Permissions of the caller:
      list pods                in the namespace, or with -A in the cluster
      list leases, configmaps  in the cluster; without both, name schedulers by --scheduler-name
    """
    from eclectus.kubeclient import credentials
    from eclectus.kubeclient.client import ObjectApi, list_objects

    if all_namespaces and namespace:
        raise click.UsageError("give either --namespace or --all-namespaces")
    access = credentials.load(kubeconfig, context)
    where = "" if all_namespaces else namespace or default_namespace(kubeconfig, context)

    async def answer(client: ApiClient) -> cluster_commands.Answer:
        api = ObjectApi(client)
        said = await cluster_commands.awaited(_said(api, where), "asking the scheduler")
        known = await cluster_commands.awaited(_known(api, names, said), "looking for the schedulers")
        path = f"/api/v1/namespaces/{where}/pods" if where else PODS
        pods = await cluster_commands.awaited(list_objects(api, path, UNPLACED), "listing the pods")
        return formatted(rows(pods, known, said or {}), known, where, output), ()

    cluster_commands.print_changes(access, answer, watch=False)


async def _said(api: ObjectApi, namespace: str) -> Said | None:
    """What the leader says by the aggregated API; None where that is not served. What fails is reported."""
    from eclectus.kubeclient.api_errors import ApiError, MissingError, RejectedError
    from eclectus.kubeclient.client import list_pages

    found = dict[str, Object]()
    path = f"/namespaces/{namespace}/{PENDING_PODS}" if namespace else f"/{PENDING_PODS}"
    try:
        async for page in list_pages(api, f"/apis/{VISIBILITY_API}{path}"):
            found |= {each["metadata"]["uid"]: each for each in page}
    except (MissingError, RejectedError):
        return None  # as without the chart's visibility.enabled
    except ApiError as error:
        missing = "where other pods wait" if found else "where they wait"
        click.echo(f"note: the API server does not say {missing}: {error.reason}", err=True)
        return found or None
    return found


async def _known(api: ObjectApi, names: tuple[str, ...], said: Said | None = None) -> dict[str, Served]:
    """The names that Eclectus serves. What may not be listed is reported, unless the leader has answered."""
    from eclectus.kubeclient.client import list_objects

    is_answered = said is not None
    permitted = partial(cluster_commands.permitted, quiet=is_answered)
    leases = await permitted(list_objects(api, LEASES, OURS))
    config_maps = await permitted(list_objects(api, CONFIG_MAPS, OURS))
    known = served(leases or (), config_maps or (), datetime.now(UTC))
    assumed = names or ((PART_OF,) if leases is None and config_maps is None else ())
    if assumed and not names and not is_answered:
        note = f"assuming that Eclectus serves {PART_OF!r}; --scheduler-name NAME says otherwise"
        click.echo(note, err=True)
    by_leader = {each["schedulerName"] for each in (said or {}).values()}
    return {
        **{name: Served(name, "unknown", "--scheduler-name") for name in assumed},
        **{name: Served(name, "running", VISIBILITY_SERVICE) for name in by_leader},
        **known,
    }


def formatted(found: list[Row], known: dict[str, Served], namespace: str, output: Output) -> str:
    """The text to print."""
    if output == "json":
        schedulers = [{"name": each.name, "state": each.state, "from": each.where} for each in known.values()]
        return structured({"pods": found, "schedulers": schedulers}, output)
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    if not found and not known:
        return f"no Eclectus scheduler was found, and no pod {where} waits for a name that nobody serves"
    if not found:
        return f"no pod {where} waits for {', '.join(sorted(known))}"
    now = datetime.now(UTC)
    return "\n".join([*table(found, now, wide=output == "wide"), "", *summary(found, known, now)])


GATED = "SchedulingGated"  # set by the API server, not by a scheduler

Row = dict[str, Any]


def rows(pods: Iterable[Object], known: Mapping[str, Served], said: Said = MappingProxyType({})) -> list[Row]:
    """One mapping for each pod that waits for a name of Eclectus or of no scheduler, the oldest first.

    A name counts as that of no scheduler if it is neither Eclectus' nor kube-scheduler's, and if no scheduler
    has reported on the pod.
    """
    found = (_row(pod, known, said.get(pod["metadata"].get("uid", ""), {})) for pod in pods if _waits(pod))
    ours = (row for row in found if row["scheduler"] != "other")
    return sorted(ours, key=lambda row: (row["createdTime"], row["namespace"], row["name"]))


def table(found: Sequence[Row], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """The lines of a table in columns."""
    shown = {
        "COPY OF": any(row["copyOf"] for row in found),
        "SINCE": wide,
        "STATE": (has_states := any(row["state"] for row in found)),
        "AHEAD": has_states,
    }
    more = [head for head, is_shown in shown.items() if is_shown]
    heads = ["NAMESPACE", "POD", "SCHEDULER", "PRIORITY", "AGE", *more, "REASON", "MESSAGE"]
    return aligned([heads, *(_cells(row, now, more, wide=wide) for row in found)])


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


def _row(pod: Object, known: Mapping[str, Served], said: Object) -> Row:
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
        "message": said.get("reason") or condition.get("message"),
        "since": condition.get("lastTransitionTime"),
        "state": said.get("state"),
        "ahead": said.get("ahead"),
        "group": said.get("group") or None,
        "copyOf": _original(metadata),
    }


def _original(metadata: Object) -> str | None:
    """The pod that this one is a copy of; None if it is none."""
    uid: str | None = metadata.get("labels", {}).get(COPY_OF_LABEL)
    name: str | None = metadata.get("annotations", {}).get(ORIGINAL)
    return None if uid is None else name or uid


def _state(name: str, condition: Object, known: Mapping[str, Served]) -> str:
    """The state of its scheduler; `other` if the pod is none of our business."""
    if name in known:
        return known[name].state
    is_reported_on = bool(condition) and condition.get("reason") != GATED
    return "other" if name == DEFAULT_SCHEDULER or is_reported_on else "nobody"


def _cells(row: Row, now: datetime, more: Iterable[str], *, wide: bool) -> list[str]:
    state = row["scheduler"]
    name = f"{row['schedulerName']} ({state})" if state in ("no leader", "nobody") else row["schedulerName"]
    message = " ".join((row["message"] or "no scheduler has reported on it").split())
    cells = [row["namespace"], row["name"], name, str(row["priority"]), age(row["createdTime"], now)]
    further = {
        "COPY OF": row["copyOf"] or ABSENT,
        "SINCE": age(row["since"], now),
        "STATE": row["state"] or ABSENT,
        "AHEAD": ABSENT if row["ahead"] is None else str(row["ahead"]),
    }
    return [*cells, *map(further.get, more), row["reason"] or ABSENT, shortened(message, wide=wide)]
