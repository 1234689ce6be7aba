"""What is said of pods that the engine does not know."""

import msgspec
import pytest

from eclectus.kube.objects import decode_pod
from eclectus.live.pages import of_absent


@pytest.mark.parametrize(
    ("status", "deleted", "state", "words"),
    [
        ({"phase": "Succeeded"}, False, "unknown", "its phase is Succeeded"),
        ({"phase": "Failed"}, True, "unknown", "its phase is Failed"),
        ({}, True, "deleting", "being deleted"),
        ({}, False, "unknown", "has not received it yet"),
    ],
)
def test_the_state_is_that_of_the_object(status, deleted, state, words):
    metadata = {"namespace": "a", "name": "x", "uid": "u"}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    pod = {"metadata": metadata, "spec": {"containers": [], "schedulerName": "s"}, "status": status}
    found = of_absent(decode_pod(msgspec.json.encode(pod)))
    assert (found.namespace, found.name, found.uid, found.scheduler_name) == ("a", "x", "u", "s")
    assert found.state == state
    assert words in found.summary
