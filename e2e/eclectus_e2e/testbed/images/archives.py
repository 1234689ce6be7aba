"""Every image that can be built without Docker: its name, its layers, and its archive in `build/images/`."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import eclectus
from eclectus_e2e.errors import MachineError, UsageError
from eclectus_e2e.paths import CHECKOUT, SYSTEM_PATH
from eclectus_e2e.testbed.images.contents import Image, contents
from eclectus_e2e.testbed.images.debian import base_layer
from eclectus_e2e.testbed.images.layers import Layer
from eclectus_e2e.testbed.images.pause_and_busybox import busybox_layer, pause_layer
from eclectus_e2e.testbed.images.python import VENV, application_layer, dependencies_layer, files_layer
from eclectus_e2e.testbed.images.tarball import ARCHITECTURES, ImageArchive, write
from eclectus_e2e.testbed.locks import file_lock

FOLDER = CHECKOUT / "build" / "images"
PROGRAMS = {"debootstrap": "debootstrap", "apt-get": "apt", "busybox": "busybox-static"}
_INSIDE = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def references() -> Mapping[str, str]:
    """Every image that can be built, by name, with what pods call it."""
    product = {
        name: f"docker.io/library/eclectus-{name}:{eclectus.__version__}" for name in contents().images
    }
    return {**product, "pause": "registry.k8s.io/pause:3.10", "busybox": "docker.io/library/busybox:static"}


def unmet_requirement() -> str | None:
    """Why this machine cannot build images, or None when it can."""
    if os.geteuid() != 0:
        return "building images without Docker needs root, for debootstrap and chroot"
    if platform.machine() not in ARCHITECTURES:
        return f"images are built for {' and '.join(ARCHITECTURES)}; this machine is a {platform.machine()}"
    lacking = [
        package for program, package in PROGRAMS.items() if not shutil.which(program, path=SYSTEM_PATH)
    ]
    if lacking:
        return f"building images without Docker needs `apt-get install {' '.join(lacking)}`"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "building images without Docker needs the right to mount, CAP_SYS_ADMIN; root here lacks it"
    return None


def archive(name: str) -> Path:
    """The archive of an image, built when it is not there or no longer what it should hold.

    Raises MachineError where this machine cannot, BuildError when a step fails.
    """
    if name not in references():
        raise UsageError(f"no image is called {name!r}; there are {', '.join(references())}")
    if reason := unmet_requirement():
        raise MachineError(reason)
    layers, start = _UTILITY_IMAGES[name]() if name in _UTILITY_IMAGES else _product(name)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.tar"
    with file_lock(FOLDER / "lock", "an image"):
        write(ImageArchive(references()[name], layers, start), path)
    return path


def container_settings(image: Image) -> Mapping[str, Any]:
    """What a container of an image of the list starts with."""
    path = f"{VENV}/bin:{_INSIDE}" if image.lock else _INSIDE
    return {
        "User": contents().user,
        "Env": [f"PATH={path}", *(f"{key}={value}" for key, value in image.environment.items())],
        "Entrypoint": image.entrypoint,
        "Cmd": image.cmd,
    }


def _product(name: str) -> tuple[Sequence[Layer], Mapping[str, Any]]:
    image = contents().images[name]
    if image.lock:
        layers = [base_layer(), dependencies_layer(image), application_layer(image)]
    else:
        layers = [base_layer(), files_layer(name, image)]
    return layers, container_settings(image)


# Images of real nodes alone: what containerd starts first in every pod, and a shell for the pods of tests.
_UTILITY_IMAGES = {
    "pause": lambda: ([pause_layer()], {"Entrypoint": ["/pause"]}),
    "busybox": lambda: ([busybox_layer()], {"Env": ["PATH=/bin"], "Cmd": ["sh"]}),
}
