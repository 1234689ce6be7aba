"""One directory of cgroups for each node: what its pods may use, and everything that runs for it.

    eclectus-nodes/NODE          frozen and thawed as a whole
    eclectus-nodes/NODE/system   containerd, its shims, kubelet: no quota, as on a machine that has room
    eclectus-nodes/NODE/pods     kubelet's cgroup root, with the CPU quota

In cgroup v1 the directory is made in every hierarchy (kubelet refuses a root that lacks in one); in v2
there is one.
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
_PLANE = "control-plane"  # a directory beside the nodes'
_NEEDED = ("cpu", "cpuset", "memory", "pids")
_PERIOD_MICROSECONDS = 100_000  # the kernel's default
_SETTLED_SECONDS = 30.0


def unified() -> bool:
    """Whether this machine has cgroup v2 (and nothing else)."""
    return (_MOUNT / "cgroup.controllers").exists()


def unmet_requirement() -> str | None:
    """Why no node's cgroups can be made here; None when they can."""
    there = (_MOUNT / "cgroup.controllers").read_text().split() if unified() else [*_version_1()]
    needed = _NEEDED if unified() else (*_NEEDED, "freezer")
    for controller in needed:
        if controller not in there:
            return f"real nodes need the cgroup controller {controller}, which {_MOUNT} does not have"
    if not all(os.access(each, os.W_OK) for each in _hierarchies()):
        return f"real nodes need a writable {_MOUNT}"
    return None


def create(node: str) -> None:
    """Make a node's directories; v2: with every needed controller handed down."""
    for hierarchy in _hierarchies():
        for part in ("", node, f"{node}/system", f"{node}/pods"):
            directory = hierarchy / ROOT / part
            directory.mkdir(exist_ok=True)
            if unified() and not part.endswith(("system", "pods")):  # those hold processes, or kubelet's
                (directory / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in _NEEDED))
            if hierarchy == _version_1().get("cpuset"):  # a new group has none, and takes no process so
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (directory / file).write_text((directory.parent / file).read_text())


def raise_cpu_weight(plane: Iterable[int]) -> None:
    """Serve all nodes before others of the machine: else its load is measured, and not their quotas.

    The processes of their control plane too: behind the nodes it would stand in the queue for a core.
    """
    create(_PLANE)
    for pid in plane:
        add_process(_PLANE, pid)
    if unified():
        (_MOUNT / ROOT / "cpu.weight").write_text("10000")
    else:
        (_version_1()["cpu"] / ROOT / "cpu.shares").write_text("262144")


def pods_root(node: str) -> str:
    """The cgroup that kubelet makes its pods' in."""
    return f"/{ROOT}/{node}/pods"


def add_process(node: str, pid: int) -> None:
    """Put a process, and so all its later children, among the node's own."""
    for hierarchy in {_tracking(), _version_1().get("cpu", _tracking())}:
        (hierarchy / ROOT / node / "system" / "cgroup.procs").write_text(str(pid))


def set_quota(node: str, share: float) -> None:
    """Let a node's pods use this share of one core, from now on."""
    quota = round(share * _PERIOD_MICROSECONDS)
    if unified():
        (_MOUNT / ROOT / node / "pods" / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
    else:
        (_version_1()["cpu"] / ROOT / node / "pods" / "cpu.cfs_quota_us").write_text(str(quota))


def freeze(node: str) -> None:
    """Stop everything of a node at once: kubelet, containerd, shims, containers."""
    _set_frozen(_tracking() / ROOT / node, frozen=True)


def thaw(node: str) -> None:
    """Let it go on."""
    _set_frozen(_tracking() / ROOT / node, frozen=False)


def kill_container(node: str, container: str) -> None:
    """Kill every process of a container, given its id, as the kernel does when memory runs out."""
    (group,) = (_tracking() / ROOT / node / "pods").rglob(container)
    _kill_below(group)


def kill_all() -> None:
    """Kill every process of every node; thawed first, because what is frozen does not even die."""
    tracked = _tracking() / ROOT
    for node in (path for path in _below(tracked) if path.parent == tracked):
        _set_frozen(node, frozen=False)
    if not wait_for(lambda: not _kill_below(tracked), _SETTLED_SECONDS):
        raise StartError(f"processes below {tracked} cannot be killed")


def remove_all() -> None:
    """Remove every node's directories, in which nothing runs any more."""
    # v1: also where runc makes them and nobody needs them, in the empty v2 beside it.
    for hierarchy in (*_hierarchies(), _MOUNT / "unified"):
        for group in _below(hierarchy / ROOT):
            _remove(group)


def _hierarchies() -> list[Path]:
    """Where directories are to be made: one of v2, or each of v1 (systemd's own among them)."""
    return [_MOUNT] if unified() else sorted(set(_version_1().values()))


def _version_1() -> dict[str, Path]:
    """Where each controller's hierarchy is mounted; some share one. Empty with cgroup v2."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return {
        name: Path(where)
        for _, where, kind, names, *_ in mounts
        if kind == "cgroup"
        for name in names.split(",")
    }


def _tracking() -> Path:
    """The hierarchy that freezes, and that tells which processes are a node's."""
    return _MOUNT if unified() else _version_1()["freezer"]


def _set_frozen(group: Path, *, frozen: bool) -> None:
    if unified():
        (group / "cgroup.freeze").write_text("1" if frozen else "0")
        return
    state, wanted = group / "freezer.state", "FROZEN" if frozen else "THAWED"

    def settled() -> bool:
        state.write_text(wanted)  # written again: a freeze can stall half-way while processes fork
        return state.read_text().strip() == wanted

    if not wait_for(settled, _SETTLED_SECONDS):
        raise StartError(f"{state} stays {state.read_text().strip()} instead of {wanted}")


def _below(group: Path) -> Iterator[Path]:
    """A group and all below it, the deepest first; nothing when it is not there."""
    if group.exists():
        for child in sorted(path for path in group.iterdir() if path.is_dir()):
            yield from _below(child)
        yield group


def _pids(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def _kill_below(group: Path) -> bool:
    """Kill what runs; whether anything did."""
    pids = [pid for each in _below(group) for pid in _pids(each)]
    for pid in pids:
        _kill(pid)
    return bool(pids)


def _kill(pid: int) -> None:
    """SIGKILL; a process that has gone meanwhile is what was wanted."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(group: Path) -> None:
    """The kernel refuses for a moment after the last process has gone."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while True:
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise StartError(f"{group} cannot be removed: {error}") from error
            time.sleep(0.02)
        else:
            return
