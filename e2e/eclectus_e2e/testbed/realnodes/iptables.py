"""Finds and removes the iptables rules of kube-proxy and kubelet, all in chains named KUBE-….

`kube-proxy --cleanup` does not remove the chains that it shares with kubelet.
"""

import subprocess

from eclectus_e2e.errors import MachineError
from eclectus_e2e.testbed.realnodes.requirements import program

_TABLES = ("filter", "mangle", "nat")


def kubernetes_rules_exist() -> bool:
    """Whether this machine has rules of a Kubernetes."""
    return any(_chains(_saved(table)) for table in _TABLES)


def remove_kubernetes_rules() -> None:
    """Remove the jumps from the built-in chains, then the chains."""
    for table in _TABLES:
        if script := removal_script(table, _saved(table)):
            _run(["iptables-restore", "--noflush"], script)


def removal_script(table: str, saved: list[str]) -> str:
    """The input of `iptables-restore`, from the lines of `iptables -S`; empty without such rules."""
    chains = _chains(saved)
    if not chains:
        return ""
    jumps = [line for line in saved if line.startswith("-A ") and not line.startswith("-A KUBE-")]
    removed_jumps = [line.replace("-A", "-D", 1) for line in jumps if " -j KUBE-" in line]
    emptied = [f":{chain} - [0:0]" for chain in chains]  # declaring a chain empties it
    return "\n".join(
        [f"*{table}", *emptied, *removed_jumps, *(f"-X {chain}" for chain in chains), "COMMIT", ""]
    )


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
