"""The short demo and the stream experiment on a real control plane, with their quickest settings."""

import json
from argparse import Namespace

import pytest
from rich.console import Console

from eclectus_bench.experiments.data import TWICE, data_experiment, data_plan
from eclectus_bench.experiments.stragglers import QUICK_JOBS, straggler_experiment, straggler_plan
from eclectus_e2e.demo import command
from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.experiment import run_experiment
from eclectus_e2e.demo.schedulers import DELAY, NO_DELAY

# uvloop warns about a connection that was cut off during its TLS handshake and closed with the loop.
pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default::ResourceWarning"),
]


def run(tmp_path, monkeypatch, arguments, report_file):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    assert demo([*arguments.split(), "--quick", "--loads", "0.3"]) == 0
    written = json.loads((tmp_path / report_file).read_text())
    assert written["sound"]
    for one in written["schedulers"].values():
        assert (one["lost"], one["doubled"], one["overcommitted"], one["violations"]) == (0, 0, 0, 0)
        assert one["pods"] > 50
        assert 0 < one["response_seconds"]["p50"] <= one["response_seconds"]["p99"]
    assert not (tmp_path / "cluster").exists()
    return written


def test_the_quick_demo_places_every_pod_and_ends_with_a_sentence(tmp_path, monkeypatch, capsys):
    written = run(tmp_path, monkeypatch, "short", "report.json")
    assert list(written["schedulers"]) == ["eclectus", "kube-scheduler"]
    assert all(0 <= one["strangers_cores"] < 64 for one in written["loads"]["0.3"]["runs"])
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    text = capsys.readouterr().out
    parts = (
        "Eclectus beside kube-scheduler: about",
        "6 s: the fast nodes become four times slower",
        "mean before the speeds change",
        "others' cores",
        written["compared"]["0.3"]["sentence"][:40],
        "make demo-full",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_is_learned_comes_from_every_pod(tmp_path, monkeypatch, capsys):
    names = "eclectus,eclectus-uniform"
    written = run(tmp_path, monkeypatch, f"stream --seconds 5 --schedulers {names}", "stream.json")
    for name in names.split(","):
        one = written["schedulers"][name]
        # Every pod is a sample, though those of the last pods may come too late; nothing was known before.
        assert 0.9 * one["pods"] < sum(node["samples"] for node in one["learning"]["nodes"]) <= one["pods"]
    assert (tmp_path / "stream.png").read_bytes().startswith(b"\x89PNG")
    assert "Response time" in capsys.readouterr().out


def test_batches_run_on_their_scarce_nodes_alone(tmp_path, monkeypatch, capsys):
    written = run(tmp_path, monkeypatch, "scarce --seconds 12 --schedulers eclectus", "scarce.json")
    groups = written["schedulers"]["eclectus"]["groups"]
    parts = [groups[name]["pods"] for name in ("free", "preferring", "constrained")]
    assert min(parts) > 0
    assert sum(parts) == written["schedulers"]["eclectus"]["pods"]
    assert (tmp_path / "scarce.png").read_bytes().startswith(b"\x89PNG")
    assert "constrained pods: mean wait" in capsys.readouterr().out


def test_pods_start_beside_their_data_where_they_wait_for_it(tmp_path, capsys):
    options = Namespace(loads=[0.3], pairs=1, seconds=6.0, seed=1)
    report = run_experiment(data_experiment(data_plan(options, TWICE), "data"), tmp_path, Console(width=120))
    assert report.sound
    found = report.compared["0.3"].located
    assert found[DELAY].mean > 0.9
    assert found[NO_DELAY].mean < 0.4
    assert (tmp_path / "data.png").read_bytes().startswith(b"\x89PNG")
    assert "starts at the data" in capsys.readouterr().out


def test_jobs_with_and_without_copies_end_and_are_compared(tmp_path, capsys):
    plan = straggler_plan(seed=1, pairs=1, jobs=QUICK_JOBS)
    report = run_experiment(straggler_experiment(plan), tmp_path, Console(width=120))
    assert report.sound
    late, plain = report.halves
    assert late.copies > 0
    assert plain.copies == 0
    assert 0 < late.job_seconds.mean < plain.job_seconds.mean
    assert (tmp_path / "stragglers.png").read_bytes().startswith(b"\x89PNG")
    assert "time of jobs with copies over without" in capsys.readouterr().out


@pytest.mark.alone
def test_dag_jobs_end_under_carbyne_and_under_kube_scheduler(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    assert demo(["dags", "--quick"]) == 0
    written = json.loads((tmp_path / "dags.json").read_text())
    assert list(written["schedulers"]) == ["eclectus-carbyne", "kube-scheduler"]
    for one in written["schedulers"].values():
        assert (one["lost"], one["doubled"], one["overcommitted"], one["early"]) == (0, 0, 0, 0)
        assert len(one["jobs"]) == 4
    assert (tmp_path / "dags.png").read_bytes().startswith(b"\x89PNG")
    assert "Job completion time" in capsys.readouterr().out
