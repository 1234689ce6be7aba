"""Images built without Docker, run like containers: with their own root, user and environment."""

import json
import os
import signal
import subprocess
import tarfile
from functools import cache
from pathlib import Path

import pytest

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images import archives, layers
from eclectus_e2e.testbed.processes import wait_for
from eclectus_hack.images import images
from tar_files import unpack

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(1200),  # the first build downloads Debian and the locked packages
    pytest.mark.skipif(archives.unmet_requirement() is not None, reason=str(archives.unmet_requirement())),
]


class Unpacked:
    """An image unpacked into a folder, to run its programs with chroot."""

    def __init__(self, name: str, folder: Path) -> None:
        parts = folder / "parts"
        self.root = folder / "root"
        self.root.mkdir()
        with tarfile.open(archives.archive(name)) as tar:
            unpack(tar, parts)
        (manifest,) = json.loads((parts / "manifest.json").read_text())
        self.start = json.loads((parts / manifest["Config"]).read_text())["config"]
        layers.unpack([layers.Layer(parts / each, "") for each in manifest["Layers"]], self.root)

    def command(self, *arguments: str) -> list[str]:
        """A command line that runs a program in the image, with its user and environment only."""
        user = f"--userspec={self.start.get('User', '65532:65532')}"
        return ["env", "-i", *self.start.get("Env", []), "/usr/sbin/chroot", user, str(self.root), *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Each image by name, unpacked once."""
    return cache(lambda name: Unpacked(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize(
    ("name", "output"), [("scheduler", "learns how fast"), ("operator", "NodeProbe"), ("unit", "--units")]
)
def test_the_entry_point_runs_as_an_unprivileged_user(unpacked, name, output):
    image = unpacked(name)
    result = image.run(*image.start["Entrypoint"], *image.start["Cmd"])
    assert (result.returncode, result.stderr) == (0, "")
    assert output in result.stdout


@pytest.mark.parametrize(
    ("name", "packages"),
    [("scheduler", "aiohttp, numpy, uvloop"), ("operator", "aiohttp, kopf")],
)
def test_locked_packages_can_be_imported_and_are_compiled(unpacked, name, packages):
    code = (
        f"import {packages}, sys; assert aiohttp.__spec__.cached; print(sys.prefix, aiohttp.__spec__.cached)"
    )
    result = unpacked(name).run("python", "-c", code)
    assert result.stderr == ""
    prefix, cached = result.stdout.split()
    assert prefix == "/venv"
    assert (unpacked(name).root / cached.lstrip("/")).exists()


def test_the_scheduler_image_has_the_kubectl_plugin_and_the_scenarios(unpacked):
    image = unpacked("scheduler")
    assert "version" in image.run("kubectl-eclectus", "--version").stdout
    assert list(image.root.glob("venv/lib/python3*/site-packages/eclectus/scenarios/*.yaml"))


@pytest.mark.parametrize("name", ["scheduler", "operator", "unit"])
def test_only_temporary_folders_are_writable(unpacked, name):
    image = unpacked(name)
    writable = image.run("find", "/", "-xdev", "-writable", "-not", "-type", "l", "-not", "-perm", "-1777")
    assert writable.stdout == ""
    assert image.run("find", "/", "-xdev", "-perm", "/6000").stdout == ""


def test_pause_runs_until_a_signal(unpacked):
    with subprocess.Popen(unpacked("pause").command("/pause")) as process:
        assert wait_for(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "pause\n", 60)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_busybox_has_its_applets_by_name(unpacked):
    result = unpacked("busybox").run("sh", "-c", "seq 3 | wc -l; touch /tmp/mine && echo written")
    assert result.stdout.split() == ["3", "written"]


def test_an_archive_that_is_up_to_date_is_left_alone():
    first = os.stat(archives.archive("busybox"))
    assert os.stat(archives.archive("busybox")) == first


def test_the_command_prints_path_and_reference_of_each_archive(capsys):
    assert images(["pause", "busybox"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == "build/images/pause.tar"
    assert first.split()[-1] == "registry.k8s.io/pause:3.10"
    assert (CHECKOUT / second.split()[0]).exists()
