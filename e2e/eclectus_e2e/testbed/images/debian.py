"""The layer below the product's programs: the machine's own Debian release with Python, by debootstrap.

The release is the machine's own, from the mirror its apt uses: that is the one sure to be reachable.
"""

import platform
import shutil
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.testbed.images.layers import Layer, cached
from eclectus_e2e.testbed.images.shell import run, run_inside

PACKAGES = ("python3-minimal", "libpython3-stdlib", "ca-certificates")
PYTHON_OLDEST = (3, 11)  # pyproject.toml: requires-python
# Read by nobody in a container, or true of the machine and the day of the build alone.
DROPPED = (
    *(f"usr/share/{name}" for name in ("bash-completion", "doc", "info", "locale", "man")),
    *(f"var/{name}" for name in ("cache", "lib/apt", "log")),
    *(f"etc/{name}" for name in ("hostname", "resolv.conf", "shadow", "shadow-")),
)


def base_layer() -> Layer:
    """Debian with Python; a minute and a half or more on first use. Needs root and the right to mount."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    key = [Path(__file__).read_bytes(), release.encode(), platform.machine().encode()]
    return cached("debian", key, lambda tree: _fill(tree, release))


def python_name(root: Path) -> str:
    """`python3.11`: the name of the release's Python and of its folders."""
    name = (root / "usr/bin/python3").readlink().name
    if tuple(map(int, name.removeprefix("python").split("."))) < PYTHON_OLDEST:
        raise BuildError(f"this Debian release carries {name}; the images need 3.11 or newer")
    return name


def compile_inside(root: Path, folder: str) -> None:
    """Byte code for every module: a container's root is read-only, so it could never be written later.

    It is not checked against its source's time, because in a layer every time is 0.
    """
    command = f"/usr/bin/python3 -m compileall -q -f --invalidation-mode unchecked-hash {folder}"
    run_inside(root, *command.split())


def _fill(tree: Path, release: str) -> None:
    include = f"--include={','.join(PACKAGES)}"
    # In a mount namespace, so that its /proc and /sys in the tree end with it, however it ends.
    command = ("unshare", "--mount", "debootstrap", "--variant=minbase", include)
    run(*command, release, tree, _mirror(release))
    compile_inside(tree, f"/usr/lib/{python_name(tree)}")
    for name in DROPPED:
        path = tree / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for device in (tree / "dev").iterdir():  # the container runtime makes its own
        shutil.rmtree(device) if device.is_dir() and not device.is_symlink() else device.unlink()


def _mirror(release: str) -> str:
    found = run(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        f"Codename: {release}",
        "Created-By: Packages",
    )
    if not found:
        raise BuildError(f"apt knows no mirror of {release}: `apt-get update`, then look at its sources")
    return found.splitlines()[0]
