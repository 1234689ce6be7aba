"""A case that differs becomes small, and stays one that differs."""

import asyncio
import json

import pytest

from eclectus_e2e.differential.case import Case, read
from eclectus_e2e.differential.generator.clusters import make_cluster, make_pods
from eclectus_e2e.differential.shrinking import shrink
from eclectus_e2e.errors import UsageError

NODES = {
    f"/api/v1/nodes/n{at}": {"metadata": {"name": f"n{at}"}, "spec": {"taints": [{"key": "t"}]}}
    for at in range(9)
}
PLACED = {
    f"/api/v1/namespaces/lab/pods/p{at}": {"metadata": {"name": f"p{at}"}, "spec": {"nodeName": f"n{at}"}}
    for at in range(9)
}
POD = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c"}], "tolerations": [{}, {"key": "t"}]},
}
CASE = Case({**NODES, **PLACED}, "lab", POD)


def shrunken(case, differs, attempts=1000):
    asked = []

    async def still_differs(smaller):
        asked.append(smaller)
        return differs(smaller)

    return asyncio.run(shrink(case, still_differs, attempts)), asked


def needs_two(case):
    """A difference by one node's taint, the pod on that node, and one toleration."""
    node = case.objects.get("/api/v1/nodes/n5", {"spec": {}})
    is_there = "/api/v1/namespaces/lab/pods/p5" in case.objects
    return (
        is_there
        and bool(case.pod["spec"]["containers"])
        and bool(node["spec"].get("taints"))
        and {"key": "t"} in case.pod["spec"].get("tolerations", ())
    )


def test_only_what_the_difference_needs_is_left():
    case, _ = shrunken(CASE, needs_two)
    assert set(case.objects) == {"/api/v1/nodes/n5", "/api/v1/namespaces/lab/pods/p5"}
    assert case.objects["/api/v1/nodes/n5"]["spec"] == {"taints": [{}]}
    assert case.pod == {
        "metadata": {},
        "spec": {"containers": [{"name": "c"}], "tolerations": [{"key": "t"}]},
    }


def test_pods_go_with_their_node():
    _, asked = shrunken(CASE, needs_two)
    for case in asked:
        for path, each in case.objects.items():
            if "/pods/" in path:
                assert f"/api/v1/nodes/{each['spec']['nodeName']}" in case.objects


def test_attempts_are_bounded_and_the_given_case_is_not_changed():
    before = json.dumps(CASE.objects)
    case, asked = shrunken(CASE, needs_two, attempts=3)
    assert len(asked) == 3
    assert needs_two(case)
    assert json.dumps(CASE.objects) == before


def test_a_case_is_read_as_it_was_written(tmp_path):
    objects = make_cluster(4)
    case = Case(objects, *make_pods(4, objects, 1)[0])
    case.write(tmp_path / "folder" / "case.json", "reasons")
    assert read(tmp_path / "folder" / "case.json") == case


@pytest.mark.parametrize("text", ["{", "[]", '{"objects": {}}'])
def test_another_file_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(UsageError, match="file is no case"):
        read(tmp_path / "file")
