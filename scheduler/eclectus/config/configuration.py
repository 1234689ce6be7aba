"""A SchedulerConfiguration file as a whole: read and validated, or written with every setting."""

from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from eclectus.api.names import API_VERSION, DEFAULT_SCHEDULER, SCHEDULER_CONFIGURATION
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.profiles import FIELDS as PROFILE_FIELDS
from eclectus.config.profiles import read_learner, read_profiles, required_of_learner
from eclectus.config.settings_reading import (
    read,
    read_file,
    read_mapping,
    read_with_duplicates,
    settings_of,
    show,
)
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, Profile, Relieve
from eclectus.model.errors import Problems, SettingsError
from eclectus.model.printed import nearest
from eclectus.model.settings import Setting
from eclectus.policies.shared import Chain

_ENGINE_FIELDS = ["apiVersion", "kind", "profiles", "learn", "seed"]
_PROCESS_FIELDS = list(settings_of(ProcessSettings))


@dataclass(frozen=True)
class Configuration:
    """What a file configures. Policies keep state, so each engine needs a Configuration of its own."""

    profiles: tuple[Profile, ...]
    learn: Learn
    seed: int
    process: ProcessSettings
    text: str  # of the file, as recorded in tapes

    def engine(self) -> Engine:
        """A new engine with these policies. Call it once: the policies keep state."""
        return Engine(self.profiles, self.learn, self.seed)

    def warnings(self) -> list[str]:
        """What is valid but seldom intended, with what to do."""
        return [
            f"profiles[{at}].schedulerName: {DEFAULT_SCHEDULER!r} is kube-scheduler's name, and two "
            "schedulers that serve one name bind the same pods and over-commit nodes; choose another name, "
            "or stop kube-scheduler before this scheduler starts"
            for at, profile in enumerate(self.profiles)
            if profile.scheduler_name == DEFAULT_SCHEDULER
        ]


class RunningConfiguration:
    """The configuration of a process as it is now, and the file that it came from."""

    def __init__(self, path: Path, now: Configuration) -> None:
        self.path, self.now = path, now


def load(path: Path) -> Configuration:
    """Read and validate a file. Raises one SettingsError with all that is wrong and the file's name."""
    try:
        return parse(read_file(path))
    except SettingsError as error:
        raise error.in_file(path) from None


def parse(text: str) -> Configuration:
    """Validate the text of a file. Raises one SettingsError with all that is wrong."""
    document, problems = read_with_duplicates(text)
    mapping = read_mapping(document, "")
    _check_kind(mapping, problems)
    known = _ENGINE_FIELDS + _PROCESS_FIELDS
    for key in mapping:
        if key not in known:
            problems.add(key, f"unknown field; {nearest(key, known, PROFILE_FIELDS, 'a profile')}")
    required: dict[str, object] = {}
    with problems.collected():
        profiles = read_profiles(mapping.get("profiles"), "profiles")
        required = required_of_learner(profiles, "profiles")
    with problems.collected():
        learn = read_learner(mapping.get("learn"), "learn", required)
    seed = mapping.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        problems.add("seed", f"must be a whole number, not {show(seed)}")
    with problems.collected():
        process = _read_process(mapping)
    problems.raise_any()
    return Configuration(profiles, learn, seed, process, text)


def _check_kind(mapping: dict[str, object], problems: Problems) -> None:
    """Record a wrong header. Raises for a file of another kind, whose fields mean something else."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", SCHEDULER_CONFIGURATION)):
        if mapping.get(key) != wanted:
            problems.add(key, f"must be {wanted}, not {show(mapping.get(key))}")
    if mapping.get("kind", SCHEDULER_CONFIGURATION) != SCHEDULER_CONFIGURATION:
        problems.raise_any()


def _read_process(mapping: dict[str, object]) -> ProcessSettings:
    """The settings of the process; what two sections have in common is checked if both are valid."""
    problems, sections = Problems(), {}
    for key, (name, kind, _) in settings_of(ProcessSettings).items():
        with problems.collected():
            sections[name] = read(kind, mapping.get(key), key)
    if {"client_connection", "leader_election"} <= sections.keys():
        with problems.collected():
            process = ProcessSettings(**sections)
    problems.raise_any()
    return process


def effective(configuration: Configuration) -> str:
    """The YAML text of a file that configures the same and leaves out nothing."""
    return str(yaml.safe_dump(document(configuration), sort_keys=False, width=110))


def configz(configuration: Configuration) -> bytes:
    """The same as the JSON page /configz, under kube-scheduler's key and without the password of a URL."""
    found = document(configuration)
    url = urlsplit(found["loadSignal"]["url"])
    if "@" in url.netloc:
        hidden = url._replace(netloc="***@" + url.netloc.rpartition("@")[2])
        found["loadSignal"]["url"] = hidden.geturl()
    return msgspec.json.encode({"componentconfig": found})


def document(configuration: Configuration) -> dict[str, Any]:
    """What the YAML of a file that leaves out nothing holds."""
    profiles = [
        {
            "schedulerName": profile.scheduler_name,
            **{role: _policy(role, getattr(profile, role)) for role in ("order", "place", "line")},
            "relieve": _relief(profile.relieve),
            "speculate": _policy("speculate", profile.speculate),
            "hold": _policy("hold", profile.hold),
            **_values(profile.settings),
        }
        for profile in configuration.profiles
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": SCHEDULER_CONFIGURATION,
        "seed": configuration.seed,
        "learn": _policy("learn", configuration.learn),
        "profiles": profiles,
        **_values(configuration.process),
    }


def _relief(policy: Relieve) -> dict[str, Any] | list[dict[str, Any]]:
    if isinstance(policy, Chain):
        return [_policy("relieve", each) for each in policy.policies]
    return _policy("relieve", policy)


def _policy(role: str, policy: object) -> dict[str, Any]:
    return {"policy": str(policy).removeprefix(f"{role}/"), **_values(policy)}


def _values(settings: Any) -> dict[str, Any]:
    """Spelling in files -> value, for every field of a settings class."""
    return {
        key: in_file(getattr(settings, name), setting)
        for key, (name, _, setting) in settings_of(type(settings)).items()
    }


def in_file(value: Any, setting: Setting | None) -> Any:
    """A value as the YAML of a file has it."""
    if is_dataclass(value):
        return _values(value)
    if isinstance(value, tuple):
        return [in_file(each, setting) for each in value]
    if setting is not None and setting.unit == "s" and isinstance(value, float):
        return duration(value)
    return dict(value) if isinstance(value, dict) else value


def duration(seconds: float) -> str | float:
    """`15s` or `250ms`; the number itself if neither is exact."""
    if seconds == int(seconds):
        return f"{int(seconds)}s"
    milliseconds = round(seconds * 1000)
    return f"{milliseconds}ms" if milliseconds * 1e-3 == seconds else seconds
