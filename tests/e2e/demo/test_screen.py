"""The screen on a terminal and elsewhere, and options that are refused."""

import pytest
from rich.console import Console

from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.screen import opened
from eclectus_e2e.demo.snapshot import RunId, Snapshot
from eclectus_e2e.demo.speeds import NodeSpeed


def snapshot(ended=3, created=10):
    speeds = [NodeSpeed("node-01", 1.0, 1.1, 9), NodeSpeed("node-02", 8.0, None, 0)]
    return Snapshot(RunId("eclectus", 0.8), 12.0, 20, created, ended, speeds, [2, 1])


@pytest.mark.parametrize("terminal", [True, False])
def test_a_snapshot_is_shown_on_a_terminal_and_without_one(terminal):
    console = Console(force_terminal=terminal, width=120, record=True, file=_Discarded())
    with opened(console) as screen:
        screen.say("begin")
        screen.show(snapshot())
        screen.show(snapshot(ended=20, created=20))
    text = console.export_text()
    assert "begin" in text
    assert "eclectus at load 0.8" in text
    assert "3 running, 4 waiting; speed learned of 1 of 2 nodes" in text
    assert ("node-02" in text) == terminal


def test_a_load_beyond_capacity_is_refused(capsys):
    with pytest.raises(SystemExit):
        demo(["--load", "1.2"])
    assert "at 1 and above, queues grow without bound" in capsys.readouterr().err


def test_an_unknown_scheduler_is_refused(capsys):
    with pytest.raises(SystemExit):
        demo(["--schedulers", "eclectus,unknown"])
    assert "known are eclectus, kube-scheduler, eclectus-uniform" in capsys.readouterr().err


class _Discarded:
    def write(self, text):
        return len(text)

    def flush(self):
        return None
