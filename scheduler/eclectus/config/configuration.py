"""A SchedulerConfiguration file as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eclectus.api.names import API_VERSION
from eclectus.config.document import read_file, read_with_duplicates
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.profiles import FIELDS as PROFILE_FIELDS
from eclectus.config.profiles import read_learner, read_profiles, required_of_learner
from eclectus.config.settings_reading import nearest, read, read_mapping, settings_of, show
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, Profile
from eclectus.model.errors import Problems, SettingsError

KIND = "SchedulerConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"  # kube-scheduler's name unless it is configured otherwise

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
    with problems.collected():
        seed = _read_seed(mapping.get("seed", 0))
    with problems.collected():
        process = _read_process(mapping)
    problems.raise_any()
    return Configuration(profiles, learn, seed, process, text)


def _check_kind(mapping: dict[str, object], problems: Problems) -> None:
    """Record a wrong header. Raises for a file of another kind, whose fields mean something else."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if mapping.get(key) != wanted:
            problems.add(key, f"must be {wanted}, not {show(mapping.get(key))}")
    if mapping.get("kind", KIND) != KIND:
        problems.raise_any()


def _read_seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError("seed", f"must be a whole number, not {show(value)}")
    return value


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
