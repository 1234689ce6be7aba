"""The machine of all simulated processes: clocks, host names, random identities, ports and connections."""

from __future__ import annotations

from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import Any

from typing_extensions import override

from eclectus.kubeclient import leadership, timing
from eclectus.live import parts, scheduler_process
from eclectus.live.watch import reflector
from eclectus.live.write import event_recorder, evictor, status_patches
from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.operators import in_place_of_kopf
from eclectus_e2e.chaos.virtual_time import EPOCH_SECONDS, PROCESS
from eclectus_operator import program


class SimulatedMachine:
    """Puts what is simulated in the place of what the programs import."""

    def __init__(self, network: Network, rng: Random) -> None:
        loop = network.loop

        def wall() -> float:
            process = PROCESS.get()
            return EPOCH_SECONDS + loop.time() + (process.wall_step_seconds if process else 0.0)

        def host() -> str:
            process = PROCESS.get()
            return process.name if process else "nobody"

        class Wall(datetime):
            """A datetime whose `now` is the process' own."""

            @classmethod
            @override
            def now(cls, tz: Any = None) -> Wall:
                return cls.fromtimestamp(wall(), tz)

        clock = SimpleNamespace(
            time=wall,
            time_ns=lambda: int(wall() * 1e9),
            monotonic=loop.time,
            clock_gettime=lambda _: loop.time(),
            CLOCK_BOOTTIME=0,
        )
        uuids = SimpleNamespace(uuid4=lambda: f"{rng.getrandbits(64):016x}")
        listening = SimpleNamespace(close=lambda: None)
        programs = (scheduler_process, program)
        self._replaced: list[tuple[Any, str, Any]] = [
            (timing, "time", clock),
            (event_recorder, "time", clock),
            *((module, "datetime", Wall) for module in (leadership, evictor, status_patches)),
            *((module, "uuid", uuids) for module in (parts, program)),
            *((module, "socket", SimpleNamespace(gethostname=host)) for module in (parts, program)),
            *((module, "listen", lambda *_: listening) for module in programs),
            *((module, "bound_address", lambda _: "simulated") for module in programs),
            # So small a cluster has no kind that a new leader does not list again.
            (reflector, "FEW_OBJECTS", rng.choice([0, 4, 1_000])),
            (program, "time", clock),
            (program, "Random", lambda: Random(rng.random())),
            *((program, name, value) for name, value in in_place_of_kopf(network).items()),
        ]

    def __enter__(self) -> None:
        self._kept = [(module, name, getattr(module, name)) for module, name, _ in self._replaced]
        for module, name, value in self._replaced:
            setattr(module, name, value)

    def __exit__(self, *_: object) -> None:
        for module, name, value in self._kept:
            setattr(module, name, value)
