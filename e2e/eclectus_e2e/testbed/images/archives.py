"""Builds images without Docker: their names, layers, and archives in `build/images/`."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import eclectus
from eclectus_e2e.errors import MachineError, UsageError
from eclectus_e2e.paths import CHECKOUT, SYSTEM_PATH
from eclectus_e2e.testbed.images.architectures import own_architecture, why_not_runnable
from eclectus_e2e.testbed.images.contents import Image, contents
from eclectus_e2e.testbed.images.debian import base_layer
from eclectus_e2e.testbed.images.pause_and_busybox import busybox_layer, pause_layer
from eclectus_e2e.testbed.images.python import VENV, application_layer, dependencies_layer, files_layer
from eclectus_e2e.testbed.images.tarball import ImageArchive, write
from eclectus_e2e.testbed.locks import file_lock

FOLDER = CHECKOUT / "build" / "images"
PROGRAMS = {"debootstrap": "debootstrap", "apt-get": "apt", "busybox": "busybox-static"}
_CONTAINER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def references() -> Mapping[str, str]:
    """The image references that pods use, by image name."""
    listed = {name: f"docker.io/library/eclectus-{name}:{eclectus.__version__}" for name in contents().images}
    return {**listed, "pause": "registry.k8s.io/pause:3.10", "busybox": "docker.io/library/busybox:static"}


def unmet_requirement(architecture: str = "") -> str | None:
    """The first requirement for building images that this machine does not meet; None when it meets all."""
    if os.geteuid() != 0:
        return "building images without Docker needs root, for debootstrap and chroot"
    missing = [
        package for program, package in PROGRAMS.items() if not shutil.which(program, path=SYSTEM_PATH)
    ]
    if missing:
        return f"building images without Docker needs `apt-get install {' '.join(missing)}`"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "building images without Docker needs CAP_SYS_ADMIN, to mount; root does not have it here"
    return why_not_runnable(architecture or own_architecture())


def archive(name: str) -> Path:
    """The archive of an image; built when it is missing or out of date, in up to three minutes per layer.

    Raises UsageError for an unknown name, MachineError for an unmet requirement, BuildError.
    """
    if name not in references():
        raise UsageError(f"unknown image {name!r}; choose from {', '.join(references())}")
    if reason := unmet_requirement():
        raise MachineError(reason)
    image = _utility_image(name) if name in _UTILITY_IMAGES else listed_image(name, own_architecture())
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.tar"
    with file_lock(FOLDER / "lock", "an image"):
        write(image, path)
    return path


def container_settings(image: Image) -> Mapping[str, Any]:
    """The container configuration of an image of the list: user, environment, entrypoint, arguments."""
    path = f"{VENV}/bin:{_CONTAINER_PATH}" if image.lock else _CONTAINER_PATH
    return {
        "User": contents().user,
        "Env": [f"PATH={path}", *(f"{key}={value}" for key, value in image.environment.items())],
        "Entrypoint": image.entrypoint,
        "Cmd": image.cmd,
    }


def listed_image(name: str, architecture: str) -> ImageArchive:
    """An image of the list for an architecture; missing layers are built. Raises BuildError."""
    image = contents().images[name]
    if image.lock:
        # What the wheel contains is the same for every architecture.
        above = [dependencies_layer(image, architecture), application_layer(image)]
    else:
        above = [files_layer(name, image)]
    layers = [base_layer(architecture), *above]
    return ImageArchive(references()[name], layers, container_settings(image), architecture)


def _utility_image(name: str) -> ImageArchive:
    layers, config = _UTILITY_IMAGES[name]()
    return ImageArchive(references()[name], layers, config, own_architecture())


# For real nodes: containerd starts `pause` in every pod; pods of tests run `busybox`.
_UTILITY_IMAGES = {
    "pause": lambda: ([pause_layer()], {"Entrypoint": ["/pause"]}),
    "busybox": lambda: ([busybox_layer()], {"Env": ["PATH=/bin"], "Cmd": ["sh"]}),
}
