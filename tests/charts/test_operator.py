"""The operator in the chart."""

import json
import re

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from eclectus.api.names import COPY_OF_LABEL, MACHINE_LABELS, OPERATOR_KEYS, ORIGINAL, POOLS
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import NAMESPACE, deployment, render
from eclectus_hack.manifests import operator_yaml
from eclectus_hack.permissions import Permission, granted
from eclectus_operator.__main__ import PARTS, _of, main
from eclectus_operator.node_labels import parse
from eclectus_operator.node_probes.recent_pods import COPIED_VOLUMES
from eclectus_operator.program import PROBES
from eclectus_operator.settings import LeaseSettings, Settings

ON = {"operator": {"enabled": True}}
CI = yaml.safe_load((CHART / "ci" / "operator-values.yaml").read_text())
TABLE = {
    Permission("", "nodes", "get"),
    Permission("", "nodes", "list"),
    Permission("", "pods", "list"),
    Permission("eclectus.dev", "nodeprobes", "list"),
    Permission("eclectus.dev", "nodeprobes", "watch"),
    Permission("eclectus.dev", "nodeprobes/status", "patch"),
    Permission("eclectus.dev", "nodeprofiles", "create"),
    Permission("eclectus.dev", "nodeprofiles", "get"),
    Permission("eclectus.dev", "nodeprofiles/status", "patch"),
    Permission("eclectus.dev", "pools", "list"),
    Permission("eclectus.dev", "pools", "watch"),
    Permission("eclectus.dev", "pools/status", "patch"),
    Permission("authentication.k8s.io", "tokenreviews", "create"),
    Permission("authorization.k8s.io", "subjectaccessreviews", "create"),
    Permission("", "pods", "create", namespace=NAMESPACE),
    Permission("", "pods", "delete", namespace=NAMESPACE),
    Permission("", "pods", "watch", namespace=NAMESPACE),
    Permission("", "events", "list", namespace=NAMESPACE),
    Permission("events.k8s.io", "events", "create", namespace="default"),
    Permission("coordination.k8s.io", "leases", "create", namespace=NAMESPACE),
    Permission("coordination.k8s.io", "leases", "get", "eclectus-operator", NAMESPACE),
    Permission("coordination.k8s.io", "leases", "update", "eclectus-operator", NAMESPACE),
    Permission("coordination.k8s.io", "leases", "create", namespace="kube-system"),
    Permission("coordination.k8s.io", "leases", "get", PROBES.lease, "kube-system"),
    Permission("coordination.k8s.io", "leases", "update", PROBES.lease, "kube-system"),
}


def of_operator(values=ON, **options):
    labels = {"app.kubernetes.io/component": "operator"}
    objects = render(values, **options)
    return [each for each in objects if labels.items() <= each["metadata"].get("labels", {}).items()]


def named(objects, kind):
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def settings(values=ON):
    """The operator's settings, parsed from the arguments in its Deployment."""
    arguments = deployment(render(values), "operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    given = main.make_context("operator", list(arguments)).params
    return {part: part(**_of(part, given)) for part in PARTS}


def test_without_it_the_chart_has_none_of_its_objects():
    assert of_operator({}) == []


def test_it_grants_exactly_the_table():
    assert granted(of_operator()) == TABLE
    assert granted(of_operator({**ON, "rbac": {"create": False}})) == set()


def test_it_may_patch_nodes_with_a_mapping_of_labels_alone():
    labels = {"eclectus.dev/gpu-model": "nvidia.com/gpu.product"}
    values = {"operator": {"enabled": True, "nodeLabels": labels}}
    assert granted(of_operator(values)) == TABLE | {Permission("", "nodes", "patch")}


def test_its_roles_are_bound_to_its_account_alone():
    account = [{"kind": "ServiceAccount", "name": "eclectus-operator", "namespace": NAMESPACE}]
    bindings = [each for each in of_operator() if each["kind"].endswith("Binding") and "subjects" in each]
    assert len(bindings) == 5
    assert all(each["subjects"] == account for each in bindings)
    assert all(each["roleRef"]["name"] == each["metadata"]["name"] for each in bindings)


@pytest.mark.parametrize("is_enabled", [False, True])
def test_without_preemption_the_scheduler_may_delete_probes_alone(is_enabled):
    profile = {"schedulerName": "eclectus", "relieve": {"policy": "none"}}
    objects = render({"config": {"profiles": [profile]}, "operator": {"enabled": is_enabled}})
    bindings = [
        each
        for each in objects
        if each["kind"] == "RoleBinding" and each["metadata"]["name"].endswith("end-probes")
    ]
    assert [each["subjects"][0]["name"] for each in bindings] == ["eclectus"] * is_enabled
    rights = {each for each in granted(objects) if (each.resource, each.verb) == ("pods", "delete")}
    assert {each.namespace for each in rights} == ({NAMESPACE} if is_enabled else set())


def test_pods_are_created_and_deleted_in_the_probe_namespace_alone():
    without = {"dagJobs": {"enabled": False}, "copies": {"namespaces": []}}
    rights = granted(of_operator({**CI, "operator": {**CI["operator"], **without}}))
    assert {each.namespace for each in rights if each.resource == "pods" and each.verb != "list"} == {
        "benchmarks"
    }
    namespaces = {each["metadata"]["namespace"] for each in named(of_operator(CI), "ResourceQuota").values()}
    assert namespaces == {"benchmarks"}


def test_its_arguments_name_the_objects_of_the_chart():
    found, objects = settings(), of_operator()
    assert found[Settings].namespace == NAMESPACE
    assert found[Settings].unit_image == "eclectus-unit:0.1.0"
    assert found[Settings].priority_class in named(objects, "PriorityClass")
    assert found[LeaseSettings].lease_name == "eclectus-operator"
    (quota,) = named(objects, "ResourceQuota").values()
    assert quota["spec"]["hard"] == {"pods": str(found[Settings].most_running)}
    assert quota["spec"]["scopeSelector"]["matchExpressions"][0]["values"] == [found[Settings].priority_class]


DAG_JOBS = {
    Permission("", "namespaces", "get"),  # that a Pool takes jobs of it
    Permission("eclectus.dev", "dagjobs", "delete"),
    Permission("eclectus.dev", "dagjobs", "get"),
    Permission("eclectus.dev", "dagjobs", "list"),
    Permission("eclectus.dev", "dagjobs", "watch"),
    Permission("eclectus.dev", "dagjobs/status", "patch"),
    Permission("", "pods", "create"),
    Permission("", "pods", "delete"),
    Permission("", "pods", "get"),
    Permission("", "pods", "watch"),
    Permission("events.k8s.io", "events", "create"),
}


def test_only_with_dag_jobs_it_may_create_and_delete_pods_everywhere():
    values = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}}
    assert granted(of_operator(values)) == TABLE | DAG_JOBS
    assert settings(values)[Settings].dag_jobs
    assert not settings()[Settings].dag_jobs


COPIES = {
    Permission("", "pods", "create", namespace="batch"),
    Permission("", "pods", "delete", namespace="batch"),
    Permission("", "pods", "get", namespace="batch"),
    Permission("", "pods", "watch", namespace="batch"),
    Permission("", "pods/status", "patch", namespace="batch"),
    Permission("", "persistentvolumeclaims", "get", namespace="batch"),
    Permission("batch", "jobs", "get", namespace="batch"),
    Permission("events.k8s.io", "events", "create", namespace="batch"),
}


def with_copies(*namespaces, **more):
    return {"operator": {"enabled": True, "copies": {"namespaces": list(namespaces), **more}}}


def test_only_in_the_namespaces_that_are_named_it_may_make_copies():
    assert granted(of_operator(with_copies("batch"))) == TABLE | COPIES
    assert settings(with_copies("batch", "research"))[Settings].copy_namespaces == ("batch", "research")
    assert settings(with_copies("batch"))[Settings].copy_requests == "same"
    assert settings(with_copies("batch", requests="none"))[Settings].copy_requests == "none"


@pytest.mark.parametrize("copies", [None, {}, {"namespaces": []}, {"namespaces": [], "requests": "none"}])
def test_without_a_namespace_nothing_of_the_chart_changes(copies):
    assert render({"operator": {"enabled": True, "copies": copies}}) == render(ON)
    assert render({"operator": {"enabled": False, "copies": copies}}) == render()


def test_the_scheduler_gets_no_permission_more_for_copies():
    def of_scheduler(values):
        label = {"app.kubernetes.io/component": "operator"}
        return granted(
            each for each in render(values) if not label.items() <= each["metadata"].get("labels", {}).items()
        )

    assert of_scheduler(with_copies("batch")) == of_scheduler(ON)


def test_only_the_operator_makes_pods_with_the_label_of_copies():
    policies = named(of_operator(with_copies("batch")), "ValidatingAdmissionPolicy")
    (policy,) = (each for name, each in policies.items() if name.endswith("-copies"))
    matched = policy["spec"]["matchConstraints"]
    assert matched["objectSelector"]["matchExpressions"] == [{"key": COPY_OF_LABEL, "operator": "Exists"}]
    assert matched["resourceRules"][0]["operations"] == ["CREATE", "UPDATE"]
    (validation,) = policy["spec"]["validations"]
    account = f"system:serviceaccount:{NAMESPACE}:eclectus-operator"
    assert f'request.userInfo.username == "{account}"' in validation["expression"]
    bindings = named(of_operator(with_copies("batch")), "ValidatingAdmissionPolicyBinding")
    assert bindings[policy["metadata"]["name"]]["spec"]["validationActions"] == ["Deny"]
    assert not any(name.endswith("-copies") for name in named(of_operator(), "ValidatingAdmissionPolicy"))
    values = with_copies("batch")
    values["operator"]["admissionPolicy"] = {"enabled": False}
    assert named(of_operator(values), "ValidatingAdmissionPolicy") == {}


def test_each_part_of_a_pools_status_has_one_writer():
    policies = named(of_operator(), "ValidatingAdmissionPolicy")
    (policy,) = (each for name, each in policies.items() if name.endswith("-pools"))
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], [f"{POOLS}/status"])
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    for writer, account in (("isOperator", "eclectus-operator"), ("isScheduler", "eclectus")):
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        assert variables[writer].startswith(f'request.userInfo.username == "{user}" ||')
    assert f".name('{PROBES.lease}')" in variables["mayLead"]
    conditions, measured = (each["expression"] for each in policy["spec"]["validations"])
    assert conditions.startswith("variables.isOperator || ")
    assert measured.startswith("variables.isScheduler || ")
    bindings = named(of_operator(), "ValidatingAdmissionPolicyBinding")
    assert bindings[policy["metadata"]["name"]]["spec"]["validationActions"] == ["Deny"]
    assert not named(render(), "ValidatingAdmissionPolicy").keys() & policies.keys(), "without the operator"


def test_by_its_rights_no_account_of_the_chart_passes_for_the_other():
    """That is how the policy knows the accounts of further releases."""
    lead = Permission("coordination.k8s.io", "leases", "update", PROBES.lease, "kube-system")
    bind = Permission("", "pods/binding", "create")
    of_it = of_operator(CI)
    others = [each for each in render(CI) if each not in of_it]
    assert {lead, bind} & granted(of_it) == {lead}
    assert {lead, bind} & granted(others) == {bind}


def test_the_roles_for_users_let_them_create_dag_jobs_where_they_may_create_pods():
    def aggregated(values):
        roles = (each for each in render(values) if each["kind"] == "ClusterRole")
        return {
            key.rpartition("-")[2]: each["rules"]
            for each in roles
            for key in each["metadata"]["labels"]
            if "aggregate-to" in key and ":dagjobs-" in each["metadata"]["name"]
        }

    values = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}}
    found = aggregated(values)
    assert found.keys() == {"admin", "edit", "view"}
    assert [each["resources"] for rules in found.values() for each in rules] == [["dagjobs"]] * 3
    assert "create" in found["edit"][0]["verbs"]
    assert found["view"][0]["verbs"] == ["get", "list", "watch"]
    values["operator"]["dagJobs"]["aggregateRoles"] = False
    assert aggregated(values) == aggregated(ON) == {}


def test_its_arguments_follow_the_values():
    found = settings(CI)
    assert (found[Settings].dag_jobs, found[Settings].dag_waiting, found[Settings].dag_kept) == (True, 20, 10)
    assert found[Settings].namespace == "benchmarks"
    assert found[Settings].unit_image == "registry.internal:5000/batch/eclectus-unit:2"
    assert (found[Settings].most_running, found[Settings].pull_secrets) == (3, "registry")
    assert (found[Settings].copies, found[Settings].copy_requests) == ("batch,research", "none")
    assert set(parse(found[Settings].node_labels)) == {"eclectus.dev/gpu-model", "eclectus.dev/kernel"}


def test_the_chart_accepts_the_labels_that_the_operator_sets_and_no_others():
    schema = json.loads((CHART / "values.schema.json").read_text())
    pattern = schema["properties"]["operator"]["properties"]["nodeLabels"]["propertyNames"]["pattern"]
    assert all(re.search(pattern, label) for label in MACHINE_LABELS)
    assert not re.search(pattern, "eclectus.dev/no-probes")


def test_only_copies_of_recent_pods_mount_more_than_an_empty_dir():
    policies = named(of_operator(), "ValidatingAdmissionPolicy")
    (policy,) = (each["spec"] for name, each in policies.items() if name.endswith("-pods"))
    variables = {each["name"]: each["expression"] for each in policy["variables"]}
    assert f"'{ORIGINAL}' in object.metadata.annotations" in variables["isCopy"]
    of_volumes = policy["validations"][1]["expression"]
    before, after = of_volumes.split("variables.isCopy && (")
    assert re.findall(r"has\(v[.](\w+)\)", before) == ["emptyDir"]
    assert re.findall(r"has\(v[.](\w+)\)", after) == list(COPIED_VOLUMES)


def test_two_releases_have_different_instances():
    one, two = (
        [each for each in of_operator(namespace=name) if each["kind"] == "ValidatingAdmissionPolicy"]
        for name in ("one", "two")
    )
    selectors = [
        each["spec"]["matchConstraints"].get("objectSelector", {}).get("matchLabels") for each in one + two
    ]
    instances = {each["eclectus.dev/instance"] for each in selectors if each}
    assert len(instances) == 2
    assert {each["metadata"]["name"] for each in one}.isdisjoint(each["metadata"]["name"] for each in two)


def test_templates_of_dag_jobs_with_keys_of_probes_are_rejected_by_those_of_the_operator():
    (policy,) = [
        each
        for name, each in named(of_operator(CI), "ValidatingAdmissionPolicy").items()
        if name.endswith("-dagjobs")
    ]
    keys = next(each for each in policy["spec"]["variables"] if each["name"] == "reserved")
    assert sorted(re.findall(r"'([^']+)'", keys["expression"])) == sorted(OPERATOR_KEYS)
    assert not any(name.endswith("-dagjobs") for name in named(of_operator(), "ValidatingAdmissionPolicy"))


def test_probe_pods_neither_preempt_nor_trigger_the_autoscaler():
    (priority,) = named(of_operator(), "PriorityClass").values()
    assert priority["preemptionPolicy"] == "Never"
    assert priority["value"] < -10, "the cluster autoscaler ignores pods with a priority below -10"
    assert not priority.get("globalDefault")


def test_plain_yaml_adds_the_operator_and_nothing_else():
    plain = list(yaml.safe_load_all(operator_yaml()))
    for each in plain:
        kubernetes_validate.validate(each, "1.37", strict=True)
    rendered = {(each["kind"], each["metadata"]["name"]) for each in of_operator()}
    assert {(each["kind"], each["metadata"]["name"]) for each in plain} == rendered
    assert "helm" not in yaml.safe_dump_all(plain).lower()


def test_the_admission_policy_can_be_left_out():
    without = of_operator({"operator": {"enabled": True, "admissionPolicy": {"enabled": False}}})
    assert not [each for each in without if each["kind"].startswith("Validating")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--instance'"),
        (["--instance", "a-b"], "instance 'a-b': use 1 to 16 lower-case letters and digits"),
        (["--instance", "a", "--renew-deadline", "14"], "must be 4 s above"),
        (["--instance", "a", "--retry-period", "9"], "retry-period times 1.2 < renew-deadline"),
        (["--instance", "a", "--most-running", "0"], "not in the range 1<=x<=500"),
        (["--instance", "a", "--kubeconfig", "/none"], "does not exist"),
    ],
)
def test_a_wrong_command_line_is_an_error_with_a_message(arguments, message):
    required = ["--namespace", "n", "--lease-namespace", "n"]
    result = CliRunner().invoke(main, [*arguments, *required])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
