"""The cgroups of real nodes: CPU quotas, freezing, and killing all processes of a node.

    eclectus-nodes/NODE          frozen and thawed as a whole
    eclectus-nodes/NODE/system   containerd, its shims and kubelet, without a quota
    eclectus-nodes/NODE/pods     kubelet's cgroup root, with the CPU quota

With cgroup v1 the directories exist in every hierarchy, because kubelet rejects a root that is missing in
one; v2 has a single hierarchy.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.processes import wait_for

ROOT = "eclectus-nodes"
_MOUNT = Path("/sys/fs/cgroup")
_CONTROL_PLANE = "control-plane"  # a directory next to those of the nodes
_NEEDED = ("cpu", "cpuset", "memory", "pids")
_PERIOD_MICROSECONDS = 100_000  # the default of the kernel
_TIMEOUT_SECONDS = 30.0


def unified() -> bool:
    """Whether this machine has cgroup v2 only."""
    return (_MOUNT / "cgroup.controllers").exists()


def unmet_requirement() -> str | None:
    """The first requirement that this machine's cgroups do not meet; None when they meet all."""
    controllers = (_MOUNT / "cgroup.controllers").read_text().split() if unified() else [*_version_1()]
    needed = _NEEDED if unified() else (*_NEEDED, "freezer")
    for controller in needed:
        if controller not in controllers:
            return f"real nodes need the cgroup controller {controller}, which {_MOUNT} does not have"
    if not all(os.access(each, os.W_OK) for each in _hierarchies()):
        return f"real nodes need a writable {_MOUNT}"
    return None


def create(node: str) -> None:
    """Create a node's directories; with v2, enable every needed controller in them."""
    for hierarchy in _hierarchies():
        for part in ("", node, f"{node}/system", f"{node}/pods"):
            directory = hierarchy / ROOT / part
            directory.mkdir(exist_ok=True)
            if unified() and not part.endswith(
                ("system", "pods")
            ):  # these hold processes, or kubelet enables them
                (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in _NEEDED))
            if hierarchy == _version_1().get("cpuset"):  # empty in a new group, which then accepts no process
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (directory / file).write_text((directory.parent / file).read_text())


def raise_cpu_weight(pids: Iterable[int]) -> None:
    """Raise the CPU weight of all nodes, so that other load of the machine does not affect their speeds.

    Also of their control plane (`pids`): with the default weight it would wait for the nodes.
    """
    create(_CONTROL_PLANE)
    for pid in pids:
        add_process(_CONTROL_PLANE, pid)
    if unified():
        (_MOUNT / ROOT / "cpu.weight").write_text("10000")
    else:
        (_version_1()["cpu"] / ROOT / "cpu.shares").write_text("262144")


def pods_root(node: str) -> str:
    """The cgroup in which kubelet creates those of its pods."""
    return f"/{ROOT}/{node}/pods"


def add_process(node: str, pid: int) -> None:
    """Move a process into the node's `system` cgroup; its later children follow."""
    for hierarchy in {_tracking(), _version_1().get("cpu", _tracking())}:
        (hierarchy / ROOT / node / "system" / "cgroup.procs").write_text(str(pid))


def set_quota(node: str, share: float) -> None:
    """Limit a node's pods to this share of one core."""
    quota = round(share * _PERIOD_MICROSECONDS)
    if unified():
        (_MOUNT / ROOT / node / "pods" / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
    else:
        (_version_1()["cpu"] / ROOT / node / "pods" / "cpu.cfs_quota_us").write_text(str(quota))


def freeze(node: str) -> None:
    """Freeze all processes of a node: kubelet, containerd, shims, containers."""
    _set_frozen(_tracking() / ROOT / node, frozen=True)


def thaw(node: str) -> None:
    """Thaw a frozen node."""
    _set_frozen(_tracking() / ROOT / node, frozen=False)


def kill_container(node: str, container: str) -> None:
    """Kill every process of a container, given its id, as the OOM killer does."""
    (group,) = (_tracking() / ROOT / node / "pods").rglob(container)
    _kill_below(group)


def kill_all() -> None:
    """Kill every process of every node. Thaws them first, because a frozen process cannot be killed."""
    tracked = _tracking() / ROOT
    for node in (path for path in _below(tracked) if path.parent == tracked):
        _set_frozen(node, frozen=False)
    if not wait_for(lambda: not _kill_below(tracked), _TIMEOUT_SECONDS):
        raise StartError(f"processes below {tracked} cannot be killed")


def remove_all() -> None:
    """Remove every node's directories, in which no process may run."""
    # With v1, runc also creates them in the v2 hierarchy, which is mounted but has no controllers.
    for hierarchy in (*_hierarchies(), _MOUNT / "unified"):
        for group in _below(hierarchy / ROOT):
            _remove(group)


def _hierarchies() -> list[Path]:
    """The hierarchies to create directories in: the one of v2, or each of v1, including systemd's."""
    return [_MOUNT] if unified() else sorted(set(_version_1().values()))


def _version_1() -> dict[str, Path]:
    """The mount point of each controller's hierarchy; some share one. Empty with cgroup v2."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return {
        name: Path(where)
        for _, where, kind, names, *_ in mounts
        if kind == "cgroup"
        for name in names.split(",")
    }


def _tracking() -> Path:
    """The hierarchy used for freezing and for listing the processes of a node."""
    return _MOUNT if unified() else _version_1()["freezer"]


def _set_frozen(group: Path, *, frozen: bool) -> None:
    if unified():
        (group / "cgroup.freeze").write_text("1" if frozen else "0")
        return
    state, wanted = group / "freezer.state", "FROZEN" if frozen else "THAWED"

    def is_applied() -> bool:
        state.write_text(wanted)  # written again, because freezing may stall while processes fork
        return state.read_text().strip() == wanted

    if not wait_for(is_applied, _TIMEOUT_SECONDS):
        raise StartError(f"{state} stays {state.read_text().strip()} instead of {wanted}")


def _below(group: Path) -> Iterator[Path]:
    """A group and all groups below it, the deepest first; nothing when it does not exist."""
    if group.exists():
        for child in sorted(path for path in group.iterdir() if path.is_dir()):
            yield from _below(child)
        yield group


def _pids(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def _kill_below(group: Path) -> bool:
    """Kill the processes of a group and below; returns whether there were any."""
    pids = [pid for each in _below(group) for pid in _pids(each)]
    for pid in pids:
        _kill(pid)
    return bool(pids)


def _kill(pid: int) -> None:
    """Send SIGKILL; a process that has ended meanwhile is no error."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(group: Path) -> None:
    """Remove a group, retrying: the kernel refuses for a moment after its last process has ended."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise StartError(f"{group} cannot be removed: {error}") from error
            time.sleep(0.02)
        else:
            return
