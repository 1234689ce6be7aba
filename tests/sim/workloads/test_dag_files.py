"""Files of jobs with stages: what is read, and the messages for invalid files."""

from __future__ import annotations

import json
from dataclasses import fields
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema
import pytest
import yaml

from eclectus.config.settings_reading import camel
from eclectus.model.errors import SettingsError
from eclectus.sim.base.work import Dag
from eclectus.sim.scenario import Scenario, parse, shipped_scenarios
from eclectus.sim.workloads.dags import JobField, StageField, read_dags
from eclectus_e2e.paths import CHECKOUT
from short_scenarios import document, scenario
from staged_jobs import DIAMOND, job, written

SCHEMA = json.loads((CHECKOUT / "docs" / "dags.schema.json").read_text())


def refusal(workload: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as refused:
        scenario(workload={"dags": workload}, measure={})
    return str(refused.value)


def stages_of(scenario: Scenario) -> dict[str, Dag]:
    jobs = [arrival.dag for arrival in islice(scenario.plan.arrivals(1), 99)]
    return {dag.name: dag for dag in jobs if dag is not None}


def with_stage(**stage: Any) -> dict[str, Any]:
    return {"name": "j", "stages": [{"name": "a", "seconds": 1, **stage}]}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (with_stage(tasks=0), "jobs.json: jobs[0].stages[0].tasks: 0 is too small; at least 1"),
        (with_stage(tasks=1.5), "jobs[0].stages[0].tasks: must be a whole number"),
        (with_stage(seconds=0), "jobs[0].stages[0].seconds: 0 s is too small"),
        (with_stage(seconds="soon"), "jobs[0].stages[0].seconds: 'soon' is not a duration"),
        (with_stage(second=1), "jobs[0].stages[0].second: unknown field; did you mean 'seconds'?"),
        (with_stage(parents=["z"]), "job 'j': stage 'a' has a parent 'z' that is not a stage"),
        (with_stage(requests={"cpu": "many"}), "jobs[0].stages[0].requests.cpu: 'many' is not"),
        ({"name": "j"}, "jobs[0].stages: is missing"),
        ({"name": "j", "stages": []}, "job 'j' has no stage"),
        (with_stage(arrival=-1), "jobs[0].stages[0].arrival: unknown field"),
        (with_stage() | {"arrival": -1}, "jobs[0].arrival: -1 s is too small"),
    ],
)
def test_an_invalid_job_is_refused_with_file_field_and_reason(
    bad: dict[str, Any], words: str, tmp_path: Path
) -> None:
    assert words in refusal(written(tmp_path, bad))


def test_names_of_jobs_are_unique(tmp_path: Path) -> None:
    workload = written(tmp_path, with_stage(), with_stage())
    assert "jobs[1].name: 'j' is already used by jobs[0]" in refusal(workload)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "truncated"),
        (b'{"jobs": NaN}', "invalid"),
        (b"[]", "must be a mapping"),
        (b'{"jobs": []}', "no job"),
    ],
)
def test_an_invalid_file_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(data)
    assert words in refusal({"file": str(tmp_path / "x.json")})
    assert "cannot be read" in refusal({"file": str(tmp_path / "y.json")})


def test_stages_have_the_requests_and_classes_of_the_file(tmp_path: Path) -> None:
    stages = [
        {"name": "a", "seconds": "1m", "requests": {"cpu": "500m", "memory": "1Gi"}, "workload": "etl"},
        {"name": "b", "seconds": 2, "parents": ["a"]},
    ]
    workload = written(tmp_path, {"name": "j", "stages": stages}, name="jobs.json.gz")
    cluster = {"groups": [{"resources": {"cpu": 2, "memory": "4Gi"}}]}
    for by, other in (("job", "j"), ("stage", "j-b")):
        read = scenario(workload={"dags": workload | {"classes": by}}, cluster=cluster, measure={})
        first, second = stages_of(read)["j"].stages
        assert (first.work_class.name, second.work_class.name, first.seconds) == ("etl", other, 60.0)
        assert first.work_class.spec.requests == (("cpu", 500), ("memory", 2**30))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"format": "tpch"}, "dags.graphs: format: tpch needs graphs, size and cores"),
        ({"cores": 50}, "dags.cores: is valid only with format: tpch"),
        ({"machineMemory": "1Gi"}, "dags.machineMemory: is valid only with format: alibaba"),
        ({"tasks": {}}, "dags.tasks: stages of this format have requests of their own"),
        ({"rate": 1}, "dags.rate: arrivals: poisson needs either rate or load"),
        ({"arrivals": "poisson"}, "dags.rate: arrivals: poisson needs either rate or load"),
        ({"arrivals": "poisson", "rate": 1, "load": 1}, "dags.rate: arrivals: poisson needs either"),
        ({"stretch": 2}, "dags.stretch: is valid only with arrivals: recorded"),
        ({"arrivals": "recorded"}, "dags.arrivals: {file} has no arrival time of job 'j'"),
        ({"sizes": {"mean": 2}}, "dags.sizes.mean: stages have their own means"),
        ({"arrivals": "at once"}, "dags.arrivals: 'at once' is unknown; known are"),
    ],
)
def test_invalid_settings_are_refused(said: dict[str, Any], words: str, tmp_path: Path) -> None:
    workload = written(tmp_path, job("j", *DIAMOND))
    assert words.format(file=workload["file"]) in refusal(workload | said)


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    text = shipped_scenarios()["dags"].with_suffix(".json").read_bytes()
    jsonschema.validate(json.loads(text), SCHEMA)
    assert len(read_dags(text, classes="job")) == 4
    for kind, name in ((JobField, "job"), (StageField, "stage")):
        assert {camel(field.name) for field in fields(kind)} == set(SCHEMA["$defs"][name]["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"jobs": [with_stage(tasks=0)]}, SCHEMA)


# -- published formats, in small -------------------------------------------------------------------------

GRAPHS = "graphs:\n- name: Q1\n  graph:\n  - {name: 0, children: [1]}\n  - {name: 1}\n"
PROFILE = [
    {"stage_id": 1, "stage_name": "s", "num_tasks": 1, "average_runtime_ms": 500.0},
    {"stage_id": 0, "stage_name": "s", "num_tasks": 3, "average_runtime_ms": 2000.0},
]


def tpch(folder: Path, graphs: str = GRAPHS, profile: Any = PROFILE, **more: Any) -> dict[str, Any]:
    (folder / "graphs.yaml").write_text(graphs)
    (folder / "profiles.json").write_text(json.dumps({"tpch_q1_50g_maxCores_75": profile}))
    return {
        "file": str(folder / "profiles.json"),
        "format": "tpch",
        "graphs": str(folder / "graphs.yaml"),
        "size": "50g",
        "cores": 75,
        **more,
    }


def test_a_tpch_query_is_read_from_its_profile_and_its_graph(tmp_path: Path) -> None:
    dag = stages_of(scenario(workload={"dags": tpch(tmp_path)}, measure={}))["Q1"]
    assert [(stage.name, stage.tasks, stage.seconds, stage.parents) for stage in dag.stages] == [
        ("0", 3, 2.0, ()),
        ("1", 1, 0.5, (0,)),
    ]
    assert dag.stages[0].work_class.spec.requests == (("cpu", 1000),)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "51g"}, "dags.size: there is no profile tpch_q1_51g_maxCores_75; sizes are 50g, cores 75"),
        ({"cores": 50}, "dags.cores: there is no profile tpch_q1_50g_maxCores_50"),
        ({"queries": ["Q2"]}, "dags.queries[0]: 'Q2' is not a query; did you mean 'Q1'?"),
        ({"graphs": GRAPHS.replace("[1]", "[7]")}, "Q1: stage 0 has a child 7 that is not a stage"),
        ({"graphs": GRAPHS.replace("name: 1}", "name: 1, children: [0]}")}, "form a cycle"),
        ({"graphs": "graphs: [{name: Q1}]"}, "missing required field `graph`"),
        ({"profile": PROFILE[:1]}, "Q1: the profile and the graph have different stages"),
        ({"profile": [PROFILE[0], PROFILE[1] | {"num_tasks": 0}]}, "Expected `int` >= 1"),
        ({"profile": [PROFILE[0], PROFILE[1] | {"average_runtime_ms": 0}]}, "Expected `float` > 0"),
    ],
)
def test_an_invalid_tpch_file_is_refused_with_the_reason(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    made = {key: changes[key] for key in ("graphs", "profile") if key in changes}
    said = {key: value for key, value in changes.items() if key not in made}
    assert words in refusal(tpch(tmp_path, **made) | said)


ALIBABA = {
    "job": "j1",
    "missing_parents": 0,
    "tasks": [
        {"id": 2, "instances": 1.0, "start_time": 40, "duration": 3, "cpu": 50.0, "mem": 0.0, "parents": [1]},
        {"id": 1, "instances": 4.0, "start_time": 30, "duration": 5, "cpu": 100.0, "mem": 0.5, "parents": []},
    ],
}  # fmt: skip


def alibaba(folder: Path, *jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    (folder / "jobs.jsonl").write_text("\n".join(json.dumps(each) for each in jobs) + "\n\n")
    return {"file": str(folder / "jobs.jsonl"), "format": "alibaba", **more}


def test_a_job_of_alibaba_s_trace_has_its_recorded_requests(tmp_path: Path) -> None:
    later = ALIBABA | {"job": "j2", "tasks": [ALIBABA["tasks"][1] | {"start_time": 530}]}  # type: ignore[index]
    workload = alibaba(tmp_path, later, ALIBABA, machineMemory="100Gi", arrivals="recorded", stretch=0.1)
    read = scenario(
        workload={"dags": workload}, cluster={"groups": [{"resources": {"cpu": 8, "memory": "100Gi"}}]}
    )
    arrivals = list(read.plan.arrivals(1))
    assert [(each.at, each.dag.name if each.dag else "") for each in arrivals] == [(0.0, "j1"), (50.0, "j2")]
    dag = stages_of(read)["j1"]
    assert [(stage.name, stage.tasks, stage.seconds, stage.parents) for stage in dag.stages] == [
        ("1", 4, 5.0, ()),
        ("2", 1, 3.0, (0,)),
    ]
    assert dag.stages[0].work_class.spec.requests == (("cpu", 1000), ("memory", 2**29))
    assert dag.stages[1].work_class.spec.requests == (("cpu", 500),)
    plain = scenario(workload={"dags": workload | {"tasks": {}}}, cluster={"groups": [{"slots": 4}]})
    assert stages_of(plain)["j1"].stages[1].work_class.spec.requests == (("cpu", 1000),)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instances": 1.5}, "line 2: job 'j1': task 1 has 1.5 instances"),
        ({"duration": 0}, "line 2: Expected `float` > 0"),
        ({"parents": [9]}, "line 2: job 'j1': stage '1' has a parent '9' that is not a stage"),
        ({"parents": [2]}, "line 2: job 'j1': its stages form a cycle"),
    ],
)
def test_an_invalid_line_is_refused_with_its_number(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    bad = ALIBABA | {"tasks": [ALIBABA["tasks"][0], ALIBABA["tasks"][1] | change]}  # type: ignore[index]
    assert words in refusal(alibaba(tmp_path, ALIBABA | {"job": "j0"}, bad))


def test_an_invalid_machine_memory_is_refused(tmp_path: Path) -> None:
    assert "dags.machineMemory: 'much' is not" in refusal(alibaba(tmp_path, ALIBABA, machineMemory="much"))


def test_the_examples_of_the_documentation_are_valid(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "simulator.md").read_text()
    section = page.partition("## Jobs that are graphs of stages")[2].partition("## The orders")[0]
    text = next(part for part in section.split("\n\n") if part.lstrip().startswith('{"jobs"'))
    jsonschema.validate(json.loads(text), SCHEMA)
    assert [dag.path for dag in read_dags(text.encode(), classes="stage")] == [6.5]
    (tmp_path / "dags.json").write_text(text)
    workload = yaml.safe_load(dedent(section.lstrip("\n").partition("\n\n")[0]))["workload"]
    machines = {"groups": [{"resources": {"cpu": 8, "memory": "8Gi"}}]}
    asked = document(workload=workload, cluster=machines, measure=None)
    read = parse(yaml.safe_dump(asked), tmp_path)
    shrunk = 2  # a tenth of 8 and of 4 tasks, at least one each
    assert (read.tasks, len({arrival.at for arrival in read.plan.arrivals(1)})) == (200 * shrunk, 200)
