"""Binds pods whose binds have steps before them: the steps, the bind, and undoing the steps if it fails.

Such binds have requests in flight of their own, so that no other bind waits for a step; and so have those
that wait for volumes, which may take minutes, those of each namespace: whoever names a StorageClass of which
no volume is ever made keeps no others waiting.
"""

from __future__ import annotations

import logging

from eclectus.live.write.binder import Answer, Binder
from eclectus.live.write.nominator import Nominator
from eclectus.live.write.probe_ender import ProbeEnder
from eclectus.live.write.volume_steps import VolumeSteps
from eclectus.model.commands import Bind, BindStep, EndProbe, Renominate, VolumeStep
from eclectus.model.events import BindConfirmed, BindRefused

IN_FLIGHT = 8  # few binds have steps: of pods nominated to another node, and of those that displace probes
WAIT_FOR_VOLUMES = 500  # binds of one namespace; each waits most of its time and sends nothing
STEP_SECONDS = 5.0  # a step that takes longer fails, and so does the bind: the cluster has changed

_log = logging.getLogger(__name__)


def waits_for_volumes(bind: Bind) -> bool:
    """Whether the bind has to wait for volumes."""
    return any(isinstance(step, VolumeStep) for step in bind.before)


class StepBinder:
    """Does the steps of a bind, then the bind."""

    def __init__(
        self, binder: Binder, nominator: Nominator, probe_ender: ProbeEnder, volume_steps: VolumeSteps
    ) -> None:
        self._binder, self._nominator, self._probe_ender = binder, nominator, probe_ender
        self._volume_steps = volume_steps

    async def bind(self, bind: Bind) -> Answer:
        """Returns once it is known whether the pod is bound, and the steps are undone if it is not."""
        done: list[BindStep] = []
        problem = ""
        for step in bind.before:
            problem = await self._do(bind, step)
            if problem:
                break
            done.append(step)
        answer = BindRefused(bind.uid, bind.node, problem) if problem else await self._binder.bind(bind)
        if not isinstance(answer, BindConfirmed):
            for step in reversed(done):
                await self._undo(bind, step)
        return answer

    async def _do(self, bind: Bind, step: BindStep) -> str:
        match step:
            case Renominate():
                problem = await self._nominator.write(bind, step.node, STEP_SECONDS)
                return f"not nominated before the bind: {problem}" if problem else ""
            case EndProbe():
                await self._probe_ender.end(step)
                return ""
            case _:
                return await self._volume_steps.do(bind, step)

    async def _undo(self, bind: Bind, step: BindStep) -> None:
        """A failure does no harm: room is held by the engine, and the status is for others to read."""
        if not isinstance(step, Renominate):
            return
        problem = await self._nominator.write(bind, step.from_node, STEP_SECONDS)
        if problem:
            fields = {"pod": f"{bind.namespace}/{bind.name}", "node": step.from_node, "uid": bind.uid}
            _log.warning("not nominated again after a failed bind: %s", problem, extra=fields)
