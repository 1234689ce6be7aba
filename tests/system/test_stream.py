"""Scheduling on a real API server: many pods, and the conditions and events of each."""

from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from eclectus.cli.main import program
from live_cluster import pod, wait

pytestmark = pytest.mark.live


def total(metrics: str, name: str) -> float:
    """The sum of a sample over all its labels."""
    samples = (sample for family in text_string_to_metric_families(metrics) for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == name)


def test_a_thousand_pods_are_bound_and_no_kubelet_refuses_one(admin, kubelet, scheduler):
    running = scheduler().wait_deciding()
    admin.create(pod(f"p{i}") for i in range(1000))
    admin.wait_succeeded(1000)
    counters = kubelet.counters()
    assert (counters.finished, counters.refused) == (1000, {})
    wait("an event for each", lambda: len(admin.events("Scheduled")) == 1000)
    event = admin.events("Scheduled")[0]
    node = admin.bound()[event["regarding"]["name"]]
    assert event["note"] == f"Successfully assigned {admin.namespace}/{event['regarding']['name']} to {node}"
    assert event["reportingController"] == "eclectus"
    metrics = urlopen(f"http://{running.address}/metrics").read().decode()
    assert total(metrics, "eclectus_pod_scheduling_sli_duration_seconds_count") == 1000
    assert total(metrics, "eclectus_pod_scheduled_after_flush_total") == 0
    assert total(metrics, "eclectus_dropped_events_total") == 0
    assert urlopen(f"http://{running.address}/readyz?verbose").read().endswith(b"readyz check passed\n")
    assert running.stop() == 0
    replayed = CliRunner().invoke(program, ["replay", str(running.tape)])
    assert replayed.exit_code == 0, replayed.output


def test_a_pod_that_fits_nowhere_is_reported_once_and_bound_when_a_node_fits(admin, scheduler):
    scheduler().wait_deciding()
    admin.create([pod("huge", cpu="64"), pod("picky", nodeSelector={"colour": "green"})])
    wait("both have a condition", lambda: admin.condition("huge") and admin.condition("picky"))
    condition = admin.condition("huge")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/12 nodes are available: 12 Insufficient cpu.")
    assert condition["observedGeneration"] == 1
    wait("an event for each", lambda: len(admin.events("FailedScheduling")) >= 2)
    admin.patch("/api/v1/nodes/n03", {"metadata": {"labels": {"colour": "green"}}})
    wait("picky is bound", lambda: admin.bound() == {"picky": "n03"})
    assert admin.condition("picky")["status"] == "True"
    assert len(admin.events("FailedScheduling")) == 2


def test_pods_of_other_schedulers_are_left_alone_and_their_requests_count(admin, kubelet, scheduler):
    admin.create(
        pod(f"foreign-{i}", cpu="3500m", work=60, scheduler="other", nodeName=f"n{i:02}") for i in range(11)
    )
    admin.create([pod("not-ours", scheduler="other")])
    scheduler().wait_deciding()
    admin.create(pod(f"ours-{i}", cpu="1", work=60) for i in range(4))
    wait("ours are bound", lambda: sum(name.startswith("ours") for name in admin.bound()) == 4)
    assert {node for name, node in admin.bound().items() if name.startswith("ours")} == {"n11"}
    left = admin.pods()["not-ours"]
    assert "nodeName" not in left["spec"]
    assert "conditions" not in left["status"]
    assert kubelet.counters().refused == {}


def test_sigterm_gives_the_lease_back_after_all_binds_have_been_sent(admin, scheduler):
    running = scheduler(lease={"resourceNamespace": "default"}).wait_deciding()
    admin.create(pod(f"p{i}") for i in range(50))
    wait("some are bound", admin.bound)
    assert running.stop() == 0
    bound = {line["pod"] for line in running.lines("bound")}
    assert bound == {f"{admin.namespace}/{name}" for name in admin.bound()}
    leases = admin.send("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases")["items"]
    assert [lease["spec"].get("holderIdentity", "") for lease in leases] == [""]
