"""The perturbation experiment on a small cluster, with the permissions of the chart."""

import json

import pytest
from rich.console import Console

from eclectus_bench.experiments.perturbations.experiment import perturbations
from eclectus_bench.experiments.perturbations.plan import quick_settings
from eclectus_e2e.demo.experiment import run_experiment


def is_learned(interval):
    """All pairs but one: with so few pairs, each right with probability 99 % at best, 95 % would be all."""
    return interval.pairs > 2 and interval.share >= 1 - 1 / interval.pairs


@pytest.mark.live
@pytest.mark.slow  # two minutes, and `make demo-full` runs it whole
@pytest.mark.alone
# uvloop warns about a connection that was cut off during its TLS handshake and closed with the loop.
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_swap_is_recovered_from_and_a_frozen_node_returns_by_probes_alone(tmp_path):
    found = run_experiment(perturbations(quick_settings(seed=1)), tmp_path, Console(width=120))
    assert found.sound
    assert is_learned(found.learnt)
    assert is_learned(found.recovered)
    assert found.recovered.seconds is not None  # how soon is not judged here
    assert found.frozen.last_start_seconds <= found.frozen.cut_off_seconds
    assert found.frozen.dead_seconds is not None
    assert found.frozen.starts_while_out == 0
    assert found.frozen.back_seconds is not None
    assert found.frozen.probes > 0
    assert found.idle.probes > 0
    assert found.idle.pods == 0
    assert found.probes.spare_share <= 0.1
    assert json.loads((tmp_path / "perturbations.json").read_text())["wanted"]
    assert (tmp_path / "perturbations.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "cluster").exists()
