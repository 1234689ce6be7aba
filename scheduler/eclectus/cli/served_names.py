"""Which schedulerNames Eclectus serves in a cluster, by its Leases and the ConfigMaps of its releases.

Both remain while no scheduler runs. A Lease says which names its scheduler serves, and whether one leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from eclectus.api.names import SCHEDULER_NAMES
from eclectus.config.configuration import KIND
from eclectus.config.document import read_yaml
from eclectus.kubeclient.election import Lease, lease_from
from eclectus.model.errors import SettingsError

SKEW = timedelta(seconds=15)  # allowed between this machine's clock and the leader's

State = Literal["running", "no leader", "unknown", "nobody"]
Object = dict[str, Any]


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
    for each in (*of_leases, *_of_config_maps(config_maps)):
        found.setdefault(each.name, each)
    return found


def _of_leases(leases: Iterable[Object], now: datetime) -> Iterator[Served]:
    for each in leases:
        names = each["metadata"].get("annotations", {}).get(SCHEDULER_NAMES, "")
        state: State = "running" if _is_held(lease_from(each), now) else "no leader"
        for name in filter(None, names.split(",")):
            yield Served(name, state, f"Lease {_place(each)}")


def _is_held(lease: Lease, now: datetime) -> bool:
    if not lease.holder or not lease.renewed:
        return False
    renewed = datetime.fromisoformat(lease.renewed)
    return now.astimezone(UTC) < renewed + timedelta(seconds=lease.duration) + SKEW


def _of_config_maps(config_maps: Iterable[Object]) -> Iterator[Served]:
    for each in config_maps:
        for text in (each.get("data") or {}).values():
            for name in _names(text):
                yield Served(name, "unknown", f"ConfigMap {_place(each)}")


def _names(text: str) -> Iterator[str]:
    """The schedulerNames of a SchedulerConfiguration; nothing for any other text."""
    try:
        document = read_yaml(text)
    except SettingsError:
        return
    if not isinstance(document, dict) or document.get("kind") != KIND:
        return
    profiles = document.get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        name = profile.get("schedulerName") if isinstance(profile, dict) else None
        if isinstance(name, str):
            yield name


def _place(each: Object) -> str:
    metadata = each["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
