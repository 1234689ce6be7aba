"""A registry on this machine, and a release that is pushed to it."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.helm import HELM
from eclectus_hack.release.changelog import project_version
from eclectus_hack.release.command import FOLDER
from eclectus_hack.release.kubectl_plugin import PROGRAM, Platform
from eclectus_hack.release.registry import CRANE
from live_cluster import wait
from page_commands import in_blocks

DOWNLOADS = "https://downloads.example.org/v1"
KREW = GoPrograms(
    title="krew",
    build_time="a minute on two idle cores",
    folder="krew",
    packages=400,
    module=CHECKOUT / "e2e" / "krew",
    programs={"krew": "sigs.k8s.io/krew/cmd/krew"},
)


@dataclass(frozen=True)
class Released:
    """What `make release` has made and printed, and the registry that it was pushed to."""

    folder: Path
    registry: str
    printed: str
    version: str

    @property
    def architectures(self) -> list[str]:
        """What the images were built for."""
        index = json.loads((self.folder / "images" / "unit" / "index.json").read_text())
        return [each["platform"]["architecture"] for each in index["manifests"]]

    def listed(self, name: str) -> list[tuple[str, str]]:
        """(reference, digest) of each line of a list."""
        lines = (self.folder / name).read_text().splitlines()
        return [(reference, digest) for reference, _, digest in (line.partition("@") for line in lines)]


@contextmanager
def local_registry(directory: Path) -> Iterator[str]:
    """A registry that keeps what is pushed in a folder, while the `with` block runs."""
    (port,) = free_ports(1)
    disk = directory / "blobs"
    disk.mkdir(parents=True)
    command = [str(binaries(CRANE) / "crane"), "registry", "serve"]
    options = [f"--address=127.0.0.1:{port}", f"--disk={disk}"]
    running = processes.start("registry", [*command, *options], directory, dies_with_caller=True)
    try:
        wait("the registry answers", lambda: _answers(f"http://127.0.0.1:{port}/v2/"))
        yield f"localhost:{port}"
    finally:
        running.stop()


def rehearse(registry: str) -> Released:
    """Call what `make release` calls."""
    options = [f"--registry={registry}", f"--downloads={DOWNLOADS}"]
    command = [sys.executable, "-m", "eclectus_hack", "release", *options]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Released(FOLDER, registry, done.stdout, project_version())


def crane(*arguments: str | Path) -> str:
    """What crane prints."""
    return _printed(binaries(CRANE) / "crane", *arguments)


def krew_installed(released: Released, platform: Platform, root: Path) -> Path:
    """The plugin's program, installed by krew into a folder from the release's manifest, as on a platform."""
    archive = released.folder / f"{PROGRAM}-{released.version}-{platform.name}.tar.gz"
    given = ("install", f"--manifest={released.folder / 'eclectus.yaml'}", f"--archive={archive}")
    environment = {**os.environ, "KREW_ROOT": str(root), "KREW_NO_UPGRADE_CHECK": "1"}
    environment |= {"KREW_OS": platform.system, "KREW_ARCH": platform.architecture}
    _printed(binaries(KREW) / "krew", *given, environment=environment)
    return root / "bin" / PROGRAM


def helm(*arguments: str | Path, home: Path, kubeconfig: Path | None = None) -> str:
    """What helm prints, with its files in a folder of the test."""
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig or home / "none")}
    return _printed(binaries(HELM) / "helm", *arguments, environment=environment)


def install_words(page: str, registry: str) -> list[str]:
    """The words after `helm` of the first command of a page that installs the chart from a registry."""
    found = next(named for named in in_blocks() if named.page == page and "oci://REGISTRY/" in named.command)
    words = [word.replace("REGISTRY", registry) for word in found.words]
    return [*words[1:], "--plain-http"]  # the one difference of a registry without TLS


def _printed(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False
