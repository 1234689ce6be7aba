"""What a pod says of preferences that its node does not meet, on a real API server and after it has ended."""

import pytest

from eclectus.api.names import RELAXED_PREFERENCES
from live_cluster import pod, wait

pytestmark = pytest.mark.live
WORDS = "half=c (weight 50)"


def preferring(name, half):
    term = {"matchExpressions": [{"key": "half", "operator": "In", "values": [half]}]}
    preferred = [{"weight": 50, "preference": term}]
    return pod(
        name, affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    )


def notes(admin, name):
    return [each["note"] for each in admin.events("Scheduled") if each["regarding"]["name"] == name]


def test_annotation_and_event_of_a_pod_whose_preference_no_node_meets(admin, scheduler):
    scheduler().wait_deciding()
    admin.create([preferring("unmet", "c"), preferring("met", "a")])
    wait("the event is written", lambda: notes(admin, "unmet"))
    admin.wait_succeeded(2)
    found = admin.pods()
    assert found["unmet"]["metadata"]["annotations"][RELAXED_PREFERENCES] == WORDS
    (note,) = notes(admin, "unmet")
    assert note.endswith(f". Preferences not met: {WORDS}")
    assert RELAXED_PREFERENCES not in found["met"]["metadata"]["annotations"]
