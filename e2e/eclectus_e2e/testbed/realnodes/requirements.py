"""Whether this machine can run real nodes, and if not, what is missing."""

import os
import shutil
import subprocess
from pathlib import Path

from eclectus_e2e.errors import MachineError
from eclectus_e2e.paths import SYSTEM_PATH
from eclectus_e2e.testbed.realnodes import cgroups

# Program: the Debian package that has it.
PROGRAMS = {
    "ip": "iproute2",
    "iptables": "iptables",
    "iptables-restore": "iptables",
    "runc": "runc",
    "umount": "mount",
}
CNI_PLUGINS = Path("/usr/lib/cni")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}  # linux/capability.h


def unmet_requirement() -> str | None:
    """The first requirement of real nodes that this machine does not meet; None when it meets all."""
    if os.geteuid() != 0:
        return "real nodes need root, to create containers, bridges and cgroups"
    status = Path("/proc/self/status").read_text()
    if missing := _missing_capabilities(status):
        return f"real nodes need {missing[0]}: this container was started without it"
    if packages := _missing_packages():
        return f"real nodes need `apt-get install {' '.join(packages)}`"
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        return "real nodes need overlayfs, which this kernel does not list in /proc/filesystems"
    return cgroups.unmet_requirement() or _iptables_failure()


def require() -> None:
    """Raise MachineError when this machine does not meet a requirement of real nodes."""
    if reason := unmet_requirement():
        raise MachineError(reason)


def program(name: str) -> str:
    """The path of one of PROGRAMS."""
    found = shutil.which(name, path=SYSTEM_PATH)
    if found is None:
        raise MachineError(f"real nodes need the program {name}: apt-get install {PROGRAMS[name]}")
    return found


def _missing_capabilities(status: str) -> list[str]:
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    return [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]


def _missing_packages() -> list[str]:
    missing = [package for name, package in PROGRAMS.items() if not shutil.which(name, path=SYSTEM_PATH)]
    if not (CNI_PLUGINS / "bridge").exists():
        missing.append("containernetworking-plugins")
    return list(dict.fromkeys(missing))


def _iptables_failure() -> str | None:
    listed = subprocess.run(
        [program("iptables"), "-t", "nat", "-S"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        return f"real nodes need iptables, but `iptables -t nat -S` failed: {listed.stderr.strip()}"
    return None
