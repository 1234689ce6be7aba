"""Tapes of the live scheduler: replayed with the live engine and with the simulator's, with equal decisions.

The tapes of the first two cases are stored in the repository as `scenarios/tapes/two-speeds.tape.gz` and
`tests/sim/workloads/tapes/lines.tape.gz`. When decisions change on purpose,
`pytest -m live tests/system/test_live_tape.py --basetemp=DIR` leaves new ones in DIR.
"""

from typing import Any

import pytest
from click.testing import CliRunner

from eclectus.cli.main import program
from live_cluster import pod, wait
from tape_comparison import first_difference, scenario_of

pytestmark = pytest.mark.live

FAST = [f"n{at:02}" for at in range(6, 12)]
WAVES, SHORT, LONG = 3, 40, 20  # pods a wave


@pytest.fixture
def two_speeds(kubelet):
    """Half of the nodes, `n06` and above, are four times as fast as the others."""
    kubelet.set_speed(4.0, nodes=FAST)
    yield
    kubelet.set_speed(1.0, nodes=FAST)


def wave(number: int) -> list[Any]:
    """Short pods and long ones; some of the long ones are restricted to one half of the nodes."""
    short = [kind(pod(f"short-{number}-{at}", cpu="500m", work=4.0), "short") for at in range(SHORT)]
    halves = [{"nodeSelector": {"half": "a"}} if at % 4 == 0 else {} for at in range(LONG)]
    return short + [
        kind(pod(f"long-{number}-{at}", cpu="1", work=16.0, **half), "long") for at, half in enumerate(halves)
    ]


def kind(body: Any, name: str) -> Any:
    body["metadata"]["labels"] = {"eclectus.dev/class": name}
    return body


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            {"profiles": [{"schedulerName": "eclectus", "place": {"policy": "least-allocated"}}]},
            marks=pytest.mark.slow,
        ),
        {
            "profiles": [{"schedulerName": "eclectus", "place": {"policy": "uniform", "queue": "lines"}}],
            "seed": 7,
        },
        {"profiles": [{"schedulerName": "eclectus"}]},
    ],
    ids=["least-allocated", "uniform lines", "rosella"],
)
def test_a_tape_replays_live_and_simulated(engine: dict[str, Any], admin, two_speeds, scheduler):
    running = scheduler(**engine).wait_deciding()
    service = kind(pod("service", work=1e6, restartPolicy="Always"), "service")
    admin.create([kind(pod("huge", cpu="64"), "huge"), service])
    for number in range(WAVES):
        admin.create(wave(number))
        wait("room is scarce or gone", lambda: admin.phases().get("Pending", 0) < SHORT)
    wait("huge has a condition", lambda: admin.condition("huge"))
    admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/huge")
    admin.wait_succeeded(WAVES * (SHORT + LONG))
    assert running.stop() == 0

    replayed = CliRunner().invoke(program, ["replay", str(running.tape)])
    assert replayed.exit_code == 0, replayed.output
    assert first_difference(running.tape) == ""
    plan = scenario_of(running.tape, speeds={"n0[6-9]": 4, "n1?": 4}).plan
    assert plan.tasks == WAVES * (SHORT + LONG) + 1
