"""One `KEY=VALUE` of a question, and the values that it may have."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from eclectus.config.reading import nearest
from eclectus.kube.requests import FieldError, amounts, counted, parsed
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Amounts, amount_of

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)


class Item(NamedTuple):
    """One `KEY=VALUE`. A key with a dot has a name behind it: `request.cpu`."""

    key: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}{self.name}={self.value}"


def read_item(text: str) -> Item:
    """The item that a user has written. Raises QuestionError."""
    left, sign, value = text.strip().partition("=")
    if not sign:
        raise QuestionError(f"{text.strip()!r} is not KEY=VALUE")
    # Of `taint+=KEY=VALUE:EFFECT` the + before the first = belongs to the key.
    key, dot, name = left.partition(".")
    return Item(f"{key}{dot}", name, value)


def with_amount(before: Amounts, resource: str, amount: int) -> Amounts:
    """The amounts with another one of this resource; without the resource for 0."""
    others = [each for each in before if each[0] != resource]
    return tuple(sorted([*others, (resource, amount)] if amount else others))


def amount(item: Item) -> int:
    """The value as a quantity, in the smallest unit of the resource. Raises QuestionError."""
    if not counted(item.name):
        raise QuestionError(f"{item}: {item.name!r} is no resource that nodes have, such as cpu or memory")
    try:
        return amount_of(amounts(parsed({item.name: item.value}, item.key.rstrip("."))), item.name)
    except FieldError as error:
        raise QuestionError(f"{item}: {error.problem}") from error


def with_effect(item: Item) -> tuple[str, Effect | Literal[""]]:
    """The text before `:EFFECT`, and the effect; empty: every one."""
    text, _, effect = item.value.partition(":")
    if not text:
        raise QuestionError(f"{item}: the key of a taint is missing")
    if effect and effect not in EFFECTS:
        raise QuestionError(f"{item}: there is no effect {effect!r}; {nearest(effect, list(EFFECTS))}")
    return text, next((each for each in EFFECTS if each == effect), "")


def whole(item: Item, least: int, most: int) -> int:
    """The value as a number within bounds. Raises QuestionError."""
    try:
        number = int(item.value)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise QuestionError(f"{item}: must be a whole number from {least} to {most}")
    return number
