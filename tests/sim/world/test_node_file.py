"""Machines from a node list."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eclectus.model.errors import SettingsError
from eclectus.sim.scenario import parse
from short_scenarios import document, runs

HEAD = "sn,cpu_milli,memory_mib,gpu,model\n"
LIST = HEAD + "a,4000,1024,2,T4\nb,8000,2048,0,CPU\nc,4000,1024,1,T4\n"


def listed(folder: Path, text: str = LIST, name: str = "nodes.csv", **fields: object) -> object:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(folder / name, "wt") as file:
        file.write(text)
    cluster = {"nodes": {"file": name}, **fields.pop("cluster", {})}  # type: ignore[dict-item]
    return parse(yaml.safe_dump(document(cluster=cluster, **fields)), folder)


@pytest.mark.parametrize("name", ["nodes.csv", "nodes.csv.gz"])
def test_a_list_of_machines_is_read(name: str, tmp_path: Path) -> None:
    machines = listed(tmp_path, name=name).cluster.machines()
    assert list(machines) == ["a", "b", "c"]
    assert machines["a"].group == "T4"
    first, second = machines["a"].node, machines["b"].node
    assert dict(first.allocatable) == {"cpu": 4000, "memory": 2**30, "pods": 10_000, "gpu-milli": 2000}
    assert "gpu-milli" not in dict(second.allocatable)
    assert dict(first.labels) == {"kubernetes.io/hostname": "a", "gpu-model": "T4"}


def test_groups_and_a_list_can_be_combined(tmp_path: Path) -> None:
    mixed = listed(tmp_path, cluster={"groups": [{"name": "g", "count": 2}]})
    assert list(mixed.cluster.machines()) == ["g-0", "g-1", "a", "b", "c"]
    (done,) = runs(mixed, [1], checked=True)
    assert done.complete


def test_a_perturbation_of_a_model_applies_to_its_machines(tmp_path: Path) -> None:
    events = [
        {"at": 1, "action": "freeze", "group": "T4", "count": 1},
        {"at": 2, "action": "fail", "group": "T4"},
    ]
    perturbations = listed(tmp_path, events=events).perturbations
    assert [each.machines for each in perturbations] == [("a",), ("a", "c")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "sn,cpu_milli,gpu,model\na,1,1,T4\n",
            "nodes.csv has no column 'memory_mib'; its first line has sn,",
        ),
        ("", "nodes.csv has no column 'sn'; its first line has nothing"),
        (HEAD + "a,1,1,1,T4\nb,x,1,1,T4\n", "nodes.csv, line 3: cpu_milli is 'x': expected `int`"),
        (HEAD + "a,1,-1,1,T4\n", "nodes.csv, line 2: memory_mib is '-1': expected `int` >= 0"),
        (HEAD + "a,1,1,1.5,T4\n", "nodes.csv, line 2: gpu is '1.5': expected `int`"),
        (HEAD + "a,1,1\n", "nodes.csv, line 2: gpu is missing"),
        (HEAD + "a,1,1,1,T4,more\n", "nodes.csv, line 2: has more values than"),
        (HEAD + "a,1,1,1,T4\n\na,1,1,1,T4\n", "nodes.csv, line 4: node 'a' is listed twice"),
    ],
)
def test_a_bad_list_is_refused_with_the_line_and_the_reason(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^cluster\.nodes\.file: ") as refused:
        listed(tmp_path, text)
    assert words in str(refused.value)


def test_a_missing_list_and_a_duplicate_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cluster\.nodes\.file: none\.csv cannot be read"):
        parse(yaml.safe_dump(document(cluster={"nodes": {"file": "none.csv"}})), tmp_path)
    with pytest.raises(SettingsError, match="has a node 'g-1', which is also the name"):
        listed(tmp_path, HEAD + "g-1,1,1,1,T4\n", cluster={"groups": [{"name": "g", "count": 2}]})


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(LIST.encode())[:-9])
    with pytest.raises(SettingsError, match=r"nodes\.csv\.gz cannot be read"):
        parse(yaml.safe_dump(document(cluster={"nodes": {"file": "nodes.csv.gz"}})), tmp_path)


# -- kubectl get nodes -o json ---------------------------------------------------------------------

ZONE = "topology.kubernetes.io/zone"


def api_node(name: str, **metadata: object) -> dict[str, object]:
    allocatable = {"cpu": "3920m", "memory": "14Gi", "pods": "58"}
    return {"metadata": {"name": name, **metadata}, "status": {"allocatable": allocatable}}


def kubernetes(folder: Path, *nodes: dict[str, object], **fields: object) -> Any:
    listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": nodes}
    (folder / "nodes.json").write_text(json.dumps(listed))
    cluster = {"nodes": {"file": "nodes.json", "format": "kubernetes", **fields}}
    return parse(yaml.safe_dump(document(cluster=cluster)), folder)


def test_the_nodes_of_a_cluster_are_read_with_speeds_by_name(tmp_path: Path) -> None:
    large = api_node("new-1", labels={ZONE: "a", "node.kubernetes.io/instance-type": "m7.large"})
    large["spec"] = {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    asked = kubernetes(tmp_path, api_node("old-1"), large, speeds={"new-*": 2.5})
    old, new = asked.cluster.machines().values()
    assert dict(old.node.allocatable) == {"cpu": 3920, "memory": 14 * 2**30, "pods": 58}
    assert (old.group, new.group) == ("nodes", "m7.large")
    assert (old.speed(""), new.speed("")) == (1.0, 2.5)
    assert dict(new.node.labels)[ZONE] == "a"
    assert new.node.unschedulable
    assert [taint.key for taint in new.node.taints] == ["gpu"]


def test_work_runs_on_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    asked = kubernetes(tmp_path, api_node("a"), api_node("b"))
    assert all(run.complete for run in runs(asked, [1]))


@pytest.mark.parametrize(
    ("nodes", "fields", "words"),
    [
        ([], {}, "cluster.nodes.file: nodes.json has no nodes; write it by `kubectl get nodes -o json`"),
        ([{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "x"}}}], {}, "cpu"),
        ([api_node("old-1")], {"speeds": {"odl-*": 2}}, "cluster.nodes.speeds.odl-*: matches no node"),
    ],
)
def test_an_invalid_list_of_nodes_is_refused(
    nodes: list[dict[str, object]], fields: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as refused:
        kubernetes(tmp_path, *nodes, **fields)
    assert words in str(refused.value)
