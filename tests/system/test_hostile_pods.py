"""What a pod of a tenant can do to a running scheduler and its standby: wait, or hold what it says."""

import msgspec
import pytest

from eclectus.kube.translate import BYTES_MOST
from eclectus.kubeclient.client import MERGE_PATCH
from live_cluster import QUICK_LEASE, pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow]

LONG = 36_000  # seconds: longer than the test
DEEP = 9_000  # levels of nested JSON, which the API server takes


@pytest.fixture
def replicas(scheduler):
    """The leader and the standby; both watch all pods."""
    leader = scheduler(name="leader", lease=QUICK_LEASE).wait_deciding()
    standby = scheduler(name="standby", lease=QUICK_LEASE)
    wait("the standby has listed the pods", lambda: standby.lines("pods listed"))
    return leader, standby


def check_unharmed(admin, replicas):
    """An ordinary pod runs, and both replicas are what they were."""
    admin.create([pod("ordinary", work=0.1)])
    wait("an ordinary pod has run", lambda: admin.pods()["ordinary"]["status"]["phase"] == "Succeeded")
    leader, standby = replicas
    assert (leader.code, standby.code) == (None, None)
    assert not standby.lines("deciding"), "the leader has kept its Lease"


@pytest.mark.parametrize(
    ("count", "message"), [(2000, "Insufficient"), (3000, f"more than {BYTES_MOST} bytes")]
)
def test_a_pod_of_thousands_of_resources_stops_nobody(admin, replicas, count, message):
    names = {f"example.com/r{at}": "1" for at in range(count)}
    large = pod("large")
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", **names}, "limits": names}
    admin.create([large])
    wait("it is reported", lambda: message in admin.condition("large").get("message", ""))
    check_unharmed(admin, replicas)


def test_a_pod_with_field_sets_deeper_than_decoders_follow_stops_nobody_and_counts(admin, replicas):
    admin.create([pod("full", cpu="4", work=LONG)])
    wait("it is bound", lambda: "full" in admin.bound())
    fields = msgspec.Raw(b'{"f:a":' * DEEP + b"{}" + b"}" * DEEP)
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    path = f"/api/v1/namespaces/{admin.namespace}/pods/full"
    patch = {"metadata": {"managedFields": [{**entry, "fieldsV1": fields}]}}
    admin.send("PATCH", path, patch, content_type=MERGE_PATCH)
    assert len(admin.text(path)) > len(bytes(fields)), "the API server keeps them"
    check_unharmed(admin, replicas)
    by_name = {"key": "metadata.name", "operator": "In", "values": [admin.bound()["full"]]}
    terms = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    only_there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    admin.create([pod("late", cpu="4", affinity=only_there)])
    wait("its room is held", lambda: "Insufficient cpu" in admin.condition("late").get("message", ""))


def test_pods_with_hints_that_cannot_be_read_hold_what_they_request(admin, replicas):
    """Pods of another scheduler fill every node; before, such pods were not counted."""
    hints = {"eclectus.dev/estimated-seconds": "5m", "eclectus.dev/room": "x"}
    nodes = [each["metadata"]["name"] for each in admin.get("/api/v1/nodes")["items"]]
    full = [pod(f"full-{name}", cpu="4", work=LONG, scheduler="another", nodeName=name) for name in nodes]
    for each in full:
        each["metadata"]["annotations"] |= hints
    admin.create(full)
    wait("the nodes are full", lambda: admin.phases().get("Running", 0) == len(nodes))
    admin.create(pod(f"p{at}", cpu="1") for at in range(6))
    wait(
        "each is reported",
        lambda: all("Insufficient cpu" in admin.condition(f"p{at}").get("message", "") for at in range(6)),
    )
    assert admin.phases() == {"Running": len(nodes), "Pending": 6}
