"""A scheduler that runs follows its configuration file."""

import pytest
from click.testing import CliRunner

from eclectus.cli.main import program
from eclectus.model.events import WaitLimitSeen
from eclectus.tape import read
from live_cluster import wait

pytestmark = pytest.mark.live


def test_a_changed_file_is_taken_over_while_the_scheduler_runs_and_its_tape_replays(scheduler, tmp_path):
    running = scheduler(profiles=[{"schedulerName": "eclectus", "waitLimit": "300s"}]).wait_deciding()
    (config,) = tmp_path.glob("*.yaml")
    text = config.read_text()
    config.write_text(text.replace("300s", "70s") + "\nplaze: {}\n")
    wait("the problem is said", lambda: "is not valid" in running.log_file.read_text())
    config.write_text(text.replace("300s", "70s") + "\nseed: 5\n")
    wait(
        "the limit is taken over", lambda: "this holds: profiles[0].waitLimit" in running.log_file.read_text()
    )
    wait("the seed is refused", lambda: "a restart applies this: seed" in running.log_file.read_text())
    assert running.stop() == 0
    events = [event for step in read(running.tape)[1] for event in step.events]
    assert WaitLimitSeen("eclectus", 70.0) in events
    replayed = CliRunner().invoke(program, ["replay", str(running.tape)])
    assert replayed.exit_code == 0, replayed.output
