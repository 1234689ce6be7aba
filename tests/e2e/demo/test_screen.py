"""The screen on a terminal and elsewhere."""

import pytest
from rich.console import Console

from eclectus_e2e.demo.screen import RunId, Snapshot, opened
from eclectus_e2e.demo.speeds import NodeSpeed


def snapshot(ended=3, created=10, learned=1.1, pair=""):
    speeds = [NodeSpeed("node-01", 1.0, learned, 9), NodeSpeed("node-02", 8.0, None, 0)]
    return Snapshot(RunId("eclectus", 0.8, pair), 12.0, 20, created, ended, speeds, [2, 1])


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
    assert "speed learned of 1 of 2 nodes" in text
    if terminal:
        assert "3 pods running, 4 waiting ██;" in text
        assert "node-02" in text
    else:
        assert "3 running, 4 waiting;" in text
        assert "speed 1 learned as 1.1: 2 pods, speed 8 not learned: 1 pods" in text


def test_a_scheduler_that_learns_nothing_shows_true_speeds_and_pods():
    console = Console(width=200, record=True, file=_Discarded())
    with opened(console) as screen:
        screen.show(snapshot(learned=None))
    text = console.export_text()
    assert "4 waiting; speed 1: 2 pods, speed 8: 1 pods" in text
    assert "learned" not in text


def test_a_terminal_has_bars_of_the_last_runs_alone():
    console = Console(force_terminal=True, width=120, height=60, record=True, file=_Discarded())
    with opened(console) as screen:
        for pair in range(1, 10):
            screen.show(snapshot(pair=f"pair {pair} of 9"))
        console.export_text()
        screen.show(snapshot(ended=20, pair="pair 9 of 9"))
        text = console.export_text()
    assert "eclectus at load 0.8, pair 9 of 9" in text
    assert "pair 4 of 9" in text
    assert "pair 3 of 9" not in text


class _Discarded:
    def write(self, text):
        return len(text)

    def flush(self):
        return None
