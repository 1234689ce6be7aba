"""The iptables rules that kube-proxy and kubelet make, all in chains called KUBE-…, and how they go.

`kube-proxy --cleanup` would leave what kubelet shares with it.
"""

import subprocess

from eclectus_e2e.errors import MachineError
from eclectus_e2e.testbed.realnodes.requirements import program

_TABLES = ("filter", "mangle", "nat")


def kubernetes_rules_exist() -> bool:
    """Whether some Kubernetes has rules on this machine."""
    return any(_chains(_saved(table)) for table in _TABLES)


def remove_kubernetes_rules() -> None:
    """Remove all of them: the jumps from the kernel's own chains, then the chains."""
    for table in _TABLES:
        if script := removal_script(table, _saved(table)):
            _run(["iptables-restore", "--noflush"], script)


def removal_script(table: str, saved: list[str]) -> str:
    """What `iptables-restore` is told, given the lines of `iptables -S`; empty when there is nothing."""
    chains = _chains(saved)
    if not chains:
        return ""
    jumps = [line for line in saved if line.startswith("-A ") and not line.startswith("-A KUBE-")]
    ours = [line.replace("-A", "-D", 1) for line in jumps if " -j KUBE-" in line]
    emptied = [f":{chain} - [0:0]" for chain in chains]  # to declare a chain is to empty it
    return "\n".join([f"*{table}", *emptied, *ours, *(f"-X {chain}" for chain in chains), "COMMIT", ""])


def _chains(saved: list[str]) -> list[str]:
    return [line.split()[1] for line in saved if line.startswith("-N KUBE-")]


def _saved(table: str) -> list[str]:
    return _run(["iptables", "--table", table, "--list-rules"], "").splitlines()


def _run(command: list[str], given: str) -> str:
    name, *arguments = command
    done = subprocess.run(
        [program(name), *arguments], input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MachineError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
