"""A world whose engine writes a tape, for commands that read one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eclectus import __version__
from eclectus.api.names import API_VERSION
from eclectus.config.configuration import parse
from eclectus.model.commands import Command
from eclectus.model.events import Event
from eclectus.model.objects import Node
from eclectus.tape import Header, TapeWriter
from worlds import World

KIND = f"apiVersion: {API_VERSION}\nkind: SchedulerConfiguration\n"


class RecordedEngine:
    """The engine of a configuration, each step of which is written down."""

    def __init__(self, configuration: str, tape: TapeWriter) -> None:
        self._engine, self._tape = parse(configuration).engine(), tape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """One step of the engine."""
        commands = self._engine.step(events, now)
        self._tape.step(now, events, commands)
        return commands


class TapedWorld(World):
    """Use it as a context manager; then the tape is complete."""

    def __init__(self, path: Path, profile: str, *nodes: Node) -> None:
        """`profile`: its fields in YAML's flow style, without the schedulerName."""
        text = f"{KIND}profiles: [{{schedulerName: eclectus, {profile}}}]\nlearn: {{policy: none}}\n"
        self._tape = TapeWriter(path, Header(__version__, text, 0))
        super().__init__(RecordedEngine(text, self._tape), *nodes)  # type: ignore[arg-type]

    def __enter__(self) -> TapedWorld:
        self._tape.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tape.__exit__(*error)
