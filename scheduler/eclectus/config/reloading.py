"""Which settings a running scheduler takes over from its changed file; others hold until it is restarted.

These hold no state and are read whenever they count: `writesBesideBinds` of `clientConnection`, `interval`
and `writesARound` of `nodeProfiles`, and `waitLimit` of a profile as long as it has a limit before and after,
because pods that wait without one are not followed.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as replaced

from eclectus.config.configuration import Configuration, document
from eclectus.config.process_settings import ProcessSettings
from eclectus.framework import Profile


def reloaded(running: Configuration, new: Configuration) -> Configuration:
    """The running configuration with what it takes over from the new one."""
    theirs = {each.scheduler_name: each for each in new.profiles}
    profiles = tuple(_profile(each, theirs.get(each.scheduler_name, each)) for each in running.profiles)
    return replace(running, profiles=profiles, process=_process(running.process, new.process))


def _profile(running: Profile, new: Profile) -> Profile:
    """With the other limit, if both have one, and the running policies do not hold pods for longer."""
    before, limit = running.settings.wait_limit, new.settings.wait_limit
    if before is None or limit is None or running.hold.traits.longest >= limit:
        return running
    return replaced(running, settings=replace(running.settings, wait_limit=limit))


def _process(running: ProcessSettings, new: ProcessSettings) -> ProcessSettings:
    few = new.client_connection.writes_beside_binds
    profiles = new.node_profiles
    return replace(
        running,
        client_connection=replace(running.client_connection, writes_beside_binds=few),
        node_profiles=replace(
            running.node_profiles, interval=profiles.interval, writes_a_round=profiles.writes_a_round
        ),
    )


def differing(before: Configuration, after: Configuration) -> list[str]:
    """The fields in which they differ, as a file spells them, such as `profiles[0].waitLimit`."""
    one, other = dict(_fields(document(before))), dict(_fields(document(after)))
    return [field for field in {**one, **other} if one.get(field, _ABSENT) != other.get(field, _ABSENT)]


_ABSENT = object()


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each field that has no fields itself, with its value."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _fields(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from _fields(each, f"{path}[{at}]")
    else:
        yield path, value
