"""`eclectus speeds`: learned speeds of nodes, as a table and for programs."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from eclectus.api.node_profile import NodeProfile, decode_page, status_of
from eclectus.cli import speeds as command
from eclectus.cli.main import program
from eclectus.model.learned import LearnedNode, LearnedWork

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def known(name: str, speed: float, state: str = "live", **rates: float) -> dict[str, Any]:
    work = tuple(LearnedWork(each, rate, 10, 0.9) for each, rate in rates.items())
    node = LearnedNode(name, 1, NOW.timestamp() - 300, state, speed, 0.9, work)  # type: ignore[arg-type]
    return {"metadata": {"name": name}, "status": status_of(node)}


def page(*items: dict[str, Any]) -> list[NodeProfile]:
    return list(decode_page(msgspec.json.encode({"items": list(items)})).items)


THREE = page(
    known("fast", 2.0, web=2.0, render=0.4),
    known("slow", 0.5, web=0.5, render=0.1),
    known("typical", 1.0, web=1.0, render=0.2),
)


def test_the_slowest_node_is_first_and_speeds_are_relative_to_the_typical_node() -> None:
    lines = list(command.table(command.rows(THREE), NOW))
    assert [line.split()[:2] for line in lines[1:]] == [
        ["slow", "0.50"],
        ["typical", "1.00"],
        ["fast", "2.00"],
    ]
    assert lines[0].split()[:7] == ["NODE", "SPEED", "STATE", "CONFIDENCE", "SAMPLES", "render", "web"]
    assert lines[1].split()[2:8] == ["Live", "90%", "20", "0.50", "0.50", "5m"]


def test_only_one_class() -> None:
    profiles = [*THREE, *page(known("other", 9.0, batch=1.0))]
    found = command.rows(profiles, "web")
    assert [row["node"] for row in found] == ["slow", "typical", "fast", "other"]
    assert [set(row["classes"]) for row in found] == [{"web"}, {"web"}, {"web"}, set()]


def test_many_classes_are_counted_and_shown_in_the_wide_table() -> None:
    profiles = page(known("n", 1.0, **{f"c{at}": 1.0 for at in range(7)}))
    narrow, wide = (list(command.table(command.rows(profiles), NOW, wide=wide)) for wide in (False, True))
    assert narrow[-1].startswith("(3 more classes")
    assert "c6" in wide[0]
    assert len(wide) == 2


def test_the_wide_table_has_prices() -> None:
    dear = known("dear", 1.0, web=1.0)
    dear["status"]["price"] = 1.25
    rows = command.rows(page(dear, known("unpriced", 2.0, web=2.0)))
    assert [row["price"] for row in rows] == [1.25, None]
    assert "PRICE" not in next(iter(command.table(rows, NOW)))
    head, *lines = (line.split() for line in command.table(rows, NOW, wide=True))
    assert [line[head.index("PRICE")] for line in lines] == ["1.25", "-"]


def test_the_wide_table_says_how_many_times_as_long_work_takes_as_on_the_fastest_node() -> None:
    mixed = known("mixed", 1.0, web=2.0, render=0.1)
    rows = command.rows([*THREE, *page(mixed)], nodes=["bare"])
    by_node = {row["node"]: row["slower"] for row in rows}
    assert by_node == {"fast": 1.0, "typical": 2.0, "slow": 4.0, "mixed": 4.0, "bare": None}
    assert {row["node"]: row["slower"] for row in command.rows([*THREE, *page(mixed)], "web")}["mixed"] == 1.0
    assert "SLOWER" not in next(iter(command.table(rows, NOW)))
    head, *lines = (line.split() for line in command.table(rows, NOW, wide=True))
    assert [line[head.index("SLOWER")] for line in lines] == ["4.0", "4.0", "2.0", "1.0", "-"]


def test_the_price_of_a_class_is_beside_its_speed_in_the_wide_table() -> None:
    dear, other = known("dear", 1.0, web=1.0), known("other", 2.0, web=2.0)
    dear["status"]["classes"][0]["price"] = 2.5
    rows = command.rows(page(dear, other))
    assert [row["classes"]["web"]["price"] for row in rows] == [2.5, None]
    narrow, wide = (list(command.table(rows, NOW, wide=wide)) for wide in (False, True))
    assert "x2.5" not in narrow[1]
    assert "0.67 x2.5" in wide[1]
    assert "1.33 " in wide[2]


def test_the_last_probe_is_shown_with_its_age() -> None:
    item = known("n", 1.0, web=1.0)
    item["status"]["lastProbe"] = {"endedTime": "2026-03-01T09:00:00Z", "reason": "Completed"}
    (_, line) = command.table(command.rows(page(item)), NOW)
    assert line.endswith("3h Completed")


def test_nodes_of_which_nothing_is_known_are_last_and_without_numbers() -> None:
    profiles = [*THREE, *page({"metadata": {"name": "empty"}})]
    found = command.rows(profiles, nodes=["bare", "fast", "slow", "typical", "empty"])
    assert [row["node"] for row in found] == ["slow", "typical", "fast", "bare", "empty"]
    assert (found[-1]["speed"], found[-1]["confidence"], found[-1]["samples"]) == (None, None, 0)
    line = list(command.table(found, NOW))[4]
    assert line.split() == ["bare", "-", "Unknown", "-", "0", "-", "-", "-", "-"]


def test_the_failed_probe_of_a_node_without_samples_is_shown() -> None:
    status = {"lastProbe": {"endedTime": "2026-03-01T09:00:00Z", "reason": "ImagePullTooLong"}}
    (_, line) = command.table(command.rows(page({"metadata": {"name": "n"}, "status": status})), NOW)
    assert line.endswith("3h ImagePullTooLong")


# -- the command -------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cluster with the three profiles, unless a test sets `profiles`."""
    found = SimpleNamespace(profiles=THREE, nodes=["slow", "typical", "fast"])

    async def listed(client: object) -> list[NodeProfile]:
        return found.profiles

    async def list_objects(api: object, path: str, *, metadata_only: bool) -> list[dict[str, Any]]:
        return [{"metadata": {"name": name}} for name in found.nodes]

    monkeypatch.setattr(command, "_listed", listed)
    monkeypatch.setattr("eclectus.kubeclient.client.list_objects", list_objects)
    return found


def output(*arguments: str, code: int = 0, tmp: Any = None) -> str:
    result = CliRunner().invoke(program, ["speeds", "--kubeconfig", str(tmp), *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_json_and_yaml_have_every_number(cluster: Any, kubeconfig: Any) -> None:
    rows = json.loads(output("-o", "json", tmp=kubeconfig))
    assert rows == yaml.safe_load(output("-o", "yaml", tmp=kubeconfig))
    numbers = {"rate": 0.5, "relative": 0.5, "samples": 10, "confidence": 0.9, "price": None}
    assert rows[0]["classes"]["web"] == numbers


def test_the_default_output_is_a_table(cluster: Any, kubeconfig: Any) -> None:
    assert output(tmp=kubeconfig).splitlines()[1].startswith("slow")


def test_the_error_of_an_unknown_class_has_the_nearest_spelling(cluster: Any, kubeconfig: Any) -> None:
    assert "did you mean 'render'?" in output("--class", "rendr", code=2, tmp=kubeconfig)


def test_a_cluster_without_learned_speeds_is_reported(cluster: Any, kubeconfig: Any) -> None:
    cluster.profiles = cluster.nodes = []
    assert output(tmp=kubeconfig) == "no speeds have been learned yet\n"


def test_nodes_are_shown_before_any_speed_is_learned(cluster: Any, kubeconfig: Any) -> None:
    cluster.profiles = []
    lines = output(tmp=kubeconfig).splitlines()
    assert [line.split()[0] for line in lines] == ["NODE", "fast", "slow", "typical", "no"]
    assert [row["speed"] for row in json.loads(output("-o", "json", tmp=kubeconfig))] == [None] * 3


def test_an_unreachable_server_is_an_error(kubeconfig: Any) -> None:
    result = CliRunner().invoke(program, ["speeds", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code != 0
