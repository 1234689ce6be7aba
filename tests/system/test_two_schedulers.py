"""Two schedulers of one cluster observe the same pods and so learn the same, without any other exchange."""

import time
from statistics import mean
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from eclectus.api.names import NODE_PROFILES_PATH
from live_cluster import pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow]

SLOW, FAST = [f"n{at:02}" for at in range(6)], [f"n{at:02}" for at in range(6, 12)]
WORK_SECONDS = 2.0  # at speed 1; the fast nodes have speed 4
WAVES = 24  # of one pod for east and two for west
UNFINISHED = 30  # pods at a time, at most; this sets the rate of the stream
QUIET_SECONDS = 4.0  # four rounds of writes


@pytest.fixture
def speeds(kubelet):
    kubelet.set_speed(4.0, nodes=FAST)
    yield
    kubelet.set_speed(1.0, nodes=FAST)


@pytest.fixture
def pair(scheduler, defined, speeds):
    """East and west, each with its own schedulerName and so with its own Lease."""
    made = [
        scheduler(
            name=name,
            lease={"resourceName": f"two-schedulers-{name}"},
            profiles=[{"schedulerName": name, "place": {"policy": "uniform"}}],
            nodeProfiles={"interval": "1s"},
        )
        for name in ("east", "west")
    ]
    return [each.wait_deciding() for each in made]


def metric_values(scheduler):
    """The value of every metric, by name and `result` label."""
    text = urlopen(f"http://{scheduler.address}/metrics").read().decode()
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {f"{each.name} {each.labels.get('result', '')}".strip(): each.value for each in samples}


def stream(admin, waves, first=0):
    """Create pods for both, a few at a time; returns how long that took, in seconds."""
    began = time.monotonic()
    for wave in range(first, first + waves):
        wait(
            "some pods have ended",
            lambda wave=wave: 3 * wave - admin.phases().get("Succeeded", 0) <= UNFINISHED,
        )
        admin.create(
            pod(f"{name}-{wave}-{at}", work=WORK_SECONDS, scheduler=name)
            for name, count in (("east", 1), ("west", 2))
            for at in range(count)
        )
    return time.monotonic() - began


def profiles(admin):
    """The rates in NodeProfiles, by node; there is one class of work."""
    statuses = {
        item["metadata"]["name"]: item.get("status", {}) for item in admin.get(NODE_PROFILES_PATH)["items"]
    }
    return {node: status["classes"][0]["rate"] for node, status in statuses.items() if status.get("classes")}


def wait_no_more_writes(pair):
    """Wait until neither writes any more, so that neither overwrites the other again and again."""
    seen = [{}, time.monotonic()]

    def quiet():
        now = [metric_values(each).get("eclectus_node_profile_writes_total written", 0) for each in pair]
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return time.monotonic() - seen[1] >= QUIET_SECONDS

    wait("no more writes", quiet)


def test_both_learn_the_same_of_all_pods_and_one_that_died_is_forgotten(admin, pair):
    east, west = pair
    seconds = stream(admin, WAVES)
    loads = [metric_values(each)["eclectus_arrival_rate"] for each in pair]
    # The pods of both together, counted exactly below. A busy watch shows several waves at one moment, and
    # the first moment of the few that are left does not count: the rate is then too low.
    assert loads == [pytest.approx(3 * WAVES / seconds, rel=0.5)] * 2
    admin.wait_succeeded(3 * WAVES)
    for each in pair:
        wait(
            "it has sampled all of them",
            lambda each=each: metric_values(each)["eclectus_samples_total"] == 3 * WAVES,
        )
        assert metric_values(each)["eclectus_arrivals_total"] == 3 * WAVES
    # The same samples, but with times observed by two watches, of which one may be late: six samples a node.
    learned = [each.learned() for each in pair]
    assert learned[0] == pytest.approx(learned[1], rel=1 / 3)
    assert mean(learned[0].values()) == pytest.approx(mean(learned[1].values()), rel=0.2)
    for rates in learned:
        fast, slow = (mean(rates[node] for node in group if node in rates) for group in (FAST, SLOW))
        assert fast / slow == pytest.approx(4.0, rel=1 / 3)
    wait_no_more_writes(pair)
    assert profiles(admin).keys() == learned[0].keys()

    east.kill()
    admin.create(pod(f"lost-{at}", scheduler="east") for at in range(10))
    admin.create(pod(f"west-more-{at}", scheduler="west") for at in range(10))
    admin.wait_succeeded(3 * WAVES + 10)
    wait("it has sampled them", lambda: metric_values(west)["eclectus_samples_total"] == 3 * WAVES + 10)
    assert metric_values(west)["eclectus_arrivals_total"] == 3 * WAVES + 10
