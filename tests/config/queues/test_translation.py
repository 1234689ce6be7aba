"""Queues of Kueue, YuniKorn and Volcano as Pools: what becomes of each field, and that nothing is dropped."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode

from eclectus.cli.main import program
from eclectus.config.queues import yunikorn
from eclectus.config.queues.translation import Translation, translate
from eclectus.kube.pools import decode_pool, pool_from
from eclectus.model.errors import SettingsError
from eclectus_e2e.paths import CHART

DEFINITION = yaml.safe_load((CHART / "files" / "crds" / "pools.yaml").read_text())
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: vision, uid: u-1, labels: {team: vision}}
spec:
  cohortName: research
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  fairSharing: {weight: 1500m}
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - name: spot
          resources:
            - {name: cpu, nominalQuota: 8, borrowingLimit: 4}
            - {name: memory, nominalQuota: 36Gi, lendingLimit: 0}
        - name: on-demand
          resources:
            - {name: cpu, nominalQuota: 500m, borrowingLimit: "2"}
            - {name: memory, nominalQuota: 4Gi, borrowingLimit: 0}
status: {pendingWorkloads: 3}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: speech}
spec:
  cohort: research
  stopPolicy: HoldAndDrain
  namespaceSelector: {matchLabels: {team: speech}}
  resourceGroups:
    - flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: alone}
spec:
  resourceGroups:
    - flavors: [{name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: research}
spec:
  resourceGroups:
    - flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 10}]}]
---
apiVersion: v1
kind: List
items:
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: main, namespace: images}
    spec: {clusterQueue: vision}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: main, namespace: both}
    spec: {clusterQueue: vision}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: second, namespace: both}
    spec: {clusterQueue: speech}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: ResourceFlavor
    metadata: {name: spot}
    spec: {nodeLabels: {kind: spot}}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: AdmissionCheck
    metadata: {name: money}
    spec: {controllerName: bank}
"""

YUNIKORN = """
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  service.schedulingInterval: 1s
  queues.yaml: |
    partitions:
      - name: default
        nodesortpolicy: {type: binpacking}
        placementrules:
          - name: provided
          - {name: tag, value: namespace, create: true, parent: {name: fixed, value: teams}}
          - {name: user, create: true}
        queues:
          - name: root
            submitacl: "*"
            queues:
              - name: default
                resources: {max: {vcore: 2}}
              - name: teams
                parent: true
                maxapplications: 12
                childtemplate: {maxapplications: 3}
                resources:
                  guaranteed: {vcore: 10, memory: 1G}
                  max: {vcore: 100, memory: 10G}
                queues:
                  - name: vision
                    resources: {guaranteed: {vcore: 5500m, pods: 9}}
                    properties:
                      application.sort.policy: fair
                      preemption.delay: 1m30s
                      priority.offset: "5"
                  - name: Night_Jobs
                    properties: {preemption.policy: disabled, preemption.delay: 10s}
                    limits: [{limit: all, users: ["*"], maxapplications: 1}]
"""

VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: root}
spec: {capability: {cpu: 100}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research, annotations: {volcano.sh/hierarchy: root/research}}
spec:
  weight: 4
  parent: root
  priority: 10
  capability: {cpu: "40", nvidia.com/gpu: 8}
  deserved: {cpu: "20"}
  guarantee: {resource: {cpu: "30", memory: 1Gi}}
  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [fast]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec: {weight: 1, parent: research, reclaimable: false, dequeueStrategy: fifo}
status: {state: Closed}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1}
"""


def translated(*texts: str, chosen: Any = None) -> Translation:
    return translate([(f"{number}.yaml", text) for number, text in enumerate(texts)], chosen)


def pools(*texts: str) -> dict[str, Any]:
    """The spec of each Pool, by name; each is one that the API server and the scheduler accept."""
    found = list(yaml.safe_load_all(translated(*texts).text))
    for each in found:
        jsonschema.Draft4Validator(SCHEMA).validate(each)
        assert_known(each["spec"], SCHEMA["properties"]["spec"])
        pool_from(decode_pool(encode(each)))
    assert len({each["metadata"]["name"] for each in found}) == len(found)
    return {each["metadata"]["name"]: each["spec"] for each in found}


def assert_known(value: Any, schema: Any) -> None:
    """The API server prunes what the definition does not name."""
    for name, part in value.items() if isinstance(value, dict) and "properties" in schema else ():
        assert_known(part, schema["properties"][name])


def notes(*texts: str) -> str:
    return "\n".join(translated(*texts).notes)


def problems(*texts: str, chosen: Any = None) -> str:
    with pytest.raises(SettingsError) as raised:
        translated(*texts, chosen=chosen)
    return str(raised.value)


# -- Kueue ---------------------------------------------------------------------------------------------


def test_a_cluster_queue_has_its_quota_as_minimum_and_what_it_may_use_above_as_maximum() -> None:
    vision = pools(KUEUE)["vision"]
    assert vision["parent"] == "research"
    assert vision["minShare"]["amounts"] == {"cpu": "8500m", "memory": "40Gi"}
    assert vision["maxShare"]["amounts"] == {"cpu": "14500m"}  # memory of one flavor has no limit
    assert (vision["weight"], vision["policy"]) == (1.5, "fifo")
    assert vision["preemption"] == {"minShareSeconds": 0}


def test_a_flavor_is_a_kind_of_node_by_the_label_of_its_resource_flavor() -> None:
    vision = pools(KUEUE)["vision"]
    spot = {"key": "kind", "value": "spot"}
    assert vision["minShare"]["byNode"] == [{**spot, "amounts": {"cpu": 8, "memory": "36Gi"}}]
    assert vision["maxShare"]["byNode"] == [{**spot, "amounts": {"cpu": 12}}]
    assert "byNode" not in pools(KUEUE)["speech"]["minShare"], "it has one flavor"


def test_a_cohort_holds_what_its_members_and_it_have() -> None:
    research = pools(KUEUE)["research"]
    assert research["minShare"] == research["maxShare"]
    assert research["minShare"] == {"amounts": {"cpu": "20500m", "memory": "40Gi"}}


def test_a_cluster_queue_of_no_cohort_has_its_quota_alone() -> None:
    alone = pools(KUEUE)["alone"]
    assert alone["minShare"] == alone["maxShare"] == {"amounts": {"nvidia.com/gpu": 2}}
    assert "namespaces" not in alone


def test_a_cohort_below_another_may_use_more_up_to_its_limit() -> None:
    child = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: child}\n"
        "spec: {parentName: top, resourceGroups: [{flavors: [{name: a, resources: "
        "[{name: cpu, nominalQuota: 3, borrowingLimit: 2}]}]}]}\n"
    )
    found = pools(child)
    assert found["child"]["parent"] == "top"
    assert found["child"]["maxShare"] == {"amounts": {"cpu": 5}}
    assert found["top"]["maxShare"] == {"amounts": {"cpu": 3}}


def test_namespaces_are_bound_by_their_label_and_where_there_are_several_queues_by_that_of_pods() -> None:
    found, text = pools(KUEUE), translated(KUEUE).text
    assert found["vision"]["namespaces"] == {"names": ["both", "images"]}
    assert found["speech"]["namespaces"] == {"selector": {"matchLabels": {"team": "speech"}}}
    assert "# kubectl label namespace images eclectus.dev/pool=vision\n" in text
    assert "# Pods of namespace both name their pool, vision or speech, by their label" in text


def test_what_kueue_admits_from_nowhere_gets_no_label_and_that_is_said() -> None:
    closed = (CLUSTER_QUEUE % ("a", ", preemption: {reclaimWithinCohort: Any}")).replace(
        "namespaceSelector: {}", "stopPolicy: None"
    )
    local = (
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: main, namespace: n}, "
        "spec: {clusterQueue: %s}}"
    )
    found = translated(f"{closed}\n---\n{local % 'a'}\n---\n{local % 'gone'}")
    assert "kubectl label" not in found.text
    listed = "\n".join(found.notes)
    assert "document 2: LocalQueue n/main: spec.clusterQueue: a has no namespaceSelector" in listed
    assert "document 3: LocalQueue n/main: spec.clusterQueue: there is no ClusterQueue 'gone'" in listed
    assert "spec.preemption.reclaimWithinCohort: without a cohort there is nobody" in listed


def test_what_stands_still_in_kueue_does_so_here() -> None:
    assert pools(KUEUE)["speech"]["suspend"] is True


@pytest.mark.parametrize(
    "field",
    [
        "document 1: ClusterQueue vision: metadata.labels: are not copied",
        "document 1: ClusterQueue vision: spec.queueingStrategy: ",
        "document 1: ClusterQueue vision: spec.preemption.withinClusterQueue: ",
        "ClusterQueue vision: spec.resourceGroups[0].flavors[1]: on-demand is a part of the sum alone",
        "flavors[0].resources[1].lendingLimit: what a pool does not need is lent",
        "document 2: ClusterQueue speech: spec.stopPolicy: suspend evicts nothing",
        "document 5: items[3]: ResourceFlavor spot: spec.nodeLabels: ",
        "document 5: items[4]: AdmissionCheck money: Pools have nothing like this kind",
    ],
)
def test_what_kueue_has_beyond_is_listed(field: str) -> None:
    assert field in notes(KUEUE)


# -- YuniKorn ------------------------------------------------------------------------------------------


def test_queues_of_yunikorn_form_the_same_tree_without_its_root() -> None:
    found = pools(YUNIKORN)
    assert {name: spec.get("parent") for name, spec in found.items()} == {
        "default": None,
        "teams": None,
        "vision": "teams",
        "night-jobs": "teams",
    }
    assert found["teams"]["minShare"] == {"amounts": {"cpu": 10, "memory": "1G"}}
    assert found["teams"]["maxShare"]["amounts"]["cpu"] == 100
    assert found["teams"]["maxRunningJobs"] == 12
    assert "policy" not in found["teams"]
    assert found["vision"]["minShare"] == {"amounts": {"cpu": "5500m", "pods": 9}}
    assert (found["vision"]["policy"], found["night-jobs"]["policy"]) == ("fair", "fifo")
    assert found["vision"]["preemption"] == {"minShareSeconds": 90}
    assert found["teams"]["preemption"] == {"minShareSeconds": 30}
    assert found["night-jobs"]["preemption"] == {"allowFrom": False}


def test_who_may_submit_to_all_queues_may_name_the_pools() -> None:
    found = pools(YUNIKORN)
    assert found["vision"]["namespaces"] == {"selector": {}}
    assert "namespaces" not in found["teams"]
    assert "namespaces" not in found["default"]


def test_a_rule_by_namespace_becomes_labels_of_namespaces() -> None:
    assert "# kubectl label namespace vision eclectus.dev/pool=vision\n" in translated(YUNIKORN).text


def test_without_preemption_in_a_partition_nothing_is_taken_back() -> None:
    text = YUNIKORN.replace("nodesortpolicy: {type: binpacking}", "preemption: {enabled: false}")
    assert "preemption" not in pools(text)["vision"]
    assert "queue root.teams.vision: properties.preemption.delay: without a minimum" in notes(text)


@pytest.mark.parametrize(
    "field",
    [
        "data.service.schedulingInterval: is no queue",
        "partitions[0].nodesortpolicy: set the profile's `place`",
        "partitions[0].placementrules[1].create: pods of a namespace without a Pool are in default/NAMESPACE",
        "partitions[0].placementrules[2].name 'user': ",
        "queue root.teams: childtemplate: ",
        "queue root.teams.vision: properties.priority.offset: ",
        "queue root.teams.Night_Jobs: properties.preemption.delay: ",
        "queue root.teams.Night_Jobs: limits: Pools know no users",
        "queue root.teams.Night_Jobs: its Pool is called night-jobs",
    ],
)
def test_what_yunikorn_has_beyond_is_listed(field: str) -> None:
    assert field in notes(YUNIKORN)


def test_queues_of_one_name_are_called_by_their_paths() -> None:
    queue = "{name: %s, queues: [{name: dev}]}"
    text = f"partitions: [{{name: default, queues: [{queue % 'a'}, {queue % 'b'}]}}]"
    assert pools(text).keys() == {"a", "b", "a-dev", "b-dev"}


# -- Volcano -------------------------------------------------------------------------------------------


def test_queues_of_volcano_keep_weight_parent_and_amounts() -> None:
    found = pools(VOLCANO)
    assert found.keys() == {"research", "vision", "default"}
    research, vision = found["research"], found["vision"]
    assert (research["weight"], "parent" in research, vision["parent"]) == (4, False, "research")
    assert research["minShare"] == {"amounts": {"cpu": 30, "memory": "1Gi"}}
    assert research["maxShare"] == {"amounts": {"cpu": 40, "nvidia.com/gpu": 8}}
    assert vision["preemption"] == {"allowFrom": False}
    assert vision["suspend"] is True
    assert vision["namespaces"] == {"selector": {}}
    assert "namespaces" not in research


@pytest.mark.parametrize(
    "field",
    [
        "document 1: Queue root: maxShare: the root is the cluster",
        "document 2: Queue research: metadata.annotations.volcano.sh/hierarchy: ",
        "document 2: Queue research: spec.priority: ",
        "document 2: Queue research: spec.affinity: ",
        "document 2: Queue research: spec.guarantee.resource: what a pool does not need is lent",
        "document 2: Queue research: spec.deserved: is the minimum",
        "document 3: Queue vision: spec.dequeueStrategy: ",
        "document 4: Queue default: pods that name no pool are in default/NAMESPACE",
    ],
)
def test_what_volcano_has_beyond_is_listed(field: str) -> None:
    assert field in notes(VOLCANO)


# -- all of them ---------------------------------------------------------------------------------------

CLUSTER_QUEUE = (
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, "
    "spec: {namespaceSelector: {}%s}}"
)
QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: %s}, spec: {%s}}"


def test_names_that_pools_cannot_have_are_changed_and_that_is_said() -> None:
    cohort = CLUSTER_QUEUE.replace("ClusterQueue", "Cohort").replace(
        "namespaceSelector: {}", "fairSharing: {}"
    )
    long = "a" * 70
    given = [CLUSTER_QUEUE % (name, "") for name in ("default", "recovery", "same", long)]
    text = "\n---\n".join([*given, cohort % ("same", "")])
    first, *others = pools(text)
    assert (first, others[:2]) == ("default-queue", ["recovery-queue", "same"])
    assert (len(others[2]), others[3]) == (63, "same-cohort")
    assert "ClusterQueue default: its Pool is called default-queue" in notes(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "0.yaml: is not valid YAML"),
        ("a: 1\na: 2", "0.yaml: line 2: duplicate key 'a'"),
        ("[1]", "0.yaml: must be a mapping of fields"),
        ("a: 1", "there is no queue in what was given; a queue is a ClusterQueue"),
        (CLUSTER_QUEUE % ("'a b'", ""), "0.yaml: ClusterQueue ?: metadata.name: 'a b' is not a valid name"),
        (
            CLUSTER_QUEUE % ("a", ", stopPolicy: Stop"),
            "ClusterQueue a: spec.stopPolicy: 'Stop' is unknown; known",
        ),
        (CLUSTER_QUEUE % ("a", ", resourceGroups: 3"), "ClusterQueue a: spec.resourceGroups: must be a list"),
        (
            CLUSTER_QUEUE % ("a", ", resourceGroups: [{flavors: [{resources: [{name: cpu}]}]}]"),
            "ClusterQueue a: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: is missing",
        ),
        (
            CLUSTER_QUEUE
            % ("a", ", resourceGroups: [{flavors: [{resources: [{name: cpu, nominalQuota: x}]}]}]"),
            "flavors[0].resources[0].nominalQuota: 'x' is not a quantity",
        ),
        (QUEUE % ("a", "parent: b"), "0.yaml: Queue a: its parent, Queue b, is not in what was given"),
        (QUEUE % ("a", "parent: a"), "0.yaml: Queue a: its parents form a cycle: Queue a"),
        (QUEUE % ("a", "weight: heavy"), "0.yaml: Queue a: spec.weight: must be a whole number"),
        (QUEUE % ("a", "reclaimable: 1"), "0.yaml: Queue a: spec.reclaimable: must be true or false"),
        (
            QUEUE % ("a", "deserved: {cpu: 3}, capability: {cpu: 2}"),
            "Queue a: it has a minimum of 3 cpu, but a maximum of 2 cpu",
        ),
        (
            f"{QUEUE % ('a', '')}\n---\n{QUEUE % ('a', '')}",
            "0.yaml: document 2: Queue a: there are two of this name",
        ),
        ("partitions: [{queues: [{name: a.b}]}]", "partitions[0].queues[0].name: 'a.b' is not a valid name"),
        ("partitions: [{queues: [{resources: {}}]}]", "partitions[0].queues[0].name: is missing"),
        (
            "partitions: [{queues: [{name: root, resources: {max: {vcore: 1}}}]}]",
            "queue root: resources: root is",
        ),
        ("partitions: [{queues: [{name: a, maxapplications: 0}]}]", "queue root.a: maxapplications: must be"),
        (
            "partitions: [{queues: [{name: a, resources: {guaranteed: {vcore: 1}}, "
            "properties: {preemption.delay: soon}}]}]",
            "queue root.a: properties.preemption.delay: 'soon' is not a duration",
        ),
    ],
)
def test_an_error_names_the_file_the_object_and_the_field(text: str, problem: str) -> None:
    assert problem in problems(text)


def test_every_problem_is_named_at_once() -> None:
    found = problems(QUEUE % ("a", "weight: heavy"), "a: [", QUEUE % ("b", "parent: []"))
    for each in (
        "0.yaml: Queue a: spec.weight: ",
        "1.yaml: is not valid YAML",
        "2.yaml: Queue b: spec.parent: ",
    ):
        assert each in found


def test_queues_of_two_systems_are_read_one_at_a_time() -> None:
    assert "queues of kueue and volcano; choose with --from" in problems(KUEUE, VOLCANO)
    found = translated(KUEUE, VOLCANO, chosen="volcano")
    assert "kind: Pool" in found.text
    assert any("0.yaml: document 1: ClusterQueue: is left out" in each for each in found.notes)


def test_a_short_file_that_aliases_expand_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yunikorn, "DRAFTS_MOST", 100)
    circle = "partitions: [{name: default, queues: &all [{name: a, queues: *all}]}]"
    assert "there are more than 100 queues" in problems(circle)


@given(
    st.sampled_from([KUEUE, YUNIKORN, VOLCANO]),
    st.data(),
)
def test_any_value_anywhere_is_read_or_refused_with_words(text: str, data: st.DataObject) -> None:
    documents = list(yaml.safe_load_all(text))
    if "data" in documents[0]:
        documents = [yaml.safe_load(documents[0]["data"]["queues.yaml"])]
    at: Any = data.draw(st.sampled_from(documents))
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(
        st.sampled_from([None, [], {}, "", "x\n- y: z", -1, 1e300, True, [{}], {"a": 1}, ["b"]])
    )
    with suppress(SettingsError):
        found = translated(yaml.safe_dump_all(documents))
        assert all(each["kind"] == "Pool" for each in yaml.safe_load_all(found.text))


@pytest.mark.parametrize("text", [KUEUE, YUNIKORN, VOLCANO])
def test_a_field_that_nobody_knows_is_listed_wherever_it_is(text: str) -> None:
    """Nothing is dropped silently: each mapping of the examples gets a field more, one at a time."""
    text = yaml.safe_load(text)["data"]["queues.yaml"] if "ConfigMap" in text else text
    number = sum(1 for _ in mappings(list(yaml.safe_load_all(text))))
    for at in range(number):
        documents = list(yaml.safe_load_all(text))
        path, mapping = list(mappings(documents))[at]
        mapping["surprise"] = "1"
        try:
            listed = notes(yaml.safe_dump_all(documents))
        except SettingsError as error:
            listed = str(error)
        assert "surprise" in listed or any(each in path for each in FREE), path


# Below these everything is listed as one, or counts.
FREE = (
    "/items/4",
    "labels",
    "status",
    "nodeLabels",
    "matchLabels",
    "affinity",
    "limits",
    "childtemplate",
    "nodesortpolicy",
)


def mappings(value: Any, path: str = "") -> Any:
    if isinstance(value, dict):
        yield path, value
        for name, each in value.items():
            yield from mappings(each, f"{path}/{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from mappings(each, f"{path}/{number}")


# -- the command ---------------------------------------------------------------------------------------


def test_pools_are_printed_and_what_has_no_counterpart_goes_to_stderr(tmp_path: Any) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(VOLCANO)
    done = CliRunner().invoke(program, ["pools", "import", str(file)])
    assert done.exit_code == 0
    assert [each["kind"] for each in yaml.safe_load_all(done.stdout)] == ["Pool"] * 3
    assert all(line.startswith(f"no counterpart: {file}: document ") for line in done.stderr.splitlines())
    piped = CliRunner().invoke(program, ["pools", "import", "--from", "volcano", "-"], input=VOLCANO)
    assert piped.stdout == done.stdout


def test_what_cannot_be_read_is_an_error_and_nothing_is_printed(tmp_path: Any) -> None:
    done = CliRunner().invoke(program, ["pools", "import", str(tmp_path / "none.yaml")])
    assert isinstance(done.exception, SettingsError)
    assert "none.yaml: cannot be read" in str(done.exception)
    assert done.stdout == ""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    done = CliRunner().invoke(program, ["pools", "import", str(tmp_path / "binary")])
    assert "binary: cannot be read" in str(done.exception)


def test_a_pool_may_still_be_asked_for_by_name() -> None:
    help_text = CliRunner().invoke(program, ["pools", "--help"]).stdout
    assert "[NAME]" in help_text
    assert (
        " pools import [OPTIONS] FILE..." in CliRunner().invoke(program, ["pools", "import", "--help"]).stdout
    )
