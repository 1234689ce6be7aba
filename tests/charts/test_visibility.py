"""What `visibility.enabled` adds to the chart: an APIService, who may ask, and the rights to serve it."""

import pytest
import yaml

from eclectus.api.names import VISIBILITY_GROUP, VISIBILITY_SERVICE
from eclectus.config.configuration import parse
from eclectus_e2e.testbed.chart import NAMESPACE, configuration, deployment, render
from eclectus_hack.permissions import Permission, granted

ENABLED = {"visibility": {"enabled": True}}
NAME = "eclectus-visibility"
EXPLAINED = ["pods/explanation", "pods/what-if", "jobs/explanation", "nodes/explanation"]
LISTED = ["pendingpods", "nodespeeds", "poolstandings"]
RIGHTS = {
    Permission("", "configmaps", "get", "extension-apiserver-authentication", "kube-system"),
    Permission("discovery.k8s.io", "endpointslices", "patch", NAME, NAMESPACE),
    Permission("apiregistration.k8s.io", "apiservices", "patch", VISIBILITY_SERVICE),
}


def of_kind(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def test_by_default_nothing_of_it_exists_and_a_release_without_the_value_renders():
    assert "visibility" not in yaml.safe_dump(render())
    assert render({"visibility": None}) == render()


@pytest.mark.parametrize(("address", "kind"), [("::", "IPv6"), ("0.0.0.0", "IPv4")])  # noqa: S104 — nothing listens
def test_it_listens_on_addresses_of_the_kind_that_the_api_server_asks(address, kind):
    objects = render({**ENABLED, "config": {"server": {"address": address}}})
    (where,) = of_kind(objects, "EndpointSlice")
    assert where["addressType"] == kind
    assert parse(configuration(objects)).process.visibility.address == address


def test_it_grants_three_rights_on_three_objects():
    assert granted(render(ENABLED)) - granted(render()) == RIGHTS
    assert granted(render()) - granted(render(ENABLED)) == set()


def test_without_tokens_to_review_the_rights_of_callers_are_still_asked_for():
    server = {"authentication": "none", "allowAnonymous": True}
    rights = granted(render({**ENABLED, "config": {"server": server}}))
    assert {each.resource for each in rights if each.resource.endswith("reviews")} == {"subjectaccessreviews"}


def test_who_has_view_or_edit_may_ask_about_pods_and_nothing_else():
    before = {each["metadata"]["name"] for each in render()}
    (role,) = [
        each
        for each in of_kind(render(ENABLED), "ClusterRole")
        if each["metadata"]["name"] not in before and "aggregate-to-view" in str(each["metadata"]["labels"])
    ]
    labels = role["metadata"]["labels"]
    assert {key.rpartition("/")[2] for key, value in labels.items() if value == "true"} == {
        "aggregate-to-view",
        "aggregate-to-edit",
    }
    assert role["rules"] == [
        {"apiGroups": [VISIBILITY_GROUP], "resources": EXPLAINED, "verbs": ["get"]},
        {"apiGroups": [VISIBILITY_GROUP], "resources": LISTED, "verbs": ["list"]},
    ]


def test_where_copies_are_made_pods_may_say_how_far_they_are():
    copies = {"enabled": True, "copies": {"namespaces": ["batch", "night"]}}
    before = {str(each) for each in render({"operator": copies})}
    added = [each for each in render({**ENABLED, "operator": copies}) if str(each) not in before]
    name = f"{NAMESPACE}:eclectus:progress"
    (role,) = [each for each in of_kind(added, "ClusterRole") if each["metadata"]["name"] == name]
    assert role["rules"] == [
        {"apiGroups": [VISIBILITY_GROUP], "resources": ["pods/progress"], "verbs": ["create"]}
    ]
    bindings = [each for each in of_kind(added, "RoleBinding") if each["roleRef"]["name"] == name]
    assert {each["metadata"]["namespace"]: each["subjects"][0]["name"] for each in bindings} == {
        "batch": "system:serviceaccounts:batch",
        "night": "system:serviceaccounts:night",
    }
    assert name not in str(render(ENABLED))


def test_questions_have_a_priority_level_that_takes_nothing_from_others():
    objects = render(ENABLED)
    (level,) = of_kind(objects, "PriorityLevelConfiguration")
    (schema,) = [each for each in of_kind(objects, "FlowSchema") if "visibility" in each["metadata"]["name"]]
    limited = level["spec"]["limited"]
    assert (limited["borrowingLimitPercent"], limited["lendablePercent"]) == (0, 100)
    assert limited["limitResponse"]["type"] == "Queue"
    assert schema["spec"]["priorityLevelConfiguration"] == {"name": level["metadata"]["name"]}
    assert schema["spec"]["distinguisherMethod"] == {"type": "ByNamespace"}
    ((rule,),) = (each["resourceRules"] for each in schema["spec"]["rules"])
    assert (rule["apiGroups"], rule["namespaces"], rule["clusterScope"]) == ([VISIBILITY_GROUP], ["*"], True)


def test_service_slice_and_configuration_name_each_other():
    objects = render(ENABLED)
    (service,) = of_kind(objects, "APIService")
    assert service["metadata"]["name"] == VISIBILITY_SERVICE
    assert "insecureSkipTLSVerify" not in service["spec"]
    assert service["spec"]["service"] == {"namespace": NAMESPACE, "name": NAME, "port": 443}
    (endpoints,) = of_kind(objects, "EndpointSlice")
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == NAME
    (behind,) = [each for each in of_kind(objects, "Service") if each["metadata"]["name"] == NAME]
    assert "selector" not in behind["spec"]
    settings = parse(configuration(objects)).process.visibility
    ports = deployment(objects, "scheduler")["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert settings.service == f"{NAMESPACE}/{NAME}"
    assert {"name": "visibility", "containerPort": settings.port} in ports
    assert endpoints["ports"] == [{"name": "https", "port": settings.port, "protocol": "TCP"}]


@pytest.mark.parametrize(("peers", "count"), [([], 1), ([{"podSelector": {}}], 2)])
def test_its_port_is_open_to_api_servers_and_that_of_metrics_as_before(peers, count):
    values = {"networkPolicy": {"from": peers}}
    (before,) = of_kind(render(values), "NetworkPolicy")
    (policy,) = of_kind(render({**values, **ENABLED}), "NetworkPolicy")
    ingress = policy["spec"]["ingress"]
    assert ingress[:-1] == before["spec"]["ingress"]
    assert ingress[-1] == {"ports": [{"port": "visibility", "protocol": "TCP"}]}
    assert len(ingress) == count
