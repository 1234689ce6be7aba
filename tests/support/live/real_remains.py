"""Lists what real nodes have left on the machine."""

import json
import subprocess
from pathlib import Path

from eclectus_e2e.testbed.realnodes import cgroups, iptables, requirements
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY


def remains() -> list[str]:
    """All remaining files, mounts, cgroups, bridges and iptables rules of real nodes."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    printed = subprocess.run(
        [requirements.program("ip"), "-json", "link"], capture_output=True, text=True, check=True
    )
    links = [link["ifname"] for link in json.loads(printed.stdout)]
    return [
        *([str(NODES_DIRECTORY)] if NODES_DIRECTORY.exists() else []),
        *(mount for mount in mounts if Path(mount).is_relative_to(NODES_DIRECTORY)),
        *map(str, Path("/sys/fs/cgroup").glob(f"**/{cgroups.ROOT}")),
        *(link for link in links if link.startswith("ecl-")),
        *(["iptables"] if iptables.kubernetes_rules_exist() else []),
    ]
