"""Workload kubernetes: manifests of Pods and Jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from checked_worlds import build_checked
from eclectus.api.names import ARRIVAL_SECONDS, WORK_SECONDS
from eclectus.model.errors import SettingsError
from eclectus.model.objects import HostPort, Requirement, Term, Toleration
from eclectus.sim.base.work import Arrival
from eclectus.sim.scenario import Scenario, parse
from eclectus.sim.workloads.kubernetes import read_manifest
from short_scenarios import document, place

GROUPS = [
    {"name": "n", "count": 2, "resources": {"cpu": 4, "memory": "8Gi"}},
    {"name": "gpu", "resources": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 2}, "labels": {"kind": "gpu"}},
]


def pod(name: str = "p", work: Any = "30", at: str | None = None, **spec: Any) -> dict[str, Any]:
    notes = {WORK_SECONDS: work} | ({} if at is None else {ARRIVAL_SECONDS: at})
    container = {"name": "c", "image": "shop/render:1.2", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {key: value for key, value in notes.items() if value}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def job(name: str = "j", *, template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = template or pod()
    inner = {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": inner, **spec},
    }


def read(*things: Any) -> list[Arrival]:
    return read_manifest(yaml.safe_dump_all(things))


def asked(folder: Path, *things: Any) -> Scenario:
    (folder / "m.yaml").write_text(yaml.safe_dump_all(things))
    fields = document(
        cluster={"groups": GROUPS},
        workload={"kubernetes": {"file": "m.yaml"}},
        profiles=place("uniform"),
        measure={"warmUp": 0},
    )
    return parse(yaml.safe_dump(fields), folder)


def test_a_pod_is_translated_as_the_live_scheduler_would() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["gpu"]}]}
                ]
            }
        }
    }
    (arrival,) = read(
        pod(
            at="2.5",
            priority=7,
            nodeSelector={"kind": "gpu"},
            tolerations=[{"key": "k", "operator": "Exists"}],
            affinity=affinity,
        )
    )
    spec = arrival.work_class.spec
    assert (arrival.at, arrival.sizes, arrival.work_class.name, arrival.work_class.priority) == (
        2.5,
        (30.0,),
        "default/shop/render",
        7,
    )
    assert spec.requests == (("cpu", 1000),)
    assert spec.node_selector == (("kind", "gpu"),)
    assert spec.affinity == (Term((Requirement("kind", "In", ("gpu",)),)),)
    assert spec.tolerations == (Toleration("k", "Exists"),)


def test_class_and_estimate_are_read_as_from_a_live_pod() -> None:
    one = pod()
    one["metadata"]["labels"] = {"eclectus.dev/class": "web"}
    one["metadata"]["annotations"]["eclectus.dev/estimated-seconds"] = "45"
    (arrival,) = read(one)
    assert (arrival.work_class.name, arrival.estimate) == ("default/web", 45.0)


def test_a_shared_class_has_a_bare_name() -> None:
    one = pod()
    one["metadata"]["labels"] = {"eclectus.dev/class": "web"}
    (arrival,) = read_manifest(yaml.safe_dump(one), frozenset({"web"}))
    assert arrival.work_class.name == "web"


def test_defaults_of_the_api_server_are_set() -> None:
    container = {
        "name": "c",
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        "ports": [{"containerPort": 80}],
        "env": None,
    }
    (arrival,) = read(pod(containers=[container], hostNetwork=True))
    assert arrival.work_class.spec.requests == (("cpu", 500), ("memory", 2**30))
    assert arrival.work_class.spec.host_ports == (HostPort(80),)


def test_lists_are_unfolded_and_arrivals_are_sorted_by_time() -> None:
    items = {"kind": "PodList", "items": [{k: v for k, v in pod(at="9").items() if k != "kind"}]}
    found = read(items, None, {"kind": "List", "items": [job(), pod(at="3")]})
    assert [(each.at, each.parallelism) for each in found] == [(0.0, 1), (3.0, None), (9.0, None)]


def test_a_manifest_may_be_json() -> None:
    assert len(read_manifest(json.dumps({"kind": "List", "items": [pod(), pod()]}))) == 2


@pytest.mark.parametrize(
    ("spec", "tasks", "at_once"),
    [
        ({}, 1, 1),
        ({"completions": 6, "parallelism": 2}, 6, 2),
        ({"completions": 6}, 6, 1),
        ({"parallelism": 4}, 4, 4),
        ({"completions": 2, "parallelism": 9}, 2, 9),
    ],
)
def test_a_job_has_completions_and_parallelism(spec: dict[str, int], tasks: int, at_once: int) -> None:
    (arrival,) = read(job(**spec))
    assert (len(arrival.sizes), arrival.parallelism) == (tasks, at_once)


def test_the_next_pod_of_a_job_comes_when_one_has_ended(tmp_path: Path) -> None:
    scenario = asked(tmp_path, job(completions=5, parallelism=2, template=pod(work="10")))
    world = build_checked(scenario, scenario.profiles[0], seed=1)
    numbers = []
    world.on_step = lambda now, events, commands: numbers.append((now, world.record.in_system))
    world.run()
    assert max(count for _, count in numbers) == 2
    assert world.now == 30.0
    (tally,) = world.record.tallies.values()
    assert (tally.response.mean, tally.jobs.mean, tally.wait.largest) == (10.0, 30.0, 0.0)


def test_pods_of_one_class_with_different_requests_have_one_mean_size(tmp_path: Path) -> None:
    big = [{"name": "c", "image": "shop/render", "resources": {"requests": {"cpu": "2"}}}]
    plan = asked(tmp_path, pod(work="10"), pod("q", work="40", containers=big)).plan
    assert list(plan.mean_sizes.values()) == [25.0, 25.0]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (pod(work=None), r"document 1 \(Pod default/p\): metadata.annotations\[.*work-seconds\]: missing"),
        (pod(work="soon"), "'soon' is not a number of seconds, 1e-09 or more"),
        (pod(work="inf"), "'inf' is not a number of seconds"),
        (pod(work=30), r"metadata.annotations\[...\]: Expected `str`, got `int`"),
        (pod(at="-1"), r"arrival-seconds\]: '-1' is not a number of seconds, 0 or more"),
        (
            pod(restartPolicy="Always"),
            "spec.restartPolicy: Always, the default, restarts the work",
        ),
        (pod(nodeName="n-0"), "spec.nodeName: the pod is already bound to n-0"),
        (pod(schedulingGates=[{"name": "g"}]), "spec.schedulingGates: nothing removes the gate g"),
        (pod(priorityClassName="high"), "spec.priorityClassName: .* write spec.priority"),
        (pod(resourceClaims=[{"name": "c"}]), "spec: uses resource claims"),
        (
            pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
            "spec.volumes: nothing binds the claim data",
        ),
        (pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "x"}}}]), r"containers\[c\].*cpu"),
        (
            pod(containers=[{"name": "c", "resources": 3}]),
            r"spec.containers\[0\].resources: Expected `object`",
        ),
        (pod(name=""), "metadata.name: missing"),
        (job(parallelism=0), r"\(Job default/j\): spec.parallelism: 0 is too small"),
        (job(suspend=True), "spec.suspend: a suspended Job"),
        (job(completions="6"), r"spec.completions: Expected `int \| null`, got `str`"),
        (job(template=pod(work=None)), r"spec.template.metadata.annotations\[.*: missing"),
        (
            {"kind": "Deployment", "metadata": {"name": "d"}},
            "kind: 'Deployment' is not supported",
        ),
        ({"kind": "List"}, "document 1: a List needs items"),
        ({"kind": "List", "items": [3]}, r"document 1, items\[0\]: must be a Kubernetes object, not 3"),
        ({"kind": "Pod"}, "document 1: object: Object missing required field `metadata`"),
    ],
)
def test_a_bad_object_is_refused_by_its_document_its_name_and_its_field(thing: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read(thing)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "m.yaml contains no Pod and no Job"),
        ("a: [", "m.yaml is not valid YAML"),
        ("a: 1\na: 2\n", "m.yaml, line 2: duplicate key 'a'"),
        (
            yaml.safe_dump(pod(nodeSelector={"kind": "tpu"})),
            "class 'default/shop/render' can run on no machine",
        ),
    ],
)
def test_a_bad_file_is_refused(text: str, words: str, tmp_path: Path) -> None:
    scenario = document(workload={"kubernetes": {"file": "m.yaml"}}, measure=None)
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(SettingsError, match=words):
        parse(yaml.safe_dump(scenario), tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    scenario = document(workload={"kubernetes": {"file": "no.yaml"}}, measure=None)
    with pytest.raises(SettingsError, match=r"workload.kubernetes.file: no.yaml cannot be read"):
        parse(yaml.safe_dump(scenario), tmp_path)
