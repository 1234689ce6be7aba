"""The base layer: Debian with Python, installed by debootstrap.

The release is the machine's own, from the mirror that its apt uses, which is known to be reachable.
For another architecture the kernel runs the programs of its packages by QEMU.
"""

import platform
import shutil
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.testbed.images.architectures import own_architecture
from eclectus_e2e.testbed.images.layers import Layer, cached
from eclectus_e2e.testbed.images.shell import run, run_inside

PACKAGES = ("python3-minimal", "libpython3-stdlib", "ca-certificates")
MIN_PYTHON_VERSION = (3, 11)  # pyproject.toml: requires-python
# Not needed in a container, or specific to the machine and the day of the build.
DROPPED = (
    *(f"usr/share/{name}" for name in ("bash-completion", "doc", "info", "locale", "man")),
    *(f"var/{name}" for name in ("cache", "lib/apt", "log")),
    *(f"etc/{name}" for name in ("hostname", "resolv.conf", "shadow", "shadow-")),
)
# Ubuntu's mirrors have amd64 alone, and its ports all others.
UBUNTU = {"amd64": "http://archive.ubuntu.com/ubuntu", "arm64": "http://ports.ubuntu.com/ubuntu-ports"}


def base_layer(architecture: str = "") -> Layer:
    """Debian with Python, of this machine's architecture by default. Needs root and CAP_SYS_ADMIN.

    The first build takes up to three minutes, and several times as long for another architecture.
    """
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    architecture = architecture or own_architecture()
    key = [Path(__file__).read_bytes(), release.encode(), architecture.encode()]
    return cached(f"debian-{architecture}", key, lambda tree: _fill(tree, release, architecture))


def python_name(root: Path) -> str:
    """The name of the release's Python and of its folders, such as `python3.11`."""
    name = (root / "usr/bin/python3").readlink().name
    if tuple(map(int, name.removeprefix("python").split("."))) < MIN_PYTHON_VERSION:
        raise BuildError(f"this Debian release has {name}; the images need Python 3.11 or newer")
    return name


def compile_inside(root: Path, folder: str) -> None:
    """Compile every module, because in a container with a read-only root byte code cannot be written.

    With unchecked hashes, because every file in a layer has the modification time 0.
    """
    # -E: PYTHONPYCACHEPREFIX of this machine would put the byte code elsewhere.
    command = f"/usr/bin/python3 -E -m compileall -q -f --invalidation-mode unchecked-hash {folder}"
    run_inside(root, *command.split())


def _fill(tree: Path, release: str, architecture: str) -> None:
    options = (f"--arch={architecture}", "--variant=minbase", f"--include={','.join(PACKAGES)}")
    # In a mount namespace, so that its mounts of /proc and /sys always end with it.
    run("unshare", "--mount", "debootstrap", *options, release, tree, _mirror(release, architecture))
    compile_inside(tree, f"/usr/lib/{python_name(tree)}")
    for name in DROPPED:
        path = tree / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for device in (tree / "dev").iterdir():  # the container runtime creates its own
        shutil.rmtree(device) if device.is_dir() and not device.is_symlink() else device.unlink()


def _mirror(release: str, architecture: str) -> str:
    if platform.freedesktop_os_release()["ID"] == "ubuntu" and architecture != own_architecture():
        return UBUNTU[architecture]
    found = run(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        f"Codename: {release}",
        "Created-By: Packages",
    )
    if not found:
        raise BuildError(
            f"apt has no mirror of {release}: run `apt-get update` and check /etc/apt/sources.list*"
        )
    return found.splitlines()[0]
