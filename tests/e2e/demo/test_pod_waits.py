"""Waiting pods, and the start times of pods that met a probe."""

import pytest

from eclectus_e2e.demo.pod_waits import StartTimes, Stay, WaitingPods, probe_usage, start_times


def test_a_waiting_pod_is_sent_and_not_started():
    waiting = WaitingPods(sent=[1.0, 2.0, 3.0], started=[2.5, 9.0])
    assert [waiting.at(at) for at in (0.5, 2.2, 2.6, 10.0)] == [0, 2, 1, 1]


def stay(sent, started, ended, millicores=1000):
    return Stay("a", sent, started, ended, millicores)


PROBE = stay(2.0, 2.0, 5.0)


@pytest.mark.parametrize(
    ("pod", "others", "room", "met", "unmet"),
    [
        (stay(3.0, 3.5, 7.0), [], 1000, [0.5], []),  # alone with the probe on a node of one core
        (stay(0.0, 6.0, 7.0), [], 1000, [6.0], []),  # sent before the probe began, started after it ended
        (stay(1.0, 2.5, 7.0), [], 1000, [1.5], []),  # the probe began between its creation and its start
        (stay(3.0, 3.5, 7.0), [], 2000, [], [0.5]),  # there is room for both
        (stay(5.5, 6.0, 7.0), [], 1000, [], [0.5]),  # sent after the probe had ended
        (stay(3.0, 4.5, 7.0), [stay(0.0, 0.0, 4.0)], 1000, [], []),  # left out: another pod took the room
        (
            stay(3.0, 3.5, 7.0),
            [stay(0.0, 0.0, 4.0)],
            2000,
            [0.5],
            [],
        ),  # two pods and a probe, with room for two
    ],
)
def test_a_pod_meets_a_probe_that_runs_in_its_room_before_it_starts(pod, others, room, met, unmet):
    found = start_times([pod, *others], [PROBE], {"a": room})
    alone = [one.started - one.sent for one in others if one.started <= 0.0 and one.ended <= 4.0]
    assert found == (StartTimes.of(met), StartTimes.of([*unmet, *alone]))


def test_probes_delay_no_pod_if_none_that_met_one_started_later_than_others():
    pods = [stay(0.0, 0.9, 1.0), stay(3.0, 3.5, 7.0)]
    assert probe_usage(pods, [PROBE], {"a": 1000}, 10.0).delay_no_pod
    assert not probe_usage(pods[1:], [PROBE], {"a": 1000}, 10.0).delay_no_pod, (
        "no other pod to compare it with"
    )
    assert not probe_usage([pods[0], stay(3.0, 5.0, 7.0)], [PROBE], {"a": 1000}, 10.0).delay_no_pod
    assert probe_usage(pods, [], {"a": 1000}, 10.0).delay_no_pod
