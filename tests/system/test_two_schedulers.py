"""Two schedulers of one cluster: they share nothing but what they see, and so learn the same."""

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
TURNS = 24  # of one pod for east and two for west
UNDER_WAY = 30  # pods at a time, at most: this is what paces the stream
QUIET_SECONDS = 4.0  # as many rounds of writes


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


def figures(scheduler):
    """Every metric without labels, and writes of NodeProfiles by result."""
    text = urlopen(f"http://{scheduler.address}/metrics").read().decode()
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {f"{each.name} {each.labels.get('result', '')}".strip(): each.value for each in samples}


def stream(admin, turns, first=0):
    """Work for both, a few pods at a time; how long it took, seconds."""
    began = time.monotonic()
    for turn in range(first, first + turns):
        wait(
            "some pods have ended",
            lambda turn=turn: 3 * turn - admin.phases().get("Succeeded", 0) <= UNDER_WAY,
        )
        admin.create(
            pod(f"{name}-{turn}-{at}", work=WORK_SECONDS, scheduler=name)
            for name, count in (("east", 1), ("west", 2))
            for at in range(count)
        )
    return time.monotonic() - began


def profiles(admin):
    """What stands in NodeProfiles: node to rate of the one kind of work."""
    statuses = {
        item["metadata"]["name"]: item.get("status", {}) for item in admin.get(NODE_PROFILES_PATH)["items"]
    }
    return {node: status["classes"][0]["rate"] for node, status in statuses.items() if status.get("classes")}


def wait_no_more_writes(pair):
    """Both have said what they know, and neither takes back what the other has said."""
    seen = [{}, time.monotonic()]

    def quiet():
        now = [figures(each).get("eclectus_node_profile_writes_total written", 0) for each in pair]
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return time.monotonic() - seen[1] >= QUIET_SECONDS

    wait("nobody writes any more", quiet)


def test_both_learn_the_same_of_all_pods_and_one_that_died_is_forgotten(admin, pair):
    east, west = pair
    seconds = stream(admin, TURNS)
    loads = [figures(each)["eclectus_arrival_rate"] for each in pair]
    # The sum of what came to each: 24 and 48 pods.
    assert loads == [pytest.approx(3 * TURNS / seconds, rel=0.25)] * 2
    admin.wait_succeeded(3 * TURNS)
    for each in pair:
        wait("it has seen them all", lambda each=each: figures(each)["eclectus_samples_total"] == 3 * TURNS)
        assert figures(each)["eclectus_arrivals_total"] == 3 * TURNS
    # The same samples, timed by two watches.
    learned = [each.learned() for each in pair]
    assert learned[0] == pytest.approx(learned[1], rel=0.2)
    for rates in learned:
        fast, slow = (mean(rates[node] for node in group if node in rates) for group in (FAST, SLOW))
        assert fast / slow == pytest.approx(4.0, rel=1 / 3)
    wait_no_more_writes(pair)
    assert profiles(admin).keys() == learned[0].keys()

    east.kill()
    admin.create(pod(f"lost-{at}", scheduler="east") for at in range(10))
    admin.create(pod(f"west-more-{at}", scheduler="west") for at in range(10))
    admin.wait_succeeded(3 * TURNS + 10)
    wait("it has seen them", lambda: figures(west)["eclectus_samples_total"] == 3 * TURNS + 10)
    assert figures(west)["eclectus_arrivals_total"] == 3 * TURNS + 10
