"""The effective configuration: a file with every setting, the defaults included."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import KIND, Configuration
from eclectus.config.settings_reading import settings_of
from eclectus.model.settings import Setting
from eclectus.policies.table import ROLES


def effective(configuration: Configuration) -> str:
    """The YAML text of a file that configures the same and leaves out nothing."""
    return str(yaml.safe_dump(_document(configuration), sort_keys=False, width=110))


def configz(configuration: Configuration) -> bytes:
    """The same as the JSON page /configz, under kube-scheduler's key and without the password of a URL."""
    document = _document(configuration)
    url = urlsplit(document["loadSignal"]["url"])
    if "@" in url.netloc:
        hidden = url._replace(netloc="***@" + url.netloc.rpartition("@")[2])
        document["loadSignal"]["url"] = hidden.geturl()
    return msgspec.json.encode({"componentconfig": document})


def _document(configuration: Configuration) -> dict[str, Any]:
    profiles = [
        {
            "schedulerName": profile.scheduler_name,
            **{role: _policy(role, getattr(profile, role)) for role in ("order", "place", "line", "relieve")},
            **_values(profile.settings),
        }
        for profile in configuration.profiles
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "seed": configuration.seed,
        "learn": _policy("learn", configuration.learn),
        "profiles": profiles,
        **_values(configuration.process),
    }


def _policy(role: str, policy: object) -> dict[str, Any]:
    name = next(name for name, kind in ROLES[role].items() if kind is type(policy))
    return {"policy": name, **_values(policy)}


def _values(settings: Any) -> dict[str, Any]:
    """Spelling in files -> value, for every field of a settings class."""
    return {
        key: _written(getattr(settings, name), setting)
        for key, (name, _, setting) in settings_of(type(settings)).items()
    }


def _written(value: Any, setting: Setting | None) -> Any:
    """A value as a file has it."""
    if is_dataclass(value):
        return _values(value)
    if isinstance(value, tuple):
        return [_written(each, setting) for each in value]
    if setting is not None and setting.unit == "s" and isinstance(value, float):
        return duration(value)
    return dict(value) if isinstance(value, dict) else value


def duration(seconds: float) -> str | float:
    """`15s` or `250ms`; the number itself if neither is exact."""
    if seconds == int(seconds):
        return f"{int(seconds)}s"
    milliseconds = round(seconds * 1000)
    return f"{milliseconds}ms" if milliseconds * 1e-3 == seconds else seconds
