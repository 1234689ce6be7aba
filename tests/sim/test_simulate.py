"""`eclectus simulate` and `eclectus scenarios`, from the outside."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from eclectus.cli.main import program
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, View
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.policies import table
from eclectus.sim import runs
from eclectus.sim.base.results import ComparisonReport, RunResult
from eclectus.sim.scenario import ComparedProfile, Scenario, shipped_scenarios
from eclectus_e2e.paths import CHECKOUT
from short_scenarios import document, poisson
from tie_breaking_policies import OneByOne

SCHEMA = CHECKOUT / "docs" / "simulation.schema.json"
ECLECTUS = Path(sys.executable).parent / "eclectus"
PROFILES = [
    {"schedulerName": "learning"},
    {"schedulerName": "sampling", "place": {"policy": "rosella", "view": "sample"}},
]
CLUSTER = {"groups": [{"count": 3, "slots": 2}, {"count": 2, "speed": 4}]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    fields = document(cluster=CLUSTER, workload=poisson(0.7), profiles=PROFILES, seeds=3, about="It shows.")
    path.write_text(yaml.safe_dump(fields))
    return path


def invoke(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(program, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def test_the_table_has_a_row_per_profile_with_intervals(file: Path) -> None:
    lines = invoke("simulate", file).stdout.splitlines()
    assert lines[0] == "It shows."
    assert lines[1].startswith("load 0.70, 280 measured tasks a run")
    assert lines[1].endswith("over 3 runs")
    assert [line.split()[0] for line in lines[4:6]] == ["learning", "sampling"]
    assert all(line.count("±") == 7 for line in lines[4:6])


def test_classes_are_reported_separately(file: Path) -> None:
    fields = yaml.safe_load(file.read_text())
    fields["workload"]["poisson"]["classes"] = [{"name": "short"}, {"name": "long", "size": {"mean": 9}}]
    file.write_text(yaml.safe_dump(fields))
    printed = invoke("simulate", file).stdout
    assert printed.index("response of tasks, s") < printed.index("\nshort\n") < printed.index("\nlong\n")


def test_groups_show_waits_preferences_met_and_the_worst_of_them(file: Path, tmp_path: Path) -> None:
    fields = yaml.safe_load(file.read_text())
    prefers = {"name": "picky", "preferences": [{"key": "disk", "values": ["ssd"]}], "size": {"mean": 9}}
    fields["workload"]["poisson"]["classes"] = [{"name": "plain"}, prefers]
    file.write_text(yaml.safe_dump(fields))
    out = ["--json", tmp_path / "r.json", "--plot", tmp_path / "p.html"]
    printed = invoke("simulate", file, *out).stdout
    heads = next(line for line in printed.splitlines() if line.startswith("response of tasks, s"))
    assert heads.split()[4:] == ["mean", "median", "p90", "p99", "wait", "wait", "p99", "met,", "%"]
    plain = printed[printed.index("\nplain\n") :].splitlines()[2]
    assert plain.split()[-1] == "-"  # tasks without preferences
    summary = json.loads((tmp_path / "r.json").read_text())["summaries"][0]
    assert (
        summary["all"]["met"]
        == summary["groups"]["class"]["picky"]["met"]
        == {"mean": 0.0, "half_width": 0.0}
    )
    slowdowns = {name: each["slowdown"] for name, each in summary["groups"]["class"].items()}
    worst = summary["worst"]["class"]
    assert (
        worst["slowdown"]
        == slowdowns[worst["group"]]
        == max(slowdowns.values(), key=lambda each: each["mean"])
    )
    found = printed[printed.index("slowest group") :].splitlines()
    assert found[2].split()[:2] == ["learning", worst["group"]]
    assert "<svg" in (tmp_path / "p.html").read_text()


def test_json_is_what_the_schema_says(file: Path, tmp_path: Path) -> None:
    invoke("simulate", file, "--json", tmp_path / "r.json")
    printed = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(printed, json.loads(SCHEMA.read_text()))
    assert [(run["profile"], run["seed"]) for run in printed["runs"]] == [
        (name, seed) for name in ("learning", "sampling") for seed in (1, 2, 3)
    ]
    assert msgspec.convert(printed, ComparisonReport, strict=False).summaries[0].all.slowdown is not None


def test_the_schema_is_that_of_the_results() -> None:
    assert json.loads(SCHEMA.read_text()).items() >= msgspec.json.schema(ComparisonReport).items()


@pytest.mark.long
def test_equal_seeds_give_identical_results_in_any_process_and_with_any_jobs(
    file: Path, tmp_path: Path
) -> None:
    printed = set()
    for jobs, hash_seed in (("1", "1"), ("3", "2")):
        out = tmp_path / f"{jobs}.json"
        env = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [ECLECTUS, "simulate", file, "--jobs", jobs, "--json", out]
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=120)
        printed.add(out.read_bytes())
    assert len(printed) == 1


def test_other_seeds_give_other_results(file: Path, tmp_path: Path) -> None:
    invoke("simulate", file, "--seed", 7, "--seed", 8, "--profile", "learning", "--json", tmp_path / "r.json")
    one, other = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert one["response"]["mean"] != other["response"]["mean"]


@dataclass(eq=False)
class Broken(OneByOne):
    """A policy with a defect."""

    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        raise KeyError("nothing is known of this")


def test_a_run_that_fails_is_reported_and_does_not_stop_the_others(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table.PLACE, "broken", Broken)
    fields = yaml.safe_load(file.read_text())
    fields["profiles"].insert(0, {"schedulerName": "broken", "place": {"policy": "broken"}})
    file.write_text(yaml.safe_dump(fields))
    said = invoke("simulate", file, "--json", tmp_path / "r.json", code=1).stderr
    assert "error: profile broken, seed 2: at " in said
    assert "; first of " in said
    assert "nothing is known of this" in said
    printed = msgspec.json.decode((tmp_path / "r.json").read_bytes(), type=ComparisonReport)
    assert printed.profiles == ["learning", "sampling"]
    assert [(each.profile, each.seed) for each in printed.failures] == [
        ("broken", seed) for seed in (1, 2, 3)
    ]
    invoke("simulate", file, "--profile", "broken", code=1)


def test_a_defect_is_reported_with_its_traceback(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runs.run

    def run(scenario: Scenario, profile: ComparedProfile, seed: int, **more: Any) -> RunResult:
        return real(scenario, profile, 1 // (seed - 2), **more)

    monkeypatch.setattr(runs, "run", run)
    said = invoke("simulate", file, "--profile", "learning", "--seed", 2, "--seed", 3, code=1)
    assert "error: profile learning, seed 2: a defect: ZeroDivisionError: " in said.stderr
    assert "in run\n" in said.stderr
    assert "seed 3" not in said.stderr


def test_a_recorded_run_replays(file: Path, tmp_path: Path) -> None:
    tape = tmp_path / "run.tape.gz"
    invoke("simulate", file, "--profile", "sampling", "--seed", 2, "--tape", tape)
    assert "all equal" in invoke("replay", tape).output


@pytest.mark.parametrize("kind", [".png", ".svg", ".html"])
def test_results_are_drawn(kind: str, file: Path, tmp_path: Path) -> None:
    invoke("simulate", file, "--seeds", 2, "--plot", tmp_path / f"p{kind}")
    assert (tmp_path / f"p{kind}").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--plot", "p.jpg"], "--plot p.jpg: must end in .html, .png, .svg, .pdf; did you mean '.png'?"),
        (["--plot", "nowhere/p.png"], "nowhere/p.png: its folder does not exist"),
        (["--json", "nowhere/r.json"], "nowhere/r.json: its folder does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_runs(
    words: list[str], printed: str, file: Path
) -> None:
    result = CliRunner().invoke(program, ["simulate", str(file), *words])
    assert isinstance(result.exception, SettingsError)
    assert (str(result.exception), result.stdout) == (printed, "")


def test_without_matplotlib_pictures_are_refused_before_anything_runs_and_pages_are_not(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(program, ["simulate", str(file), "--plot", "p.png"])
    assert "pip install '.[sim]'" in str(result.exception)
    assert result.stdout == ""
    invoke("simulate", file, "--seeds", 1, "--plot", tmp_path / "p.html")


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--profile", "lerning"], "did you mean 'learning'?"),
        (["--seeds", "2", "--seed", "3"], "either --seeds or --seed"),
        (["--tape", "t"], "a single run"),
        (["--seed", "-1"], "0 or more"),
    ],
)
def test_invalid_options_are_refused(words: list[str], printed: str, file: Path) -> None:
    assert printed in invoke("simulate", file, *words, code=2).output


def test_an_unknown_scenario_is_refused_with_the_nearest_name() -> None:
    result = CliRunner().invoke(program, ["simulate", "two-speed"])
    assert isinstance(result.exception, SettingsError)
    assert "did you mean 'two-speeds'?" in str(result.exception)


def test_shipped_scenarios_are_listed_with_a_sentence_each() -> None:
    lines = invoke("scenarios").output.splitlines()
    assert [line.split()[0] for line in lines] == list(shipped_scenarios())
    assert all(len(line.split()) > 4 for line in lines)


FEW: dict[str, list[str]] = {
    "gavel": ["workload.gavel.firstJob=3", "workload.gavel.lastJob=12"],
    "figure2": [],
    "ablations": ["measure.tasks=60", "measure.horizon=null"],
    "openb": ["measure.tasks=60", "measure.horizon=null"],
    "quincy-running": ["measure.tasks=40", "measure.horizon=null"],
}


@pytest.mark.long
@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_shipped_scenario_runs_and_is_drawn(name: str, tmp_path: Path) -> None:
    few = FEW.get(name, ["measure.tasks=100", "measure.horizon=null"])
    small = [word for change in few for word in ("--set", change)]
    page = tmp_path / "page.html"
    assert "±" in invoke("simulate", name, "--seeds", 2, *small, "--plot", page).output
    assert "<svg" in page.read_text()


@pytest.mark.long
def test_a_pipe_shows_progress_too(file: Path) -> None:
    command = [ECLECTUS, "simulate", file, "--set", "measure.tasks=10000000", "--seeds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        seen = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert seen.startswith("simulating: ")
    assert seen.endswith("\n")
    assert "\r" not in seen


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.long
def test_a_terminal_shows_progress_and_ctrl_c_prints_the_results_so_far(
    jobs: str, file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.json"
    endless = ["--set", "measure.tasks=10000000", "--profile", "learning", "--seeds", "2"]
    command = [ECLECTUS, "simulate", file, *endless, "--jobs", jobs, "--json", out]
    reader, writer = pty.openpty()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=writer, text=True, start_new_session=True
    ) as process:
        os.close(writer)
        seen = b""
        while b"tasks/s" not in seen:
            ready, _, _ = select.select([reader], [], [], 60)
            assert ready, "no progress within a minute"
            seen += os.read(reader, 4096)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process of the command
        printed, _ = process.communicate(timeout=60)
    os.close(reader)
    assert process.returncode == 130
    assert " to go" in seen.decode()
    assert "stopped after" in printed
    assert not json.loads(out.read_text())["runs"][0]["complete"]
