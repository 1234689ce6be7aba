"""How probe pods are named and recognised.

    eclectus-probe-<instance>-<run id>-<seq>

Names are deterministic: an operator that restarts after a crash computes the same name, and the API
server's 409 AlreadyExists says that the pod exists. Labels repeat everything that is in the name, so that
the state can be rebuilt from the API alone. A pod belongs to an operator only if name and labels agree: a
pod that merely has the prefix is never deleted.

The instance is part of the name because two installations may share a namespace. A repeated attempt takes
a new `seq`: the old pod of that name may still be terminating.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eclectus.api.names import ATTEMPT_LABEL, INSTANCE_LABEL, RUN_ID_LABEL, SEQ_LABEL

PREFIX = "eclectus-probe"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "eclectus"

ID_CHARACTERS = 16  # prefix, two ids, ten digits and dashes: 59 of a DNS label's 63
MAX_SEQ = 2**31 - 1
_ID = re.compile(rf"[a-z0-9]{{1,{ID_CHARACTERS}}}")  # no dash: the name must split in one way only
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_NAME = re.compile(rf"{PREFIX}-({_ID.pattern})-({_ID.pattern})-({_NUMBER.pattern})")


class NamingError(ValueError):
    """An id that cannot be part of a name: correct the field that the message names."""


@dataclass(frozen=True, order=True)
class ProbeId:
    """Run number `seq` of a NodeProbe (`run`) of an instance, and which attempt. Raises NamingError."""

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
            if not least <= number <= MAX_SEQ:
                raise NamingError(f"{field} {number}: must be {least}..{MAX_SEQ}")

    @property
    def name(self) -> str:
        """The pod's name, a DNS-1123 label."""
        return f"{PREFIX}-{self.instance}-{self.run}-{self.seq}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels that identify the pod."""
        return {
            MANAGED_BY: MANAGER,
            INSTANCE_LABEL: self.instance,
            RUN_ID_LABEL: self.run,
            SEQ_LABEL: str(self.seq),
            ATTEMPT_LABEL: str(self.attempt),
        }


def selector(instance: str) -> str:
    """The label selector of an instance's pods."""
    return f"{MANAGED_BY}={MANAGER},{INSTANCE_LABEL}={instance}"


def recognised(name: str, labels: Mapping[str, str], instance: str) -> ProbeId | str:
    """Which of the instance's pods this is, if name and labels agree; else why it is none of them."""
    match = _NAME.fullmatch(name)
    if not match:
        return f"the name is not {PREFIX}-<instance>-<run>-<seq>"
    foreign = _foreign_reason(labels, instance)
    if foreign:
        return foreign
    try:
        probe = ProbeId(match[1], match[2], int(match[3]), int(labels[ATTEMPT_LABEL]))
    except NamingError as error:
        return str(error)
    for label, expected in probe.labels.items():
        if labels.get(label) != expected:
            return f"label {label} is {labels.get(label, '')!r} and the name says {expected!r}"
    return probe


def _foreign_reason(labels: Mapping[str, str], instance: str) -> str:
    """Why the labels alone show that a pod is not this instance's; empty if they do not."""
    if labels.get(MANAGED_BY) != MANAGER:
        return f"no label {MANAGED_BY}={MANAGER}: a prefix alone proves nothing"
    if labels.get(INSTANCE_LABEL) != instance:
        return f"it belongs to instance {labels.get(INSTANCE_LABEL, '')!r}"
    if not _NUMBER.fullmatch(labels.get(ATTEMPT_LABEL, "")):
        return f"label {ATTEMPT_LABEL} is {labels.get(ATTEMPT_LABEL, '')!r} and no number"
    return ""
