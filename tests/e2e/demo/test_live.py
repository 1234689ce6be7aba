"""The stream experiment on a real control plane, short."""

import json

import pytest

from eclectus_e2e.demo import command
from eclectus_e2e.demo.command import demo


@pytest.mark.live
@pytest.mark.slow
# uvloop warns about a connection that was cut off during its TLS handshake and closed with the loop.
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_quick_demo_places_every_pod_under_the_charts_own_rights(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    rivals = "eclectus,kube-scheduler,eclectus-uniform"
    assert demo(["--quick", "--load", "0.3", "--schedulers", rivals]) == 0
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["sound"]
    for name in rivals.split(","):
        one = written["schedulers"][name]
        assert (one["lost"], one["doubled"], one["overcommitted"], one["violations"]) == (0, 0, 0, 0)
        assert one["pods"] > 50
        assert 0 < one["response_seconds"]["p50"] <= one["response_seconds"]["p99"]
    for name in ("eclectus", "eclectus-uniform"):
        learning = written["schedulers"][name]["learning"]
        # Every pod is a sample, though those of the last pods may come too late; nothing was known before.
        assert 0.9 * one["pods"] < sum(node["samples"] for node in learning["nodes"]) <= one["pods"]
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "cluster").exists()
    assert "Response time" in capsys.readouterr().out
