"""Ways to configure the scheduler: every policy with every choice of its settings, in accepted company.

Of the policies of two roles every pair occurs in some way, except pairs that are refused in any company
(policies/table.py). Variants of a policy that neither traits nor clashes tell apart count as one there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations, product
from typing import Any

from eclectus.config.described import variants
from eclectus.config.profiles import read_learner, read_profiles, required_of_learner
from eclectus.engine.engine import Engine
from eclectus.framework import Learn
from eclectus.policies.table import CLASHES, ROLES


@dataclass(frozen=True, eq=False)
class Choice:
    """A policy of one role with some of its settings, as written in a file."""

    role: str
    name: str
    settings: Mapping[str, Any]
    policy: Any

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    @property
    def written(self) -> dict[str, Any]:
        """As in a configuration."""
        return {"policy": self.name, **self.settings}

    @property
    def is_default(self) -> bool:
        """Whether a configuration may leave it out: the default of a role comes first in the table."""
        return not self.settings and self.name == next(iter(ROLES[self.role]))

    @cached_property
    def clashes(self) -> int:
        """A bit for each of CLASHES that does not ask for another policy of this role."""
        asked = [getattr(clash, self.role, None) for clash in CLASHES]
        return sum(1 << bit for bit, ask in enumerate(asked) if ask is None or ask(self.policy))


@dataclass(frozen=True)
class Way:
    """A choice for every role."""

    choices: Mapping[str, Choice]

    def __str__(self) -> str:
        said = [f"{role}: {choice}" for role, choice in self.choices.items() if not choice.is_default]
        return ", ".join(said) or "defaults"

    @property
    def pairs(self) -> set[frozenset[Choice]]:
        """Every two of its choices."""
        return {frozenset(pair) for pair in combinations(self.choices.values(), 2)}

    @property
    def profile(self) -> dict[str, Any]:
        """The roles of a profile that are not the default, as in a configuration."""
        own = {role: choice for role, choice in self.choices.items() if role != "learn"}
        return {role: choice.written for role, choice in own.items() if not choice.is_default}

    @property
    def is_accepted(self) -> bool:
        """Whether a configuration may say so; by bits, because `clashes_in` is too slow for all of them."""
        left = (1 << len(CLASHES)) - 1
        for choice in self.choices.values():
            left &= choice.clashes
        return not left

    def engine(self, seed: int = 0, learner: Learn | None = None) -> Engine:
        """A new engine, with policies as a configuration makes them, and this learner if one is given."""
        profiles = read_profiles([{"schedulerName": "eclectus", **self.profile}], "profiles")
        required, learn = required_of_learner(profiles, "profiles"), self.choices["learn"].written
        if learn == {"policy": "rosella"} and required.get("mode") != "paper":
            learn["window"] = 8  # samples: a story has few
        return Engine(profiles, learner or read_learner(learn, "learn", required), seed)


class Ways:
    """All ways with the policies that are in the table now.

    `choices`: every variant of every policy, by role. `representatives`: one for each kind that policies of
    other roles can tell apart.
    """

    def __init__(self) -> None:
        self.choices = {role: _first_of_each(_variants(role), _settings) for role in ROLES}
        self.representatives = {role: _first_of_each(every, _kind) for role, every in self.choices.items()}

    def accepted(self, fixed: Collection[Choice]) -> Iterator[Way]:
        """Every way with these choices, and representatives of the other roles, that is not refused."""
        known = self.representatives | {choice.role: [choice] for choice in fixed}
        ways = (Way({choice.role: choice for choice in each}) for each in product(*known.values()))
        return (way for way in ways if way.is_accepted)

    def every(self) -> list[Way]:
        """Every pair first, then every other choice once."""
        found, missing = [], self.possible_pairs()
        while missing:
            pair = next(iter(missing))
            way = max(self.accepted(pair), key=lambda way: len(way.pairs & missing.keys()))
            found.append(way)
            missing = {pair: None for pair in missing if pair not in way.pairs}
        seen = {choice for way in found for choice in way.choices.values()}
        left = [choice for every in self.choices.values() for choice in every if choice not in seen]
        return found + [next(self.accepted([choice])) for choice in left]

    def possible_pairs(self) -> dict[frozenset[Choice], None]:
        """Every two representatives of two roles that some way accepts, in the order of the table."""
        every = [choice for known in self.representatives.values() for choice in known]
        pairs = [frozenset(pair) for pair in combinations(every, 2) if pair[0].role != pair[1].role]
        return {pair: None for pair in pairs if any(True for _ in self.accepted(pair))}


def every_way() -> list[Way]:
    """All ways, in the order of the table."""
    return Ways().every()


def written(role: str) -> Iterator[dict[str, Any]]:
    """Every variant of every policy of a role, as in a configuration."""
    return (choice.written for choice in _variants(role))


def profile_with(role: str, policy: str) -> dict[str, Any]:
    """The roles of a profile that may name this policy: the policy itself, and what must go with it."""
    ways = Ways()
    choice = next(each for each in ways.choices[role] if each.name == policy)
    return {role: choice.written, **next(ways.accepted([choice])).profile}


def _variants(role: str) -> Iterator[Choice]:
    for name, kind in ROLES[role].items():
        for variant in variants(kind):
            yield Choice(role, name, variant.settings, variant.policy)


def _first_of_each(every: Iterable[Choice], key: Callable[[Choice], Hashable]) -> list[Choice]:
    first: dict[Hashable, Choice] = {}
    for choice in every:
        first.setdefault(key(choice), choice)
    return list(first.values())


def _settings(choice: Choice) -> Hashable:
    """What a policy is after `mode` has set other settings.

    Data are not priced where none may be. Pods are ended with fair shares alone: there most is decided.
    """
    given = {each.name: getattr(choice.policy, each.name) for each in fields(choice.policy) if each.init}
    if "price_data" in given:
        given["price_data"] = choice.policy.traits.prices_data
    if "running" in given and not given["fair_share"]:
        given["running"] = ""
    return choice.name, *map(str, given.values())


def _kind(choice: Choice) -> Hashable:
    """What policies of other roles can tell apart."""
    asked = (getattr(clash, choice.role, None) for clash in CLASHES)
    clashes = tuple(ask(choice.policy) for ask in asked if ask is not None)
    return choice.name, getattr(choice.policy, "traits", None), clashes
