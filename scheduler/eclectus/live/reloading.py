"""Follows the configuration file: what may change while the scheduler runs is taken over from a new text.

A mounted ConfigMap is replaced as a whole, and a file in it is a link, so the text is read again and again
and compared. Every replica follows its own file. What decisions depend on reaches the engine as events, so
that tapes replay; a standby has them too.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eclectus.config.configuration import Configuration, RunningConfiguration, parse
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.reloading import differing, reloaded
from eclectus.config.settings_reading import read_file
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Figure, Measured
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, WaitLimitSeen

LOOK_SECONDS = 10.0  # a kubelet takes a minute to replace a file
NAMED_MOST = 20  # fields that a line names

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class ConfigurationFollower:
    """Takes over what has changed. `use` gets the settings of the process, `counts` the results."""

    running: RunningConfiguration
    inbox: Inbox
    use: Callable[[ProcessSettings], None]
    counts: Measured[Figure]

    def __post_init__(self) -> None:
        self._seen = self.running.now.text
        self._problem = ""  # of the file as it was read last

    async def run(self) -> None:
        """Look at the file again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Read the file; take over what may be, say what may not. An invalid text changes nothing."""
        path = self.running.path
        try:
            text = await asyncio.to_thread(read_file, path)
            if text == self._seen:
                return
            self._seen = text
            new = await asyncio.to_thread(parse, text)
        except SettingsError as error:
            self._refuse(str(error))
            return
        self._problem = ""
        self._take_over(new)

    def _refuse(self, problem: str) -> None:
        """Say once of a problem that the old settings hold."""
        if problem == self._problem:
            return
        self._problem = problem
        self.counts.labels("invalid").inc()
        _log.error(
            "%s has changed and is not valid, so the settings before hold: %s", self.running.path, problem
        )

    def _take_over(self, new: Configuration) -> None:
        before, path = self.running.now, self.running.path
        now = reloaded(before, new)
        taken, left = differing(before, now), differing(now, new)
        if taken:
            self.running.now = now
            self.use(now.process)
            for event in _events(before, now):
                self.inbox.put(event)
            _log.warning("%s has changed, and from now on this holds: %s", path, _named(taken))
        if left:
            _log.warning("%s has changed, and a restart applies this: %s", path, _named(left))
        self.counts.labels("refused" if left else "applied").inc()


def _events(before: Configuration, now: Configuration) -> Iterator[Event]:
    """What the engine is to know."""
    for old, new in zip(before.profiles, now.profiles, strict=True):
        limit = new.settings.wait_limit
        if limit is not None and limit != old.settings.wait_limit:
            yield WaitLimitSeen(new.scheduler_name, limit)


def _named(fields: list[str]) -> str:
    more = f", and {len(fields) - NAMED_MOST} more" if len(fields) > NAMED_MOST else ""
    return f"{', '.join(fields[:NAMED_MOST])}{more}"
