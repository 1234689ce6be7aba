"""Every policy of every role in the table, with every combination of its settings that have few choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from builders import make_profile
from eclectus.config.reading import settings_of
from eclectus.engine.engine import Engine
from eclectus.model.errors import SettingsError
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import RosellaLearn
from eclectus.policies.table import ROLES


@dataclass(frozen=True)
class Way:
    """One policy in its role, and how to make an engine that uses it."""

    role: str
    name: str
    policy: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.role}: {self.name}"

    def engine(self, seed: int = 0) -> Engine:
        """A new engine with this policy in its role, and simple policies in the others."""
        policy = self.policy()
        learn = policy if self.role == "learn" else RosellaLearn(window=8)
        roles: dict[str, Any] = {}
        if self.role == "line":
            roles["place"] = Uniform("lines")
        if self.role != "learn":
            roles[self.role] = policy
        return Engine([make_profile(**roles)], learn, seed)


def every_way() -> Iterator[Way]:
    """All policies with all combinations, in the order of the table."""
    for role, policies in ROLES.items():
        for name, policy in policies.items():
            for settings in _variants(policy):
                said = ", ".join(f"{key}={value}" for key, value in settings.items())
                yield Way(role, f"{name} {said}".strip(), _maker(policy, settings))


def written(role: str) -> Iterator[dict[str, Any]]:
    """The same for one role, as written in a configuration: `{"policy": ..., settings}`.

    Defaults are left out, because a setting may contradict the default of another.
    """
    for name, policy in ROLES[role].items():
        spelling = {field: key for key, (field, _, _) in settings_of(policy).items()}
        default = {each.name: each.default for each in fields(policy)}
        seen: list[dict[str, Any]] = []
        for settings in _variants(policy):
            said = {spelling[field]: value for field, value in settings.items() if value != default[field]}
            if said not in seen:
                seen.append(said)
                yield {"policy": name, **said}


def _maker(policy: type[Any], settings: dict[str, Any]) -> Callable[[], Any]:
    return lambda: policy(**settings)


def _variants(policy: type[Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the settings with few choices that the policy accepts as valid."""
    choices = {name: _choices(hint) for name, hint, _ in settings_of(policy).values()}
    several = {name: values for name, values in choices.items() if values}
    if several:
        yield {}  # defaults only
    for values in product(*several.values()):
        settings = dict(zip(several, values, strict=True))
        try:
            policy(**settings)
        except SettingsError:
            continue
        yield settings


def _choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(value for part in get_args(hint) for value in _choices(part))
    return (False, True) if hint is bool else ()  # unset: covered by defaults only
