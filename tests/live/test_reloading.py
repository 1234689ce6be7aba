"""A changed configuration file: what is taken over, what is refused by name, and what is not valid."""

import asyncio
import logging

import pytest

from builders import make_node, make_task
from eclectus.config.configuration import RunningConfiguration, parse
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Metrics
from eclectus.live.reloading import NAMED_MOST, ConfigurationFollower
from eclectus.model.events import NodeSeen, Resumed, TaskSeen, WaitLimitSeen

TEXT = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles: [{schedulerName: eclectus, waitLimit: 300s}]
"""


class Mounted:
    """A file as a kubelet mounts it: a link to a folder that is replaced."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0
        self.path = folder / "config.yaml"
        self.path.symlink_to(folder / "..data" / "config.yaml")
        self.write(TEXT)
        self.running = RunningConfiguration(self.path, parse(TEXT))
        self.inbox, self.metrics, self.used = Inbox(), Metrics(), []
        counts = self.metrics.configuration_reloads
        self.follower = ConfigurationFollower(self.running, self.inbox, self.used.append, counts)

    def write(self, text):
        self.number += 1
        new, link = self.folder / f"..{self.number}", self.folder / "..tmp"
        new.mkdir()
        (new / "config.yaml").write_text(text)
        link.symlink_to(new)
        link.rename(self.folder / "..data")

    def look(self, times=1):
        """What the engine learns, and how many changes of each result were counted until now."""

        async def looked():
            for _ in range(times):
                await self.follower.look()
            return await self.inbox.take(0.0) if len(self.inbox) else []

        events = asyncio.run(looked())
        return events, {key[0]: each.value for key, each in self.metrics.configuration_reloads.series.items()}


@pytest.fixture
def mounted(tmp_path):
    return Mounted(tmp_path)


def test_an_unchanged_file_is_nothing(mounted, caplog):
    assert mounted.look(3) == ([], {})
    assert caplog.messages == []


def test_what_may_change_is_applied_once_and_the_log_names_it(mounted, caplog):
    mounted.write(TEXT.replace("300s", "60s") + "nodeProfiles: {interval: 90s}\n")
    assert mounted.look(3) == ([WaitLimitSeen("eclectus", 60.0)], {"applied": 1.0})
    (line,) = caplog.messages
    assert line.endswith(
        "has changed, and from now on this holds: profiles[0].waitLimit, nodeProfiles.interval"
    )
    assert [each.node_profiles.interval for each in mounted.used] == [90.0]
    assert mounted.running.now.profiles[0].settings.wait_limit == 60.0


def test_what_needs_a_restart_is_named_and_the_rest_is_applied(mounted, caplog):
    mounted.write(TEXT.replace("300s", "60s, place: {policy: kube}") + "seed: 8\n")
    assert mounted.look() == ([WaitLimitSeen("eclectus", 60.0)], {"refused": 1.0})
    assert "a restart applies this: seed, profiles[0].place.policy" in caplog.messages[-1]
    assert mounted.running.now.seed == 0
    mounted.write(TEXT)
    assert mounted.look() == ([WaitLimitSeen("eclectus", 300.0)], {"refused": 1.0, "applied": 1.0})


def test_an_invalid_text_keeps_what_was_and_is_said_once(mounted, caplog):
    mounted.write(TEXT.replace("waitLimit: 300s", "waitLimit: soon, plaze: {}"))
    assert mounted.look(3) == ([], {"invalid": 1.0})
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert (
        "is not valid, so the settings before hold: profiles[0].plaze: unknown field" in record.getMessage()
    )
    assert "profiles[0].waitLimit" in record.getMessage()
    mounted.write(TEXT)
    assert mounted.look() == ([], {"invalid": 1.0, "applied": 1.0})


def test_a_file_that_is_away_is_said_once_and_read_again(mounted, caplog):
    mounted.path.unlink()
    assert mounted.look(3) == ([], {"invalid": 1.0})
    assert "cannot be read" in caplog.text
    mounted.path.write_text(TEXT.replace("300s", "60s"))
    assert mounted.look()[0] == [WaitLimitSeen("eclectus", 60.0)]


def test_a_line_names_so_many_fields_at_most(mounted, caplog):
    profiles = "".join(f"- {{schedulerName: s{at}}}\n" for at in range(NAMED_MOST))
    mounted.write(TEXT.partition("profiles")[0] + f"profiles:\n{profiles}")
    mounted.look()
    assert caplog.messages[-1].endswith(" more")
    assert caplog.messages[-1].count(", ") == NAMED_MOST + 1  # one is behind `has changed`


def test_a_limit_on_a_tape_is_decided_again_as_it_was():
    """The engine takes the limit as an event: a repeated run has it too."""
    text = TEXT.replace("waitLimit", "place: {policy: least-allocated}, waitLimit")
    one, other = parse(text).engine(), parse(text).engine()
    steps = [
        (1.0, [NodeSeen(make_node("n")), Resumed()]),
        (2.0, [WaitLimitSeen("eclectus", 9.0), WaitLimitSeen("unknown", 1.0)]),
        (3.0, [TaskSeen(make_task("a"))]),
    ]
    assert [one.step(events, now) for now, events in steps] == [
        other.step(events, now) for now, events in steps
    ]
