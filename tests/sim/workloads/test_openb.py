"""The openb workload: the published protocol, step by step, and a whole run against a simple model."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from builders import make_node, make_task
from checked_worlds import build_checked, run_checked
from eclectus.cli.main import program
from eclectus.model.commands import Bind
from eclectus.model.errors import SettingsError
from eclectus.model.events import BindRefused, NodeSeen, TaskSeen
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.results import RunResult
from eclectus.sim.scenario import Scenario, load, parse, shipped_scenarios
from eclectus.sim.world.run_record import AllocationCurve
from published_data import published
from short_scenarios import document, place

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
PODS = HEAD + "c,1000,1,1,500,\na,2000,2,0,0,\nb,4000,3,2,1000,T4|P100|T4\n"


def filling(folder: Path, pods: str = PODS, milli: int = 10_000, **settings: object) -> Scenario:
    (folder / "pods.csv").write_text(pods)
    group = {"resources": {"cpu": 64, "memory": "64Gi", "gpu-milli": milli}, "labels": {"gpu-model": "T4"}}
    fields = document(
        cluster={"groups": [group]},
        workload={"openb": {"file": "pods.csv", **settings}},
        profiles=place("scaled-best-fit"),
        measure=None,
    )
    return parse(yaml.safe_dump(fields), folder)


@pytest.fixture(scope="module")
def small() -> Scenario:
    return load(shipped_scenarios()["openb"])


# -- the stream ------------------------------------------------------------------------------------


def test_every_pod_arrives_once_in_random_order_and_then_pods_are_drawn(small: Scenario) -> None:
    count = len((shipped_scenarios()["openb"].parent / "gpu-pods.csv").read_text().splitlines()) - 1
    first, second, again = (list(small.arrivals(seed)) for seed in (1, 2, 1))
    assert first == again
    kinds = [Counter(job.work_class for job in jobs[:count]) for jobs in (first, second)]
    assert kinds[0] == kinds[1]
    assert [job.work_class for job in first[:count]] != [job.work_class for job in second[:count]]
    assert [job.at for job in first[:4]] == [0.0, 1.0, 2.0, 3.0]
    assert len(first) > count
    assert small.tasks == pytest.approx(len(first), rel=0.1)


def test_pods_are_appended_until_one_more_gpu_would_exceed_the_demand(tmp_path: Path) -> None:
    totals = set()
    for seed in range(40):
        asked = [
            dict(job.work_class.spec.requests).get("gpu-milli", 0) for job in filling(tmp_path).arrivals(seed)
        ]
        assert sorted(asked[:3]) == [0, 500, 2000]
        totals.add(sum(asked))
    assert totals == {
        12_500,
        13_000,
        13_500,
        14_000,
    }  # the last may request two GPUs, of which one is counted


def test_a_pod_has_the_requests_of_its_line(tmp_path: Path) -> None:
    specs = {job.work_class.name: job.work_class.spec for job in filling(tmp_path).arrivals(0)}
    assert dict(specs["no-gpu"].requests) == {"cpu": 2000, "memory": 2 * 2**20}
    assert dict(specs["share"].requests) == {"cpu": 1000, "memory": 2**20, "gpu-milli": 500}
    assert dict(specs["whole"].requests) == {"cpu": 4000, "memory": 3 * 2**20, "gpu-milli": 2000}
    assert specs["share"].affinity is None
    (term,) = specs["whole"].affinity or ()
    (requirement,) = term.expressions
    assert (requirement.key, requirement.op, requirement.values) == ("gpu-model", "In", ("P100", "T4"))
    assert all(spec.long_running for spec in specs.values())


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ("name,cpu_milli,memory_mib,num_gpu,gpu_spec\n", "pods.csv has no column 'gpu_milli'"),
        (PODS + "d,1,1,1,x,\n", "pods.csv, line 5: gpu_milli is 'x': expected `int`"),
        (PODS + "d,1,1,1,1001,\n", "pods.csv, line 5: gpu_milli is '1001': expected `int` <= 1000"),
        (PODS + "d,1,1,2,500,\n", "pods.csv, line 5: shares of 2 GPUs: a pod can share only one GPU"),
        (PODS + "d,1,1,0,500,\n", "pods.csv, line 5: num_gpu is 0 and gpu_milli is 500"),
        (HEAD + "d,1,1,0,0,\n", "pods.csv has no pod that requests GPUs"),
    ],
)
def test_an_invalid_list_of_pods_is_refused_with_the_line(pods: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^workload\.openb\.file: ") as refused:
        filling(tmp_path, pods)
    assert words in str(refused.value)


def test_a_list_without_gpu_specs_is_read_as_pods_that_take_any_model(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\nc,1000,1,1,500,LS\na,2000,2,0,0,BE\n"
    arrivals = list(filling(tmp_path, pods).arrivals(0))
    assert {each.work_class.name for each in arrivals} == {"share", "no-gpu"}
    assert all(each.work_class.spec.affinity is None for each in arrivals)


def test_every_published_list_of_pods_is_read(tmp_path: Path) -> None:
    """Those of the folder, and each of them without its column gpu_spec, as four lists were published."""
    lists = sorted(published("openb/pods").glob("openb_pod_list_*.csv.gz"))
    assert lists
    for path in lists:
        with gzip.open(path, "rt", newline="") as file:
            given = list(csv.DictReader(file))
        for column in ("no column is left out", "gpu_spec"):
            kept = [name for name in given[0] if name != column]
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, kept, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(given)
            few = filling(tmp_path, text.getvalue(), milli=1000, demand=0.01)
            assert sum(1 for _ in few.arrivals(0)) == len(given)


def test_a_cluster_without_gpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"workload\.openb: the cluster has no GPUs"):
        filling(tmp_path, milli=0)


# -- the curve -------------------------------------------------------------------------------------


def test_the_curve_is_the_mean_allocation_over_the_tasks_at_each_whole_per_cent() -> None:
    node = make_node("n", devices=2)
    curve = AllocationCurve("gpu-milli", {"n": Machine(node, "g", 1.0, {})})
    tasks = [
        make_task(name, device_milli=milli) for name, milli in (("a", 500), ("b", 3), ("c", 2), ("d", 900))
    ]
    a, b, c, d = tasks
    curve.record_step(0.0, [NodeSeen(node), TaskSeen(a)], [Bind(a.uid, "default", "a", "n", "p")])
    curve.record_step(1.0, [TaskSeen(b)], [])
    curve.record_step(2.0, [TaskSeen(c)], [Bind(c.uid, "default", "c", "n", "p")])
    assert curve.curve == {25: pytest.approx(100 * (500 + 500 + 502) / 3 / 2000)}
    curve.record_step(3.0, [BindRefused(c.uid, "n", "no"), TaskSeen(d)], [])
    assert curve.curve[70] == 25.0


# -- whole runs ------------------------------------------------------------------------------------


@dataclass
class SimpleNode:
    """A node in the terms of the protocol."""

    name: str
    cpu: int
    memory: int
    gpus: list[int]
    model: str
    held: list[str] = field(default_factory=list)

    def takes(self, pod: dict[str, str]) -> bool:
        number, milli = int(pod["num_gpu"]), int(pod["gpu_milli"])
        return (
            self.cpu >= int(pod["cpu_milli"])
            and self.memory >= int(pod["memory_mib"])
            and (not pod["gpu_spec"] or self.model in pod["gpu_spec"].split("|"))
            and sum(gpu >= milli for gpu in self.gpus) >= number
        )

    def score(self, pod: dict[str, str]) -> int:
        cpu = self.cpu - int(pod["cpu_milli"])
        gpu = sum(self.gpus) - int(pod["num_gpu"]) * int(pod["gpu_milli"])
        return int(100 * (1 - (0.5 * cpu / 128000 + 0.5 * gpu / 8000)))

    def take(self, pod: dict[str, str]) -> None:
        self.cpu -= int(pod["cpu_milli"])
        self.memory -= int(pod["memory_mib"])
        milli = int(pod["gpu_milli"])
        for _ in range(int(pod["num_gpu"])):
            fullest = min(gpu for gpu in self.gpus if gpu >= milli)
            self.gpus[self.gpus.index(fullest)] -= milli


def rows(name: str) -> Iterator[dict[str, str]]:
    head, *lines = (shipped_scenarios()["openb"].parent / name).read_text().splitlines()
    return (dict(zip(head.split(","), line.split(","), strict=True)) for line in lines)


def as_row(spec: Any) -> dict[str, str]:
    asked = dict(spec.requests)
    milli = asked.get("gpu-milli", 0)
    models = spec.affinity[0].expressions[0].values if spec.affinity else ()
    return {
        "cpu_milli": str(asked.get("cpu", 0)),
        "memory_mib": str(asked.get("memory", 0) // 2**20),
        "num_gpu": str(-(-milli // 1000)),
        "gpu_milli": str(min(milli, 1000)),
        "gpu_spec": "|".join(models),
    }


def test_best_fit_places_every_pod_as_the_simple_model_does(small: Scenario) -> None:
    profile = next(each for each in small.profiles if each.name == "scaled-best-fit")
    world = build_checked(small, profile, 3)
    nodes = [
        SimpleNode(
            row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), [1000] * int(row["gpu"]), row["model"]
        )
        for row in rows("gpu-nodes.csv")
    ]
    seen: list[tuple[str, str]] = []

    def on_step(now: float, events: Any, commands: Any) -> None:
        for event in events:
            if isinstance(event, TaskSeen) and not event.task.node:
                bound = next((each.node for each in commands if isinstance(each, Bind)), "")
                pod = as_row(event.task.spec)
                fitting = [node for node in nodes if node.takes(pod)]
                best = max(fitting, key=lambda node: node.score(pod), default=None)
                if best is not None:
                    best.take(pod)
                seen.append((bound, best.name if best else ""))

    world.on_step = on_step
    assert world.run()
    assert [ours for ours, _ in seen] == [theirs for _, theirs in seen]
    assert world.record.dropped == sum(not ours for ours, _ in seen) > 0


@pytest.fixture(scope="module")
def random_run(small: Scenario) -> RunResult:
    return run_checked(small, small.profiles[0], 1)


def test_the_allocation_follows_the_requests_until_the_cluster_is_full(random_run: RunResult) -> None:
    curve = random_run.allocation
    assert random_run.complete
    assert curve[20] == pytest.approx(20, abs=0.5)
    assert max(curve) in (129, 130)
    assert curve[max(curve)] < 100
    assert [*curve] == sorted(curve)
    assert random_run.response.count == 0
    assert random_run.wait.largest == 0.0


def say(*words: object) -> str:
    result = CliRunner().invoke(program, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_the_json_and_the_plot_show_the_allocation(tmp_path: Path) -> None:
    out, picture = tmp_path / "r.json", tmp_path / "r.svg"
    chosen = ("--profile", "random", "--profile", "best-fit", "--seeds", 2)
    printed = say("simulate", "openb", *chosen, "--json", out, "--plot", picture).splitlines()
    assert printed[3].split()[-9:] == ["dropped", "25", "50", "80", "90", "100", "110", "120", "130"]
    assert [line.split()[0] for line in printed[4:6]] == ["random", "best-fit"]
    report = json.loads(out.read_text())
    assert report["load"] is None
    assert report["summaries"][0]["allocation"]["50"]["mean"] == pytest.approx(50, abs=1)
    assert "requested" in picture.read_text()


def test_a_tape_of_it_replays_with_its_devices(tmp_path: Path) -> None:
    tape = tmp_path / "t.tape"
    say("simulate", "openb", "--profile", "random", "--seed", 1, "--tape", tape)
    assert '"devices":[1]' in tape.read_text()
    say("replay", tape)
