"""The chart grants exactly the permissions of TABLE. Change it with the client that needs the verb."""

import json
import re

import pytest

from eclectus.policies.table import ORDER, SPECULATE
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import NAMESPACE, render
from eclectus_hack.permissions import Permission, forbidden, granted, requests, superfluous

TABLE = {
    Permission("", "nodes", "list"),
    Permission("", "nodes", "watch"),
    Permission("", "namespaces", "list"),
    Permission("", "namespaces", "watch"),
    Permission("", "pods", "get"),
    Permission("", "pods", "list"),
    Permission("", "pods", "watch"),
    Permission("", "pods", "delete"),
    Permission("policy", "poddisruptionbudgets", "list"),
    Permission("policy", "poddisruptionbudgets", "watch"),
    Permission("scheduling.k8s.io", "podgroups", "list"),
    Permission("scheduling.k8s.io", "podgroups", "watch"),
    Permission("scheduling.x-k8s.io", "podgroups", "list"),
    Permission("scheduling.x-k8s.io", "podgroups", "watch"),
    Permission("", "persistentvolumeclaims", "get"),
    Permission("", "persistentvolumeclaims", "list"),
    Permission("", "persistentvolumeclaims", "watch"),
    Permission("", "persistentvolumeclaims", "patch"),
    Permission("", "persistentvolumes", "get"),
    Permission("", "persistentvolumes", "list"),
    Permission("", "persistentvolumes", "watch"),
    Permission("", "persistentvolumes", "patch"),
    Permission("storage.k8s.io", "storageclasses", "list"),
    Permission("storage.k8s.io", "storageclasses", "watch"),
    Permission("storage.k8s.io", "csinodes", "list"),
    Permission("storage.k8s.io", "csinodes", "watch"),
    Permission("storage.k8s.io", "volumeattachments", "list"),
    Permission("storage.k8s.io", "volumeattachments", "watch"),
    Permission("storage.k8s.io", "csidrivers", "list"),
    Permission("storage.k8s.io", "csidrivers", "watch"),
    Permission("storage.k8s.io", "csistoragecapacities", "list"),
    Permission("storage.k8s.io", "csistoragecapacities", "watch"),
    Permission("", "services", "list"),
    Permission("", "services", "watch"),
    Permission("", "replicationcontrollers", "list"),
    Permission("", "replicationcontrollers", "watch"),
    Permission("apps", "replicasets", "list"),
    Permission("apps", "replicasets", "watch"),
    Permission("apps", "statefulsets", "list"),
    Permission("apps", "statefulsets", "watch"),
    Permission("", "pods/binding", "create"),
    Permission("", "pods/status", "patch"),
    Permission("events.k8s.io", "events", "create"),
    Permission("eclectus.dev", "pools", "list"),
    Permission("eclectus.dev", "pools", "watch"),
    Permission("eclectus.dev", "pools/status", "patch"),
    Permission("", "nodes", "get"),
    Permission("eclectus.dev", "nodeprobes", "list"),
    Permission("eclectus.dev", "nodeprobes/status", "patch"),
    Permission("eclectus.dev", "nodeprofiles", "create"),
    Permission("eclectus.dev", "nodeprofiles", "list"),
    Permission("eclectus.dev", "nodeprofiles/status", "patch"),
    Permission("authentication.k8s.io", "tokenreviews", "create"),
    Permission("authorization.k8s.io", "subjectaccessreviews", "create"),
    Permission("coordination.k8s.io", "leases", "create", namespace=NAMESPACE),
    Permission("coordination.k8s.io", "leases", "get", "eclectus", NAMESPACE),
    Permission("coordination.k8s.io", "leases", "update", "eclectus", NAMESPACE),
    Permission("coordination.k8s.io", "leases", "create", namespace="kube-system"),
    Permission("coordination.k8s.io", "leases", "get", "eclectus-serves-eclectus", "kube-system"),
    Permission("coordination.k8s.io", "leases", "update", "eclectus-serves-eclectus", "kube-system"),
}


def test_the_chart_grants_exactly_the_table():
    assert granted(render()) == TABLE


@pytest.mark.parametrize("component", ["scheduler", "operator"])
def test_every_permission_has_a_row_with_its_reason_in_the_readme(component):
    section = (CHART / "README.md").read_text().partition("\n## Permissions\n")[2].partition("\n## ")[0]
    scheduler, _, operator = section.partition("\nWith `operator.enabled`")
    text = scheduler if component == "scheduler" else operator
    rows = re.findall(r"\| [^|]+ \| ([^|]+) \| `([^`|]+)`[^|]* \| ([^|]+) \| \S[^|]* \|", text)
    reasons = {
        (group.replace("core", ""), what, verb.strip())
        for group, what, verbs in rows
        for verb in verbs.split(",")
    }
    label = "app.kubernetes.io/component"
    objects = render({"operator": {"enabled": True}})
    owned = [each for each in objects if each["metadata"].get("labels", {}).get(label) == component]
    assert {(each.group, each.resource, each.verb) for each in granted(owned)} - reasons == set()


@pytest.mark.parametrize("name", ORDER)
def test_dag_jobs_may_be_read_where_an_order_plans_them(name):
    profile = {"schedulerName": "eclectus", "order": {"policy": name}, "place": {"policy": "least-allocated"}}
    rights = granted(render({"config": {"profiles": [profile]}}))
    expected = {
        Permission("eclectus.dev", "dagjobs", "list"),
        Permission("eclectus.dev", "dagjobs", "watch"),
        Permission("eclectus.dev", "dagjobs/status", "patch"),
    }
    found = {each for each in rights if each.resource.startswith("dagjobs")}
    assert found == (expected if "jobs" in ORDER[name]().traits.needs else set())


@pytest.mark.parametrize("name", SPECULATE)
def test_dag_jobs_may_be_read_where_copies_are_made_by_how_far_they_are(name):
    rights = granted(
        render({"config": {"profiles": [{"schedulerName": "eclectus", "speculate": {"policy": name}}]}})
    )
    expected = {Permission("eclectus.dev", "dagjobs", verb) for verb in ("list", "watch")}
    found = {each for each in rights if each.resource.startswith("dagjobs")}
    assert found == (expected if "jobs" in SPECULATE[name]().traits.needs else set())


def test_without_leader_election_leases_are_not_permitted():
    values = {"config": {"leaderElection": {"leaderElect": False}}, "scheduler": {"replicas": 1}}
    assert granted(render(values)) == {each for each in TABLE if each.resource != "leases"}


def test_without_profiles_their_objects_are_not_permitted():
    values = {"config": {"nodeProfiles": {"enabled": False}}}
    kept = {each for each in TABLE if each.group != "eclectus.dev" or each.resource.startswith("pools")}
    remaining = kept - {Permission("", "nodes", "get")}
    assert granted(render(values)) == remaining


def test_without_preemption_no_pod_may_be_deleted():
    for relieve in ({}, {"relieve": {"policy": "none"}}):
        profile = {"schedulerName": "eclectus", **relieve}
        rights = granted(render({"config": {"profiles": [profile]}}))
        assert rights == {
            each for each in TABLE if each.verb != "delete" and each.resource != "poddisruptionbudgets"
        }


@pytest.mark.parametrize("running", ["pinned", "preempt"])
def test_quincy_may_delete_pods_where_it_ends_some(running):
    profile = {"schedulerName": "eclectus", "place": {"policy": "quincy", "running": running}}
    rights = granted(render({"config": {"profiles": [profile]}}))
    may = {each for each in TABLE if each.verb == "delete" or each.resource == "poddisruptionbudgets"}
    assert may & rights == (may if running == "preempt" else set())


def test_without_authentication_nothing_is_reviewed():
    values = {"config": {"server": {"authentication": "none", "allowAnonymous": True}}}
    assert granted(render(values)) == {each for each in TABLE if not each.resource.endswith("reviews")}


def test_without_rbac_nothing_is_granted():
    objects = render({"rbac": {"create": False}})
    assert granted(objects) == set()
    assert not [each for each in objects if each["kind"].endswith("RoleBinding")]


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding"])
def test_roles_are_bound_to_the_schedulers_account_alone(kind):
    bindings = [each for each in render() if each["kind"] == kind]
    account = [{"kind": "ServiceAccount", "name": "eclectus", "namespace": NAMESPACE}]
    assert all(each["subjects"] == account for each in bindings)
    roles = [each for each in render() if each["kind"] == kind.removesuffix("Binding") and not is_users(each)]
    assert [each["roleRef"]["name"] for each in bindings] == [each["metadata"]["name"] for each in roles]
    places = [[each["metadata"].get("namespace", "") for each in part] for part in (bindings, roles)]
    assert places[0] == places[1]


def is_readers(each):
    return each["metadata"]["name"].endswith(":metrics-reader")


def is_users(each):
    return each["metadata"]["name"].rpartition(":")[2] in ("metrics-reader", "pools-admin", "pools-view")


def test_pools_may_be_read_by_viewers_of_the_cluster_and_changed_by_nobody_unless_bound():
    roles = {each["metadata"]["name"].rpartition(":")[2]: each for each in render() if is_users(each)}
    view, admin = roles["pools-view"], roles["pools-admin"]
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert not any("aggregate" in label for label in admin["metadata"]["labels"])
    assert [each["resources"] for each in (*view["rules"], *admin["rules"])] == [["pools"], ["pools"]]
    assert view["rules"][0]["verbs"] == ["get", "list", "watch"]
    assert {"create", "delete", "patch", "update"} <= set(admin["rules"][0]["verbs"])
    bound = {each["roleRef"]["name"] for each in render() if each["kind"] == "ClusterRoleBinding"}
    assert bound.isdisjoint(each["metadata"]["name"] for each in roles.values())


def test_metrics_and_speeds_may_be_read_by_the_named_readers_alone():
    account = {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "monitoring"}
    group = {"kind": "Group", "name": "operators"}
    (role,) = (each for each in render() if is_readers(each))
    assert role["rules"] == [{"nonResourceURLs": ["/metrics", "/speeds"], "verbs": ["get"]}]
    bound = [each for each in render({"metrics": {"readers": [account, group]}}) if is_readers(each)]
    (binding,) = (each for each in bound if each["kind"] == "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [account, {**group, "apiGroup": "rbac.authorization.k8s.io"}]


def test_a_name_may_be_claimed_for_each_profile_and_no_other():
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b"}]
    rights = granted(render({"config": {"profiles": profiles}}))
    claims = {each.name for each in rights if each.namespace == "kube-system" and each.verb == "update"}
    assert claims == {"eclectus-serves-a", "eclectus-serves-b"}


def test_a_permission_with_a_name_covers_that_name_alone():
    permission = Permission("coordination.k8s.io", "leases", "get", "eclectus", NAMESPACE)
    assert permission.covers(Permission("coordination.k8s.io", "leases", "get", "eclectus", NAMESPACE))
    assert not permission.covers(Permission("coordination.k8s.io", "leases", "get", "other", NAMESPACE))
    assert not permission.covers(Permission("coordination.k8s.io", "leases", "get", "eclectus", "default"))


def test_an_audit_log_shows_forbidden_requests_and_superfluous_permissions(tmp_path):
    log = tmp_path / "audit.log"
    me, other = "system:serviceaccount:a:me", "system:serviceaccount:a:other"
    binding = {
        "resource": "pods",
        "subresource": "binding",
        "name": "p",
        "namespace": "d",
        "apiVersion": "v1",
    }
    secrets = {"resource": "secrets", "apiVersion": "v1"}
    lines = [
        {"verb": "create", "user": {"username": me}, "objectRef": binding},
        {"verb": "list", "user": {"username": me}, "objectRef": secrets},
        {"verb": "get", "user": {"username": me}, "requestURI": "/version"},
        {"verb": "list", "user": {"username": other}, "objectRef": {"resource": "nodes"}},
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    permissions = {Permission("", "pods/binding", "create"), Permission("", "nodes", "list")}
    used = requests(log, me)
    assert forbidden(permissions, used) == {Permission("", "secrets", "list")}
    assert superfluous(permissions, used) == {Permission("", "nodes", "list")}
