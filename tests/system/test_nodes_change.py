"""Nodes are added, deleted and changed while pods are scheduled."""

import pytest

from live_cluster import pod, wait

pytestmark = pytest.mark.live

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


@pytest.fixture
def extra_node(admin):
    """Adds nodes without a kubelet; deletes them at the end."""
    made = []

    def add(name, **labels):
        made.append(name)
        body = {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": ROOM, "capacity": ROOM},
        }
        admin.send("POST", "/api/v1/nodes", body)
        # A new node has the taint not-ready, which no kubelet removes here.
        admin.send(
            "PATCH",
            f"/api/v1/nodes/{name}",
            {"spec": {"taints": None}},
            content_type="application/merge-patch+json",
        )

    yield add
    for name in made:
        admin.get(f"/api/v1/nodes/{name}") and admin.send("DELETE", f"/api/v1/nodes/{name}")


def relabel(admin, node, **labels):
    admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def cordon(admin, node, on):
    admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": on}})


def wait_nodes_seen(admin):
    """Wait until the scheduler has seen what was written to nodes: of one kind a watch shows all in order."""
    relabel(admin, "n05", written="last")
    admin.create([pod("seen", nodeSelector={"written": "last"})])
    wait("the label is seen", lambda: "seen" in admin.bound())
    relabel(admin, "n05", written=None)


def test_waiting_pods_are_bound_when_a_fitting_node_is_added_or_changed(admin, scheduler, extra_node):
    scheduler().wait_deciding()
    admin.create([pod("new", nodeSelector={"rack": "r1"}), pod("changed", nodeSelector={"rack": "r2"})])
    wait("both have a condition", lambda: admin.condition("new") and admin.condition("changed"))
    extra_node("late", rack="r1")
    wait("the new node is used", lambda: admin.bound().get("new") == "late")
    relabel(admin, "n05", rack="r2")
    wait("the changed node is used", lambda: admin.bound().get("changed") == "n05")
    relabel(admin, "n05", rack=None)


def test_a_cordoned_node_gets_no_pod_until_it_is_uncordoned(admin, scheduler):
    scheduler().wait_deciding()
    cordon(admin, "n01", True)
    wait_nodes_seen(admin)
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n01"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [by_name]}}
    waits = pod("waits", affinity={"nodeAffinity": required})
    admin.create([waits, *(pod(f"p{i}") for i in range(60))])
    wait("the others are bound", lambda: len(admin.bound()) == 1 + 60)
    wait(
        "it has a condition",
        lambda: "1 node(s) were unschedulable" in admin.condition("waits").get("message", ""),
    )
    assert "n01" not in admin.bound().values()
    cordon(admin, "n01", None)
    wait("it is bound", lambda: admin.bound().get("waits") == "n01")


def test_a_deleted_node_gets_no_more_pods(admin, scheduler, extra_node):
    scheduler().wait_deciding()
    extra_node("short-lived", rack="r3")
    admin.create(pod(f"first-{i}", nodeSelector={"rack": "r3"}) for i in range(5))
    wait("it is used", lambda: len(admin.bound()) == 5)
    admin.send("DELETE", "/api/v1/nodes/short-lived")
    wait_nodes_seen(admin)
    admin.create([pod("too-late", nodeSelector={"rack": "r3"}), *(pod(f"then-{i}") for i in range(40))])
    wait("the other pods are bound", lambda: sum(name.startswith("then") for name in admin.bound()) == 40)
    wait("it has a condition", lambda: admin.condition("too-late"))
    assert admin.condition("too-late")["message"].startswith(
        "0/12 nodes are available: 12 node(s) didn't match"
    )
    assert "too-late" not in admin.bound()
