"""A KubeSchedulerConfiguration as a SchedulerConfiguration, with a list of what has no counterpart.

What kube-scheduler does by default and Eclectus does not is no matter of the file: docs/differences.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import yaml

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import KIND, parse
from eclectus.config.document import read_yaml
from eclectus.config.effective import duration
from eclectus.config.reading import join, read, read_mapping, show
from eclectus.config.upstream.fields import KubeSchedulerConfiguration, LeaderElection, Profile
from eclectus.config.upstream.notes import Note, marked
from eclectus.config.upstream.profile import profile_values
from eclectus.model.errors import Problems, SettingsError

UPSTREAM_KIND = "KubeSchedulerConfiguration"
UPSTREAM_VERSION = "kubescheduler.config.k8s.io/v1"
_WIDTH = 110


@dataclass(frozen=True)
class Translation:
    """The values of a SchedulerConfiguration that is valid, and what of the original is not in it."""

    document: dict[str, Any]
    notes: tuple[Note, ...]

    @property
    def text(self) -> str:
        """The file, the notes as comments at its beginning."""
        lines = ["# Translated from a KubeSchedulerConfiguration by `eclectus config import`."]
        lines += ["# Without a counterpart:"] if self.notes else []
        lines += [
            fill(str(each), _WIDTH, initial_indent="# - ", subsequent_indent="#   ") for each in self.notes
        ]
        return "\n".join(lines) + "\n" + _yaml(self.document)


def translate(text: str) -> Translation:
    """The text of a file, translated. Raises one SettingsError with all that is wrong with it."""
    mapping = dict(read_mapping(read_yaml(text), ""))
    _check_kind(mapping)
    given = {key: value for key, value in mapping.items() if key not in ("apiVersion", "kind")}
    source = read(KubeSchedulerConfiguration, given, "")
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "profiles": []}
    notes, problems = list(marked(source, "")), Problems()
    for at, profile in enumerate(source.profiles or (Profile(),)):
        with problems.collected():
            values, of_profile = profile_values(profile, join("profiles", at))
            document["profiles"].append(values)
            notes += of_profile
    problems.raise_any()
    if source.leader_election is not None and (election := _election(source.leader_election)):
        document["leaderElection"] = election
    parse(_yaml(document))  # what kube-scheduler would refuse as well, such as two profiles of one name
    return Translation(document, tuple(notes))


def _check_kind(mapping: dict[str, Any]) -> None:
    """Raises SettingsError for any other file."""
    if mapping.get("kind") != UPSTREAM_KIND:
        raise SettingsError("kind", f"must be {UPSTREAM_KIND}, not {show(mapping.get('kind'))}")
    version = mapping.get("apiVersion")
    if version != UPSTREAM_VERSION:
        problem = f"must be {UPSTREAM_VERSION}, not {show(version)}"
        advice = "kube-scheduler --config OLD --write-config-to NEW converts older versions"
        raise SettingsError("apiVersion", f"{problem}; {advice}")


def _election(election: LeaderElection) -> dict[str, Any]:
    """What is said of the Lease; what is not has kube-scheduler's default here too."""
    times = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    found: dict[str, Any] = {key: duration(value) for key, value in times.items() if value is not None}
    return found if election.leader_elect is None else {"leaderElect": election.leader_elect, **found}


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, width=_WIDTH))
