"""The built-in benchmark: the same work everywhere, said in one line."""

import json
import signal
import subprocess
import sys
import zlib

import pytest

from eclectus_e2e.testbed.processes import wait_for
from eclectus_operator import unit
from eclectus_operator.decide.stages import _rate
from eclectus_operator.objects.convert import read
from eclectus_operator.objects.observed import Ended

PROGRAM = unit.__file__


def ran(*arguments, folder):
    command = [sys.executable, "-I", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_it_says_one_line_that_the_operator_understands(tmp_path):
    done = ran("disk", "--units", "1", "--folder", str(tmp_path), folder=tmp_path)
    (line,) = done.stdout.splitlines()
    said = json.loads(line)
    assert (done.returncode, said["unit"], said["units"]) == (0, "disk", 1)
    assert said["rate"] == pytest.approx(said["units"] / said["seconds"], rel=0.01)
    assert _rate([read({"message": done.stdout}, Ended)]) == said["rate"]
    assert list(tmp_path.iterdir()) == [], "it leaves no file"


def test_the_work_is_the_same_every_time():
    assert f"{unit.cpu(1):x}" == "ce8eefe99cd3cc41"
    assert unit.memory(1, size=2**18) == unit.memory(1, size=2**18)
    assert unit.memory(1, size=2**18) != unit.memory(2, size=2**18)


def test_the_generator_is_the_one_it_says(monkeypatch):
    monkeypatch.setattr(unit, "STEPS", 3)
    state = 1
    for _ in range(6):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
    assert unit.cpu(2) == state


def test_what_was_written_is_what_is_read(tmp_path):
    whole = bytes(range(256)) * (2 * unit.BLOCK_BYTES // 256)
    assert unit.disk(3, tmp_path, size=2 * unit.BLOCK_BYTES) == zlib.crc32(whole * 3)


def test_its_last_words_are_left_where_there_is_a_place_for_them(tmp_path, capsys):
    place = tmp_path / "termination-log"
    unit.say("nowhere", place)
    assert not place.exists()
    place.touch()
    unit.say("said", place)
    assert place.read_text() == "said\n"
    assert capsys.readouterr().out == "nowhere\nsaid\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    done = ran("disk", "--units", "1", "--folder", str(tmp_path / "none"), folder=tmp_path)
    assert done.returncode == 1
    assert str(tmp_path / "none") in done.stderr
    assert done.stdout == ""


def test_told_to_stop_it_does_and_leaves_no_file(tmp_path):
    """With an exit of its own, not by the signal: a container's first process would live through that."""
    command = [sys.executable, "-I", PROGRAM, "disk", "--units", "1000000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert wait_for(lambda: list(tmp_path.iterdir()), 30), "it never began"
        process.terminate()
        said, _ = process.communicate(timeout=30)
    assert (process.returncode, said) == (128 + signal.SIGTERM, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["gpu"], ["cpu", "--units", "0"], ["cpu", "--units", "many"], []])
def test_a_wrong_command_line_is_refused(arguments, tmp_path):
    done = ran(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "usage: unit.py" in done.stderr
