"""The kubectl plugin as krew installs it: an archive for each platform, and the manifest that names them.

An archive holds the packages of requirements/cli.lock for every Python that a user may have, and a program
that takes those of the Python that runs it. NumPy is left out: commands that ask a cluster do not need it.
"""

import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.layers import pack
from eclectus_e2e.testbed.images.python import linux_platforms, wheels_for
from eclectus_e2e.testbed.images.shell import run
from eclectus_hack.release.files import compress, sha256
from eclectus_hack.release.locks import without

LOCK = CHECKOUT / "requirements" / "cli.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAM = "kubectl-eclectus"
EVERY = "every"  # the folder of packages that run on each of PYTHONS
LAUNCHER = f"""\
#!/usr/bin/env python3
import os
import sys

folder = os.path.dirname(os.path.realpath(__file__))
python = "%d.%d" % sys.version_info[:2]
if python not in {PYTHONS}:
    sys.exit("error: kubectl eclectus needs Python {PYTHONS[0]} to {PYTHONS[-1]}; python3 is " + python)
sys.path[:0] = [os.path.join(folder, "python" + python), os.path.join(folder, "{EVERY}")]

from eclectus.cli.main import main

main()
"""


@dataclass(frozen=True)
class Platform:
    """A platform as krew names it, and the wheels that run on it."""

    system: str
    architecture: str
    wheels: tuple[str, ...]

    @property
    def name(self) -> str:
        """The platform in names of files."""
        return f"{self.system}-{self.architecture}"


PLATFORMS = (
    Platform("linux", "amd64", tuple(linux_platforms("amd64"))),
    Platform("linux", "arm64", tuple(linux_platforms("arm64"))),
    Platform("darwin", "amd64", ("macosx_12_0_x86_64",)),
    Platform("darwin", "arm64", ("macosx_12_0_arm64",)),
)


def archives(folder: Path, version: str, wheel: Path) -> Mapping[Platform, Path]:
    """Build the archive for each platform. Raises BuildError with pip's output."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        _download(scratch / EVERY, LOCK, PYTHONS[0], PLATFORMS[0])
        # What runs everywhere is downloaded once.
        every = [each for each in (scratch / EVERY).iterdir() if folder_of(each.name) == EVERY]
        compiled = scratch / "compiled.lock"
        names = {each.name.partition("-")[0].replace("_", "-").lower() for each in every}
        compiled.write_text(without(LOCK.read_text(), names))

        def archive(platform: Platform) -> Path:
            wheels = scratch / platform.name
            for python in PYTHONS:
                _download(wheels, compiled, python, platform)
            path = folder / f"{PROGRAM}-{version}-{platform.name}.tar.gz"
            return _pack([wheel, *every, *wheels.iterdir()], scratch / f"{platform.name}-tree", path)

        # Most of the time is waiting for the package index.
        with ThreadPoolExecutor(len(PLATFORMS)) as executor:
            return dict(zip(PLATFORMS, executor.map(archive, PLATFORMS), strict=True))


def manifest(version: str, archives: Mapping[Platform, Path], downloads: str) -> str:
    """The plugin's manifest for krew; `downloads` is the URL below which the archives will be served."""
    platforms = [
        {
            "selector": {"matchLabels": {"os": platform.system, "arch": platform.architecture}},
            "uri": f"{downloads.rstrip('/')}/{archive.name}",
            "sha256": sha256(archive),
            "bin": PROGRAM,
        }
        for platform, archive in archives.items()
    ]
    content = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "eclectus"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Why pods wait and how fast nodes are, by Eclectus",
            "description": (
                "Explains why pods and jobs wait, shows the learned speed of every node, DAG jobs and pools\n"
                "of the Eclectus scheduler, and serves a page with all of it.\n"
            ),
            "caveats": f"It needs Python {PYTHONS[0]} to {PYTHONS[-1]} as python3 on the PATH.\n",
            "platforms": platforms,
        },
    }
    return str(yaml.safe_dump(content, sort_keys=False))


def folder_of(wheel: str) -> str:
    """The folder of an archive that a wheel's packages belong in, by its tags (PEP 425)."""
    tags = wheel.removesuffix(".whl").split("-")[-3:]
    if tags[1] in ("none", "abi3"):
        return EVERY
    (minor,) = re.findall(r"^cp3(\d+)$", tags[0])
    return f"python3.{minor}"


def _download(folder: Path, lock: Path, python: str, platform: Platform) -> None:
    options = ("--quiet", "--no-deps", "--require-hashes", "--requirement", lock, "--dest", folder)
    run(sys.executable, "-m", "pip", "download", *options, *wheels_for(python, platform.wheels))


def _pack(wheels: Iterable[Path], tree: Path, archive: Path) -> Path:
    for each in wheels:
        with zipfile.ZipFile(each) as packed:
            packed.extractall(tree / folder_of(each.name))
    (tree / PROGRAM).write_text(LAUNCHER)
    (tree / PROGRAM).chmod(0o755)
    shutil.copy(CHECKOUT / "LICENSE", tree)
    tar = tree.with_suffix(".tar")
    pack(tree, tar)
    return compress(tar, archive)
