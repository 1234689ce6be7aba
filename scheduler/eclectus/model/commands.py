"""What the core may ask of the world. The world answers with events, never with an exception."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Bind(Struct, frozen=True, gc=False, tag=True):
    """Bind this pod to this node; answered by BindConfirmed or BindRefused, once."""

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    devices: tuple[int, ...] = ()  # of the node, where it asks for some: whole ones, then that of its share


class Report(Struct, frozen=True, gc=False, tag=True):
    """Say on the pod why it is not placed: condition PodScheduled=False, and an event."""

    uid: str
    namespace: str
    name: str
    profile: str
    reason: Literal["Unschedulable", "SchedulerError", "WaitingForNode"]
    message: str


class Fault(Struct, frozen=True, gc=False, tag=True):
    """A policy asked for something that must not be, and was refused: a defect to log and count."""

    policy: str
    message: str


Command = Bind | Report | Fault
