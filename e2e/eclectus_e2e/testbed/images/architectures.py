"""The architectures that images are built for, and whether this machine can run a program of each."""

import platform
import shutil
import subprocess

from eclectus_e2e.paths import SYSTEM_PATH

# Names in images and of Debian: names of the kernel and of Python's wheels.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def own_architecture() -> str:
    """This machine's architecture; the kernel's name for it where no image can be built."""
    machine = platform.machine()
    return next((name for name, of_kernel in MACHINES.items() if of_kernel == machine), machine)


def why_not_runnable(architecture: str) -> str | None:
    """Why programs of an architecture cannot be run here, as Debian's packages do when they are installed."""
    own = own_architecture()
    if own not in MACHINES:
        return f"images are built for {' and '.join(MACHINES)}; this machine has {own}"
    if architecture == own:
        return None
    install = "`apt-get install arch-test binfmt-support qemu-user-static`"
    program = shutil.which("arch-test", path=SYSTEM_PATH)
    if not program:
        return f"Debian for {architecture} needs {install}, to run its programs while it is installed"
    tried = subprocess.run([program, architecture], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return None
    said = (tried.stdout + tried.stderr).strip()
    return f"the kernel runs no programs of {architecture} ({said}); {install} registers QEMU for them"
