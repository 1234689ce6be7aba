"""What a probe pod is called, and how it is known again.

    eclectus-probe-<instance>-<run>-<seq>

Names are deterministic: whoever restarts after a crash computes the same name, and the API server's
409 AlreadyExists says that the pod is there. Everything in the name stands in labels too, so that state
can be rebuilt from the API alone. A pod is ours only if name and labels agree: a prefix alone proves
nothing, and a pod that merely looks like ours is never deleted.

The instance is part of the name from the first day, because two installations may share a namespace.
A repeated attempt takes a new `seq`: the old pod of that name may still be on its way out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "eclectus-probe"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "eclectus"
INSTANCE = "eclectus.dev/instance"
RUN = "eclectus.dev/run-id"
SEQ = "eclectus.dev/seq"
ATTEMPT = "eclectus.dev/attempt"

ID_CHARACTERS = 16  # prefix, two ids, ten digits and dashes: 59 of a DNS label's 63
SEQ_MAX = 2**31 - 1
_ID = re.compile(rf"[a-z0-9]{{1,{ID_CHARACTERS}}}")  # no dash: the name must split in one way only
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_NAME = re.compile(rf"{PREFIX}-({_ID.pattern})-({_ID.pattern})-({_NUMBER.pattern})")


class NamingError(ValueError):
    """An id that cannot stand in a name: correct the field that the message names."""


@dataclass(frozen=True, order=True)
class ProbeId:
    """Which pod this is: the `seq`-th of a run of an instance, and which try of its measurement.

    Raises NamingError.
    """

    instance: str
    run: str
    seq: int
    attempt: int = 1

    def __post_init__(self) -> None:
        for field, value in (("instance", self.instance), ("run", self.run)):
            if not _ID.fullmatch(value):
                raise NamingError(
                    f"{field} {value!r}: use 1 to {ID_CHARACTERS} lower-case letters and digits, nothing else"
                )
        for field, number, least in (("seq", self.seq, 0), ("attempt", self.attempt, 1)):
            if not least <= number <= SEQ_MAX:
                raise NamingError(f"{field} {number}: must be {least}..{SEQ_MAX}")

    @property
    def name(self) -> str:
        """The pod's name, a DNS-1123 label."""
        return f"{PREFIX}-{self.instance}-{self.run}-{self.seq}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels that make the pod ours."""
        return {
            MANAGED_BY: MANAGER,
            INSTANCE: self.instance,
            RUN: self.run,
            SEQ: str(self.seq),
            ATTEMPT: str(self.attempt),
        }


@dataclass(frozen=True)
class NotOurs:
    """Why a pod is left alone."""

    reason: str


def selector(instance: str) -> str:
    """The label selector that lists an instance's pods."""
    return f"{MANAGED_BY}={MANAGER},{INSTANCE}={instance}"


def recognised(name: str, labels: Mapping[str, str], instance: str) -> ProbeId | NotOurs:
    """Which of the instance's pods this is, when name and labels agree about it."""
    match = _NAME.fullmatch(name)
    if not match:
        return NotOurs(f"the name is not {PREFIX}-<instance>-<run>-<seq>")
    foreign = _foreign(labels, instance)
    if foreign:
        return NotOurs(foreign)
    try:
        probe = ProbeId(match[1], match[2], int(match[3]), int(labels[ATTEMPT]))
    except NamingError as error:
        return NotOurs(str(error))
    for label, expected in probe.labels.items():
        if labels.get(label) != expected:
            return NotOurs(f"label {label} is {labels.get(label, '')!r} and the name says {expected!r}")
    return probe


def _foreign(labels: Mapping[str, str], instance: str) -> str:
    """Why labels alone say that a pod is not this instance's; empty if they do not."""
    if labels.get(MANAGED_BY) != MANAGER:
        return f"no label {MANAGED_BY}={MANAGER}: a prefix alone proves nothing"
    if labels.get(INSTANCE) != instance:
        return f"it belongs to instance {labels.get(INSTANCE, '')!r}"
    if not _NUMBER.fullmatch(labels.get(ATTEMPT, "")):
        return f"label {ATTEMPT} is {labels.get(ATTEMPT, '')!r} and no number"
    return ""
