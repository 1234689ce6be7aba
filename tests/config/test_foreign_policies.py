"""Policies of another distribution run beside ours, and a broken one stops nothing that does not name it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

from builders import make_node, make_task
from eclectus.config.configuration import parse
from eclectus.config.profiles import foreign_policies
from eclectus.model.errors import SettingsError
from eclectus.policies.table import ROLES
from worlds import World

FOREIGN = Path(__file__).parent / "foreign"
HEAD = "apiVersion: eclectus.dev/v1alpha1\nkind: SchedulerConfiguration\nprofiles:\n  - schedulerName: x\n"
SCENARIO = """
apiVersion: eclectus.dev/v1alpha1
kind: Scenario
cluster: {groups: [{name: n, count: 2, slots: 2, speed: 1}]}
workload: {poisson: {load: 0.5, classes: [{size: {law: exponential, mean: 1s}}]}}
profiles: [{schedulerName: x, place: {policy: lowest-name}}]
measure: {tasks: 100, warmUp: 0.1}
seeds: 1
"""


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(FOREIGN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOREIGN), os.environ.get("PYTHONPATH", "")]))
    before = {role: dict(known) for role, known in ROLES.items()}
    yield
    for role, known in before.items():
        ROLES[role].clear()
        ROLES[role].update(known)


def eclectus(*arguments: str) -> tuple[int, str]:
    done = run(
        [sys.executable, "-c", "from eclectus.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def configured(tmp_path: Path, policy: str) -> str:
    file = tmp_path / "configuration.yaml"
    file.write_text(f"{HEAD}    {policy}\n")
    return str(file)


@pytest.mark.parametrize(("end", "node"), [("false", "a"), ("true", "b")])
def test_pods_are_placed_by_it_with_its_settings(end: str, node: str) -> None:
    configuration = parse(f"{HEAD}    place: {{policy: lowest-name, fromTheEnd: {end}}}\n")
    assert str(configuration.profiles[0].place) == "place/lowest-name"
    world = World(configuration.engine(), make_node("b"), make_node("a"))
    world.add(make_task("pod", profile="x"))
    assert world.placed() == {"pod": node}


def test_the_program_lists_explains_checks_and_simulates_it(tmp_path: Path) -> None:
    code, text = eclectus("policies")
    assert code == 0
    assert re.search(r"^place +lowest-name +The node with the lowest name", text, re.MULTILINE)
    assert "unusable: relieve/missing of lowest-name 1.2 cannot be used: ModuleNotFoundError" in text
    assert "fromTheEnd: false    # true | false" in eclectus("policies", "lowest-name")[1]
    file = configured(tmp_path, "place: {policy: lowest-name, fromTheEnd: true}")
    assert eclectus("check-config", file)[0] == 0
    assert "fromTheEnd: true" in eclectus("check-config", "--effective", file)[1]
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    code, text = eclectus("simulate", str(scenario))
    assert code == 0, text


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("place: {policy: unfinished}", "place/unfinished of lowest-name 1.2 is no dataclass with all meth"),
        ("order: {policy: by-name}", "has a method `rank` and must say `ranks_groups`, or neither"),
        ("line: {policy: undescribed}", "line/undescribed of lowest-name 1.2 is no dataclass"),
        ("relieve: {policy: missing}", "cannot be used: ModuleNotFoundError: No module named 'not_there'"),
        ("place: {policy: lowest-nam}", "'lowest-nam' is unknown; did you mean 'lowest-name'?"),
    ],
)
def test_one_that_is_broken_is_an_error_that_names_it_where_it_is_asked_for(
    policy: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f"{HEAD}    {policy}\n")
    role = policy.partition(":")[0]
    assert caught.value.path == f"profiles[0].{role}.policy"
    assert problem in caught.value.problem
    code, text = eclectus("check-config", configured(tmp_path, policy))
    assert code == 2
    assert problem in text


def test_no_policy_of_ours_is_replaced() -> None:
    kind = ROLES["place"]["uniform"]
    problems = {}
    for each in foreign_policies():
        try:
            each.load()
        except SettingsError as error:
            problems[each.entry.name] = error.problem
    assert problems["place/uniform"] == "place/uniform of lowest-name 1.2 has the name of another policy"
    assert "is not named by a role and a name" in problems["lowest-name"]
    assert ROLES["place"]["uniform"] is kind


def test_entry_points_are_not_read_for_policies_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert str(parse(f"{HEAD}    place: {{policy: kube}}\n").profiles[0].place) == "place/kube"
