"""A SchedulerConfiguration file as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eclectus.api.names import API_VERSION
from eclectus.config.document import read_yaml
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.profiles import read_learner, read_profiles, required_of_learner
from eclectus.config.reading import join, nearest, read, read_mapping, show
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, Profile
from eclectus.model.errors import SettingsError

KIND = "SchedulerConfiguration"
MAX_BYTES = 1 << 20

_ENGINE_FIELDS = ["apiVersion", "kind", "profiles", "learn", "seed"]
_PROCESS_FIELDS = ["clientConnection", "leaderElection", "server", "loadSignal", "nodeProfiles", "metrics"]


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


def load(path: Path) -> Configuration:
    """Read and validate a file. Raises SettingsError with the file, the field and the problem."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError(str(path), f"is larger than {MAX_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(str(path), f"cannot be read: {error}") from error
    try:
        return parse(text)
    except SettingsError as error:
        raise SettingsError(str(path), str(error)) from None


def parse(text: str) -> Configuration:
    """Validate the text of a file. Raises SettingsError with the field and the problem."""
    mapping = read_mapping(read_yaml(text), "")
    _check_kind(mapping)
    for key in mapping:
        if key not in _ENGINE_FIELDS + _PROCESS_FIELDS:
            raise SettingsError(key, f"unknown field; {nearest(key, _ENGINE_FIELDS + _PROCESS_FIELDS)}")
    profiles = read_profiles(mapping.get("profiles"), "profiles")
    return Configuration(
        profiles=profiles,
        learn=read_learner(mapping.get("learn"), "learn", required_of_learner(profiles, "profiles")),
        seed=_read_seed(mapping.get("seed", 0)),
        process=read(ProcessSettings, {key: mapping[key] for key in _PROCESS_FIELDS if key in mapping}, ""),
        text=text,
    )


def _check_kind(mapping: dict[str, object]) -> None:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if mapping.get(key) != wanted:
            raise SettingsError(join("", key), f"must be {wanted}, not {show(mapping.get(key))}")


def _read_seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError("seed", f"must be a whole number, not {show(value)}")
    return value
