"""Tapes: written, read back, and replayed."""

import gzip
import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from eclectus import tape
from eclectus.cli import scheduler
from eclectus.cli.main import program
from eclectus.config.configuration import parse
from eclectus.model.commands import Bind, Fault, Report
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    NodeGone,
    NodeSeen,
    Paused,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import (
    Grant,
    HostPort,
    Node,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
)

CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles: [{schedulerName: eclectus, place: {policy: pot}}]
seed: 7
"""
HEADER = tape.Header("0", CONFIGURATION, 7)
TERM = Term((Requirement("k", "In", ("v",)),), (Requirement("metadata.name", "In", ("n",)),))
SPEC = Spec(
    requests=(("cpu", 100),),
    node_selector=(("a", "b"),),
    affinity=(TERM,),
    preferences=(Preference(5, TERM),),
    tolerations=(Toleration("k", "Exists"),),
    host_ports=(HostPort(80),),
)
TASK = Task("u", "d", "p", spec=SPEC, created=0.1 + 0.2, started=1 / 3, held=(("cpu", 1),))
STEPS = [
    tape.Step(
        1 / 3,
        (
            NodeSeen(Node("n", (("cpu", 4000), ("pods", 10)), (("l", "v"),), (Taint("t"),), True)),
            NodeGone("n"),
            TaskSeen(TASK),
            TaskGone("u"),
            BindConfirmed("u", "n"),
            BindRefused("u", "n", "why"),
            Resumed(),
            Paused(),
        ),
        (Bind("u", "d", "p", "n", "e"), Report("u", "d", "p", "e", "Unschedulable", "é\n"), Fault("x", "y")),
    ),
    tape.Step(1e9 + 1e-6, (), ()),
]


def write(path, steps=STEPS):
    with tape.TapeWriter(path, HEADER) as writer:
        for step in steps:
            writer.step(step.now, step.events, step.commands)


@pytest.mark.parametrize("name", ["t.tape", "t.tape.gz"])
def test_a_tape_returns_exactly_what_was_recorded(tmp_path, name):
    write(tmp_path / name)
    header, steps = tape.read(tmp_path / name)
    assert header == HEADER
    assert list(steps) == STEPS


@pytest.mark.parametrize("name", ["t.tape", "t.tape.gz"])
def test_the_tape_of_a_killed_scheduler_is_readable_up_to_the_kill(tmp_path, name):
    path = tmp_path / name
    write(path, STEPS * 2000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    steps = list(tape.read(path)[1])
    assert 0 < len(steps) < 4000
    assert steps == (STEPS * 2000)[: len(steps)]


def test_devices_on_a_tape_of_format_2_are_read_as_grants(tmp_path):
    grant = Grant((0, 2))
    text = Report("u", "d", "p", "e", "Unschedulable", 'not a field: "devices":[0]')
    bind = Bind("u", "d", "p", "n", "e", grant)
    steps = [*STEPS, tape.Step(2e9, (TaskSeen(replace(TASK, grant=grant)),), (bind, text))]
    write(tmp_path / "t", steps)
    new = (tmp_path / "t").read_text()
    old = new.replace('"grant":{"devices":[0,2]}', '"devices":[0,2]').replace('"grant":{}', '"devices":[]')
    (tmp_path / "t").write_text(old.replace('"format":3', '"format":2'))
    assert (old.count('"devices":[0,2]'), old.count('"devices":[]')) == (2, 2)
    header, found = tape.read(tmp_path / "t")
    assert (header.format, list(found)) == (2, steps)


@pytest.mark.parametrize("content", [b"", b"apiVersion: v1\n", b'{"format":2}\n'])
def test_a_file_that_is_no_tape_is_refused(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(tape.TapeError, match="is not a tape"):
        tape.read(tmp_path / "t")


def test_a_broken_line_is_reported_with_its_number(tmp_path):
    write(tmp_path / "t")
    with (tmp_path / "t").open("ab") as file:
        file.write(b'{"now": "noon"}\n')
    with pytest.raises(tape.TapeError, match="line 4"):
        list(tape.read(tmp_path / "t")[1])


def recorded(path, alter=lambda commands: commands):
    """The tape of an engine that places ten pods on three nodes; `alter` changes the recorded commands."""
    from eclectus.config.configuration import parse

    engine = parse(CONFIGURATION).engine()
    room = (("cpu", 4000), ("memory", 2**30), ("pods", 10))
    nodes = [NodeSeen(Node(f"n{i}", room)) for i in range(3)]
    tasks = [TaskSeen(Task(f"u{i}", "d", f"p{i}")) for i in range(10)]
    with tape.TapeWriter(path, HEADER) as writer:
        for now, events in ((1.0, [*nodes, Resumed()]), (2.0, tasks)):
            commands = engine.step(events, now)
            writer.step(now, events, alter(commands) if commands else [])
    return commands


def test_replay_makes_the_same_decisions(tmp_path):
    commands = recorded(tmp_path / "t")
    assert len(commands) == 10
    result = CliRunner().invoke(program, ["replay", str(tmp_path / "t")])
    assert result.exit_code == 0, result.output
    assert "2 steps, 10 commands, all equal" in result.output


def test_replay_shows_both_sides_of_the_first_difference(tmp_path):
    recorded(tmp_path / "t", lambda commands: [*commands[:3], Fault("x", "altered"), *commands[4:]])
    result = CliRunner().invoke(program, ["replay", str(tmp_path / "t")])
    assert result.exit_code == 1
    assert "command 4 differs" in result.output
    assert "altered" in result.output


def test_replay_counts_a_missing_command_as_a_difference(tmp_path):
    recorded(tmp_path / "t", lambda commands: commands[:-1])
    result = CliRunner().invoke(program, ["replay", str(tmp_path / "t")])
    assert result.exit_code == 1
    assert "(no command)" in result.output


def test_a_compressed_tape_is_gzip(tmp_path):
    write(tmp_path / "t.gz")
    assert gzip.decompress((tmp_path / "t.gz").read_bytes()).count(b"\n") == 3


def test_a_tape_on_a_full_disk_ends_with_an_error():
    with pytest.raises(OSError, match="No space left"), tape.TapeWriter(Path("/dev/full"), HEADER) as writer:
        writer.flush()


def test_a_scheduler_goes_on_when_the_disk_of_its_tape_is_full(caplog):
    configuration = parse(CONFIGURATION)
    with ExitStack() as stack:
        (observe,) = scheduler._observers(stack, configuration, Path("/dev/full"))
        for _ in range(3):
            observe(0.0, [TaskSeen(replace(TASK, name="n" * tape.BUFFER_BYTES))], [])
    (logged,) = caplog.messages
    assert logged.startswith("the recording of /dev/full has ended: ")
    assert "No space left on device" in logged


@pytest.mark.parametrize("name", ["run.tape", "run.tape.gz"])
def test_a_tape_ends_at_the_size_that_it_may_have_and_can_be_read(tmp_path, caplog, name):
    path, most = tmp_path / name, 4 * tape.BUFFER_BYTES
    noise = random.Random(1).randbytes
    with ExitStack() as stack:
        (observe,) = scheduler._observers(stack, parse(CONFIGURATION), path, most)
        for now in range(20):
            observe(float(now), [TaskSeen(replace(TASK, name=noise(tape.BUFFER_BYTES).hex()))], [])
    (logged,) = caplog.messages
    assert logged.startswith(f"the recording of {path} has ended: it has ")
    assert most <= path.stat().st_size < most + 3 * tape.BUFFER_BYTES
    steps = list(tape.read(path)[1])
    assert [step.now for step in steps] == [float(now) for now in range(len(steps))]
    assert 1 < len(steps) < 20


def test_a_tape_of_an_earlier_process_is_kept_beside_the_new_one(tmp_path):
    path = tmp_path / "run.tape.gz"
    for seed in range(3):
        with ExitStack() as stack:
            scheduler._observers(stack, parse(CONFIGURATION.replace("7", str(seed))), path)
    assert tape.read(path)[0].seed == 2
    assert tape.read(tmp_path / "previous-run.tape.gz")[0].seed == 1
    assert len(list(tmp_path.iterdir())) == 2
