"""The objects that the chart renders, with its default values, every file in ci/ and every preset."""

import click
import helm_python as helm
import kubernetes_validate
import pytest
import yaml

from eclectus.api.names import LEASE_LABEL
from eclectus.cli.main import program
from eclectus.config.configuration import parse
from eclectus.kubeclient.election import lease_label
from eclectus.policies.order.pools import FairPools
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella.place import Rosella
from eclectus.policies.speculate.late import Late
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import RELEASE, configuration, deployment, render

OLDEST, NEWEST = "1.29", "1.37"
OPEN = {"config": {"server": {"authentication": "none", "allowAnonymous": True}}}
FILES = sorted([*(CHART / "ci").glob("*-values.yaml"), *(CHART / "presets").glob("*.yaml")])
CASES = ["defaults", *(f"{path.parent.name}/{path.name}" for path in FILES)]


def values(case):
    return {} if case == "defaults" else yaml.safe_load((CHART / case).read_text())


def one(objects, kind, **metadata):
    (found,) = [
        each for each in objects if each["kind"] == kind and metadata.items() <= each["metadata"].items()
    ]
    return found


def pod_of(objects):
    return deployment(objects, "scheduler")["spec"]["template"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("case", CASES)
def test_every_object_is_valid_kubernetes(case, version):
    for each in render(values(case)):
        if each["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # not Kubernetes' own: test_monitoring.py
        if version != OLDEST or not each["kind"].startswith("ValidatingAdmissionPolicy"):
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_lint_reports_only_the_missing_icon(case):
    report = helm.lint(CHART, values(case), strict=True, kube_version=f"v{OLDEST}.0")
    assert [each["error"] for each in report["messages"]] == ["icon is recommended"]
    assert report["errors"] == []


def test_the_same_values_give_the_same_objects():
    assert render() == render()


@pytest.mark.parametrize("case", CASES)
def test_each_selector_selects_the_pods_of_one_component(case):
    objects = render(values(case))
    pods = [
        each["spec"]["template"]["metadata"]["labels"] for each in objects if each["kind"] == "Deployment"
    ]
    specs = [each.get("spec", {}) for each in objects]
    selectors = [each["selector"] for each in specs if "selector" in each and "endpoints" not in each]
    selectors += [each["podSelector"] for each in specs if "podSelector" in each]
    selectors += [each["labelSelector"] for each in pod_of(objects)["spec"]["topologySpreadConstraints"]]
    wanted = [each.get("matchLabels", each) for each in selectors]
    of_probes = [each for each in wanted if "eclectus.dev/instance" in each]
    for labels in (each for each in wanted if each not in of_probes):
        assert sum(labels.items() <= pod.items() for pod in pods) == 1
    assert len(of_probes) == len(pods) - 1, "the operator adds a policy for its probe pods"


def test_no_selector_selects_the_test_pod():
    objects = render()
    labels = one(objects, "Pod")["metadata"]["labels"]
    assert not deployment(objects, "scheduler")["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("case", CASES)
def test_pods_meet_the_restricted_standard(case):
    objects = render(values(case))
    found = [each["spec"]["template"] for each in objects if each["kind"] == "Deployment"]
    for pod in [*found, one(objects, "Pod")]:
        is_restricted(pod["spec"])


def is_restricted(spec):
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    for container in spec["containers"]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
    assert all(
        next(iter(volume.keys() - {"name"})) in ("configMap", "emptyDir", "persistentVolumeClaim", "secret")
        for volume in spec.get("volumes", [])
    )


def test_probes_and_service_follow_the_configured_port():
    objects = render({"config": {"server": {"port": 8080}}})
    (container,) = pod_of(objects)["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 8080}]
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {
        "metrics"
    }
    assert one(objects, "Service")["spec"]["ports"][0]["port"] == 8080


@pytest.mark.parametrize("case", CASES)
def test_the_program_accepts_its_arguments(case):
    (container,) = pod_of(render(values(case)))["spec"]["containers"]
    (test,) = one(render(values(case)), "Pod")["spec"]["containers"]
    assert test["args"] == ["--version"]
    command, *options = container["args"]
    options = [each.replace("/etc/eclectus/config.yaml", __file__) for each in options]
    given = program.get_command(click.Context(program), command).make_context(command, options).params
    assert given["log_format"] == values(case).get("scheduler", {}).get("logFormat", "text")


def test_a_changed_configuration_changes_the_pods():
    before, after = (
        pod_of(render(v))["metadata"]["annotations"]["checksum/config"]
        for v in ({}, {"config": {"learn": {"policy": "none"}}})
    )
    assert before != after


def test_pods_may_take_a_changed_configuration_over_instead():
    kept, changed = (
        pod_of(render({"scheduler": {"restartOnConfigChange": False}, **v}))
        for v in ({}, {"config": {"learn": {"policy": "none"}}})
    )
    assert "checksum/config" not in (kept["metadata"].get("annotations") or {})
    assert kept == changed


def test_the_configuration_is_passed_through():
    given = {"profiles": [{"schedulerName": "quick", "place": {"policy": "pot", "queue": "lines"}}]}
    config = yaml.safe_load(configuration(render({"config": given})))
    assert config["profiles"] == given["profiles"]
    assert (config["apiVersion"], config["kind"]) == ("eclectus.dev/v1alpha1", "SchedulerConfiguration")


@pytest.mark.parametrize("case", CASES)
def test_the_scheduler_reads_the_configuration(case):
    objects = render(values(case))
    read = parse(configuration(objects))
    names = {each["schedulerName"] for each in yaml.safe_load(read.text)["profiles"]}
    assert {profile.scheduler_name for profile in read.profiles} == names
    assert one(objects, "Pod")["spec"]["schedulerName"] in names


def test_the_preset_full_has_every_feature_on():
    (profile,) = parse(configuration(render(values("presets/full.yaml")))).profiles
    assert isinstance(profile.order, FairPools)
    assert isinstance(profile.place, Rosella)
    assert [type(each) for each in profile.relieve.policies] == [Reclaim, Preemption]
    assert isinstance(profile.speculate, Late)


def test_the_lease_has_the_namespace_and_name_of_the_release():
    objects = render({"fullnameOverride": "speedy"}, namespace="batch")
    lease = yaml.safe_load(configuration(objects))["leaderElection"]
    assert (lease["resourceNamespace"], lease["resourceName"]) == ("batch", "speedy")
    role = one(objects, "Role", namespace="batch")
    assert role["rules"][1]["resourceNames"] == ["speedy"]


def test_a_replica_records_in_a_file_of_its_own_and_no_more_than_its_volume_holds():
    pod = pod_of(render({"scheduler": {"record": {"enabled": True, "mostMebibytes": 100}}}))["spec"]
    container = pod["containers"][0]
    assert "--record=/var/lib/eclectus/$(POD_NAME).tape.gz" in container["args"]
    assert "--record-most=100" in container["args"]
    assert {"name": "tapes", "mountPath": "/var/lib/eclectus"} in container["volumeMounts"]
    assert {"name": "tapes", "emptyDir": {"sizeLimit": "216Mi"}} in pod["volumes"]
    (env,) = container["env"]
    assert env["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_by_default_nothing_is_recorded():
    pod = pod_of(render())["spec"]
    assert not any("record" in each for each in pod["containers"][0]["args"])
    assert {each["name"] for each in pod["volumes"]} == {"config", "tmp"}


def test_volumes_and_options_of_the_admin_are_added():
    pod = pod_of(render(values("ci/everything-values.yaml")))["spec"]
    assert pod["containers"][0]["args"][-1] == "--context=own"
    assert pod["volumes"][-1] == {"name": "certificates", "configMap": {"name": "certificates"}}
    assert pod["containers"][0]["volumeMounts"][-1]["mountPath"] == "/etc/certificates"
    assert {"name": "tapes", "persistentVolumeClaim": {"claimName": "tapes"}} in pod["volumes"]


def test_one_replica_has_no_disruption_budget():
    kinds = [each["kind"] for each in render({"scheduler": {"replicas": 1}})]
    assert "PodDisruptionBudget" not in kinds


def test_an_image_digest_overrides_the_tag():
    digest = "sha256:" + "0" * 64
    objects = render({"scheduler": {"image": {"repository": "reg:5000/e", "tag": "2", "digest": digest}}})
    assert pod_of(objects)["spec"]["containers"][0]["image"] == f"reg:5000/e@{digest}"


@pytest.mark.parametrize(
    ("repository", "image"),
    [
        ("eclectus-scheduler", "mirror.internal/eclectus-scheduler:1"),
        ("team/eclectus-scheduler", "mirror.internal/team/eclectus-scheduler:1"),
        ("ghcr.io/team/eclectus-scheduler", "ghcr.io/team/eclectus-scheduler:1"),
        ("localhost/eclectus-scheduler", "localhost/eclectus-scheduler:1"),
    ],
)
def test_a_registry_of_all_charts_is_that_of_images_without_one(repository, image):
    given = {"image": {"repository": repository, "tag": "1"}}
    objects = render({"global": {"imageRegistry": "mirror.internal/"}, "scheduler": given})
    assert pod_of(objects)["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize("values", [{"dagJobs": {"enabled": True}}, {"copies": {"namespaces": ["team"]}}])
def test_what_only_the_operator_does_is_refused_without_it(values):
    with pytest.raises(UsageError, match=r"Set operator\.enabled to true"):
        render({"operator": values})
    render({"operator": {**values, "enabled": True}})


def test_the_tag_is_by_default_the_charts_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert pod_of(render())["spec"]["containers"][0]["image"].endswith(f":{chart['appVersion']}")


def test_two_releases_share_no_cluster_wide_name():
    names = [
        {each["metadata"]["name"] for each in render(namespace=ns) if each["kind"].startswith("ClusterRole")}
        for ns in ("one", "two")
    ]
    assert names[0].isdisjoint(names[1])


def notes(values):
    with helm.Chart.load(CHART) as chart:
        return chart.render(values, name=RELEASE, namespace="batch")["eclectus/templates/NOTES.txt"]


def test_the_notes_show_the_first_commands():
    for command in (
        "kubectl -n batch rollout status deployment/eclectus",
        '"schedulerName": "eclectus"',
        "helm test eclectus -n batch",
        "kubectl eclectus speeds",
        "docs/configuration.md",
    ):
        assert command in notes({})


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        (
            {"config": {"profiles": [{"schedulerName": "default-scheduler"}]}},
            "unless kube-scheduler is stopped",
        ),
        ({"rbac": {"create": False}}, "or no pod is scheduled"),
        ({"metrics": {"prometheusRule": {"enabled": True}}}, "EclectusNoLeader will fire"),
        ({"config": {"nodeProfiles": {"enabled": False}}}, "https://127.0.0.1:10269/speeds"),
        ({"metrics": {"serviceMonitor": {"enabled": True}}}, "Prometheus gets 403 until"),
        (OPEN, "everybody who reaches the port reads metrics"),
        (
            {"config": {"profiles": [{"schedulerName": "jobs", "order": {"policy": "carbyne"}}]}},
            "Profile jobs plans DagJobs",
        ),
    ],
)
def test_the_notes_warn_of_what_the_values_imply(values, warning):
    assert warning in notes(values)
    assert warning not in notes({})


@pytest.mark.parametrize("name", ["eclectus", "a" * 253])
def test_the_bind_fence_selects_the_lease_that_the_scheduler_writes(name):
    """By label: an API server reads a Lease that it selects by name from etcd as long as there is none."""
    objects = render({"config": {"leaderElection": {"resourceName": name}}})
    (binding,) = (each for each in objects if each["kind"] == "ValidatingAdmissionPolicyBinding")
    assert binding["spec"]["paramRef"]["selector"] == {"matchLabels": {LEASE_LABEL: lease_label(name)}}
    assert "name" not in binding["spec"]["paramRef"]
