"""Random clusters: equal for equal seeds, and with every rule that both schedulers have."""

import json
from collections import Counter

import pytest

from eclectus_e2e.differential.generator.clusters import changed, make_cluster, make_pods
from eclectus_e2e.differential.generator.crowded import make_crowded_cluster, make_preemptors
from eclectus_e2e.differential.generator.node_rules import pinned
from eclectus_e2e.differential.generator.pods import FEATURES

SEEDS = range(40)
ANY = "0.0.0.0"  # noqa: S104 - of a host port
# Field or value -> where it must occur: objects of the cluster, or pods that are asked about.
IN_PODS = [
    "nodeSelector",
    "matchFields",
    '"Gt"',
    '"NotIn"',
    "DoesNotExist",
    "tolerations",
    "hostPort",
    "hostIP",
    '"large:1"',
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "namespaceSelector",
    "namespaces",
    "matchLabelKeys",
    "DoNotSchedule",
    "ScheduleAnyway",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    '"claimName": "missing"',
    '"claimName": "exclusive',
    '"claimName": "csi',
    '"claimName": "unbound',
    "never-preempts",
    "restartPolicy",
    '"resources": {"requests": {"cpu": "600m"}}',
    "hugepages-2Mi",
    "example.com/gpu",
    "ephemeral-storage",
]
IN_CLUSTERS = [
    "unschedulable",
    "NoExecute",
    "PreferNoSchedule",
    '"labels": {}',
    "deletionTimestamp",
    "csinodes",
    "volumeattachments",
    "__",
]


@pytest.fixture(scope="module")
def generated():
    clusters = [make_cluster(seed) for seed in SEEDS]
    pods = [make_pods(seed, cluster, 30) for seed, cluster in zip(SEEDS, clusters, strict=True)]
    return json.dumps(clusters), json.dumps(pods)


@pytest.mark.parametrize("text", IN_PODS)
def test_every_rule_occurs_in_pods(generated, text):
    assert text in generated[1]


@pytest.mark.parametrize("text", IN_CLUSTERS)
def test_every_state_occurs_in_clusters(generated, text):
    assert text in generated[0]


def test_equal_seeds_give_equal_clusters_and_pods():
    assert make_cluster(7) == make_cluster(7) != make_cluster(8)
    assert make_pods(7, make_cluster(7), 5) == make_pods(7, make_cluster(7), 5)


def test_a_later_state_keeps_the_names_of_nodes_and_differs():
    later = [changed(seed, make_cluster(seed)) for seed in SEEDS]
    assert all(set(each) <= set(make_cluster(seed)) for seed, each in zip(SEEDS, later, strict=True))
    assert sum(each != make_cluster(seed) for seed, each in zip(SEEDS, later, strict=True)) > len(SEEDS) // 2


def _host_ports(cluster):
    for path, pod in cluster.items():
        spec = pod.get("spec", {}) if "/pods/" in path else {}
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                yield spec["nodeName"], port.get("hostIP", ANY), port["protocol"], port["hostPort"]


def test_no_two_pods_on_a_node_hold_one_host_port():
    ports = [list(_host_ports(make_cluster(seed))) for seed in SEEDS]
    assert sum(map(len, ports)) > len(SEEDS) // 4
    assert all(len(each) == len(set(each)) for each in ports)


def test_in_a_crowded_cluster_pods_may_be_evicted_in_an_order_that_is_fixed():
    clusters = [make_crowded_cluster(seed) for seed in SEEDS]
    assert clusters[7] == make_crowded_cluster(7)
    for cluster in clusters:
        starts = [each["status"]["startTime"] for path, each in cluster.items() if "/pods/" in path]
        assert len(starts) == len(set(starts)) >= 6
    text = json.dumps(clusters)
    assert '"terminationGracePeriodSeconds": 600' not in text
    assert "deletionTimestamp" not in json.dumps([_pods(each) for each in clusters])
    assert all(f'"priorityClassName": "{name}"' in text for name in ("low", "", "placed", "never-preempts"))
    assert all(f'"disruptionsAllowed": {allowed}' in text for allowed in range(3))


def _pods(cluster):
    return [each for path, each in cluster.items() if "/pods/" in path]


def test_most_preemptors_may_evict_and_all_have_names_in_the_cluster():
    cluster = make_crowded_cluster(7)
    pods = make_preemptors(7, cluster, 60)
    assert pods == make_preemptors(7, cluster, 60)
    classes = Counter(pod["spec"]["priorityClassName"] for _, pod in pods)
    assert classes["preempts"] > 40
    assert set(classes) == {"preempts", "low", "never-preempts"}


def test_a_pod_has_about_two_rules():
    assert 1.5 < sum(percent for percent, _ in FEATURES) / 100 < 2.5


def test_a_pin_is_one_more_condition_in_each_term():
    def terms(spec):
        return spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]

    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert terms(pinned({}, "n1")) == [{"matchFields": [here]}]
    fast = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [fast, {"matchFields": [{**here, "operator": "NotIn"}]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    assert terms(pinned(spec, "n1")) == [
        {**fast, "matchFields": [here]},
        {"matchFields": [{**here, "operator": "NotIn"}, here]},
    ]
    assert terms(spec) == required["nodeSelectorTerms"]
