"""What commands share that read a cluster: the namespace, and a message while they wait."""

import asyncio

import pytest
import yaml

from eclectus.cli import cluster_commands as cluster
from eclectus.kubeclient.kubeconfigs import default_namespace


def test_the_namespace_is_the_contexts(kubeconfig, tmp_path, monkeypatch):
    assert default_namespace(kubeconfig, None) == "mine"
    assert default_namespace(kubeconfig, "other") == "default"
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{kubeconfig}")
    assert default_namespace(None, None) == "mine"
    bare = tmp_path / "bare"
    bare.write_text(yaml.safe_dump({"contexts": [{"name": "a", "context": {}}], "current-context": "a"}))
    assert default_namespace(bare, None) == "default"


async def answered_after(event):
    await event.wait()
    return 7


def test_a_long_wait_is_reported_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "REPORT_SECONDS", 0.01)

    async def scenario():
        event = asyncio.Event()
        waiting = asyncio.ensure_future(cluster.awaited(answered_after(event), "listing the pods"))
        reports = 0
        while reports < 2:
            await asyncio.wait({waiting}, timeout=0.01)
            reports += capsys.readouterr().err.count("listing the pods: 0 s so far\n")
        event.set()
        return await waiting

    assert asyncio.run(scenario()) == 7


def test_a_short_wait_is_not_reported(capsys):
    async def scenario():
        event = asyncio.Event()
        event.set()
        return await cluster.awaited(answered_after(event), "listing")

    assert asyncio.run(scenario()) == 7
    assert capsys.readouterr().err == ""


def test_an_error_is_passed_on():
    async def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(cluster.awaited(fails(), "listing"))
