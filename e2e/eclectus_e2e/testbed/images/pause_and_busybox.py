"""The layers of two images for real nodes: `pause`, and `busybox` for the pods of tests."""

import os
import platform
import shutil
from pathlib import Path

from eclectus_e2e.paths import PAUSE
from eclectus_e2e.testbed.controlplane.toolchain import go_program
from eclectus_e2e.testbed.images.layers import Layer, cached
from eclectus_e2e.testbed.images.shell import run

# Statically linked, because the image has no libraries.
_STATIC = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}


def pause_layer() -> Layer:
    """The program that keeps a pod's namespaces, compiled from `pause.go`."""
    key = [Path(__file__).read_bytes(), PAUSE.read_bytes(), platform.machine().encode()]

    def fill(tree: Path) -> None:
        build = (go_program(), "build", "-trimpath", "-ldflags", "-s -w", "-o", tree / "pause", PAUSE)
        run(*build, environment=_STATIC)

    return cached("pause", key, fill)


def busybox_layer() -> Layer:
    """The machine's busybox (Debian's busybox-static) with links for all its applets."""
    program = Path(run("sh", "-c", "command -v busybox").strip())

    def fill(tree: Path) -> None:
        (tree / "bin").mkdir()
        shutil.copy(program, tree / "bin" / "busybox")
        for applet in run(program, "--list").split():
            if applet != "busybox":
                (tree / "bin" / applet).symlink_to("busybox")
        (tree / "tmp").mkdir()
        os.chmod(tree / "tmp", 0o1777)  # noqa: S103 - the usual mode of /tmp

    return cached("busybox", [Path(__file__).read_bytes(), program.read_bytes()], fill)
