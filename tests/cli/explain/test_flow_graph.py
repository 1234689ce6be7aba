"""`explain --graph` draws the part of a flow problem that is about a pod."""

import msgspec
import pytest
from click.testing import CliRunner

from eclectus.cli.explain import transport
from eclectus.cli.explain.flow_graph import flow_page
from eclectus.cli.main import program
from eclectus.model.explanation import FlowArc, FlowPart, PodExplanation

NODES = (FlowArc("n1", 1000, 2, 2), FlowArc("n<2>", 4000, 1))
FLOW = FlowPart(1.5, "optimal", groups=4, arcs=90, pods=3, staying=2000, stay=1, nodes=NODES, not_listed=7)
POD = PodExplanation(namespace="default", name="a", state="deferred", summary="waits", flow=FLOW)


@pytest.fixture
def answers(monkeypatch):
    """The scheduler answers with what is put here."""
    given = [POD]

    async def answer(access, target, source, question):
        return msgspec.json.encode(given[0])

    monkeypatch.setattr(transport, "answer_from_scheduler", answer)
    return given


def invoke(*arguments):
    return CliRunner().invoke(program, ["explain", *map(str, arguments)])


def test_the_text_has_the_arcs(answers, kubeconfig):
    ended = invoke("pod/a", "--kubeconfig", kubeconfig)
    assert "Flow: one of 3 equal pods in a problem of 90 arcs, asked" in ended.stdout
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["(stay)", "2000", "1"] in lines
    assert ["n1", "1000", "2", "2"] in lines
    assert "7 dearer nodes" in ended.stdout


def test_the_picture_is_a_file(answers, kubeconfig, tmp_path):
    path = tmp_path / "flow.html"
    ended = invoke("pod/a", "--kubeconfig", kubeconfig, "--graph", path)
    assert ended.exit_code == 0, ended.output
    assert path.read_text() == flow_page(POD)


def test_names_are_escaped_and_ways_that_are_used_stand_out():
    page = flow_page(POD)
    assert "n&lt;2&gt;" in page
    assert "n<2>" not in page
    assert page.count('<line class="flow"') == 2  # to n1, and to stay
    assert page.count("<line ") == 3
    assert "<script" not in page


def test_of_pods_with_data_it_says_what_would_move(answers, kubeconfig, tmp_path):
    moves = (FlowArc("n1", 0, 1, 1, in_rack=0, across=0), FlowArc("n2", 9000, 1, in_rack=2**30, across=2**31))
    flow = msgspec.structs.replace(FLOW, nodes=moves, data=3 * 2**30, why="of the nodes none costs less")
    answers[0] = msgspec.structs.replace(POD, flow=flow)
    path = tmp_path / "flow.html"
    said = invoke("pod/a", "--kubeconfig", kubeconfig, "--graph", path).stdout
    assert "optimal: of the nodes none costs less" in said
    assert "3Gi of its data are on known nodes" in said
    assert ["n2", "9000", "0", "1", "1Gi", "2Gi"] in [line.split() for line in said.splitlines()]
    page = path.read_text()
    assert "1Gi from its rack, 2Gi from others" in page
    assert "of the nodes none costs less" in page


def test_of_pods_beyond_the_bound_it_says_so(answers, kubeconfig):
    answers[0] = msgspec.structs.replace(POD, flow=msgspec.structs.replace(FLOW, is_beyond=True))
    assert "too many pods have data of their own" in invoke("pod/a", "--kubeconfig", kubeconfig).stdout


def test_what_has_no_flow_is_not_drawn(answers, kubeconfig, tmp_path):
    answers[0] = msgspec.structs.replace(POD, flow=None)
    ended = invoke("pod/a", "--kubeconfig", kubeconfig, "--graph", tmp_path / "flow.html")
    assert ended.exit_code == 2
    assert "default/a was not in the last flow problem" in ended.output
    assert not (tmp_path / "flow.html").exists()
