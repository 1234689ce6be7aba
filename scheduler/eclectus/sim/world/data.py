"""Data of tasks in the simulator: which nodes have them, and how much longer a task takes elsewhere."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from eclectus.cluster.locality import level_of
from eclectus.cluster.nodes import Cluster
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Input
from eclectus.model.settings import setting
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.base.random_draws import stream

BLOCK = 2**27  # bytes of the data of a task
GB = 10**9


@dataclass(frozen=True)
class DataSettings:
    """Every task has data of its own on nodes that are drawn for it, or reads the one hot data set."""

    copies: int = setting(3, "nodes that have the data of a task", least=1, most=16)
    remote: float = setting(
        2.0, "how many times as long a task takes on a node without its data", least=1, most=1000
    )
    near: float | None = setting(
        None,
        "the same on a node with the label of one with its data; by default as remote",
        least=1,
        most=1000,
    )
    label: str = setting("", "the label by which nodes are near each other; belongs to near")
    gigabytes: float | None = setting(
        None, "mean of the data of a task, exponential; by default 128 MiB each", least=1e-3, most=1e6
    )
    remote_seconds: float = setting(
        0.0, "for each GB on a node without its data, in addition to remote", unit="s/GB", least=0, most=1e4
    )
    near_seconds: float = setting(0.0, "the same where near applies", unit="s/GB", least=0, most=1e4)
    hot: float = setting(
        0.0, "the share of tasks that read one data set, on nodes that are drawn once", least=0, most=1
    )

    def __post_init__(self) -> None:
        if (self.near is None) != (not self.label):
            raise SettingsError("label", "belongs to near, and near needs it")
        if self.near_seconds and self.near is None:
            raise SettingsError("nearSeconds", "needs near and label; near: 1 if that is all it takes longer")


class Data:
    """What was drawn, and where tasks have started."""

    def __init__(self, settings: DataSettings, seed: int, machines: Iterable[Machine]) -> None:
        self._settings = settings
        self._random, self._sizes = stream(seed, "data"), stream(seed, "sizes of data")
        self._cluster = Cluster()
        for machine in machines:
            self._cluster.set_node(machine.node)
        self._names = [name for name in self._cluster.names if name]
        self._keys = (settings.label,) if settings.label else ()
        self._factors = (1.0, *([settings.near] if settings.near is not None else []), settings.remote)
        nearby = [settings.near_seconds] if settings.near is not None else []
        self._seconds = (0.0, *nearby, settings.remote_seconds)  # for a GB, by level
        self._starts, self._bytes = Counter[int](), Counter[int]()  # by level
        hot_bytes = BLOCK if settings.gigabytes is None else round(GB * settings.gigabytes)
        self._hot = Input("hot", hot_bytes, self._draw()) if settings.hot else None

    def submit(self, run: TaskRun) -> None:
        """The pod says where its data are; when a task is submitted again they are where they were."""
        if not run.task.inputs:
            if self._hot is not None and self._random.random() < self._settings.hot:
                read = self._hot
            else:
                read = Input(run.task.name, self._size(), self._draw())
            run.task = replace(run.task, inputs=(read,))

    def _size(self) -> int:
        """The bytes of a task's data."""
        mean = self._settings.gigabytes
        return BLOCK if mean is None else max(round(GB * self._sizes.exponential(mean)), 1)

    def _draw(self) -> tuple[str, ...]:
        """The names of some nodes."""
        count = min(self._settings.copies, len(self._names))
        drawn = self._random.choice(len(self._names), count, replace=False).tolist()
        return tuple(self._names[at] for at in drawn)

    def start(self, run: TaskRun, machine: Machine) -> None:
        """This attempt takes so much longer as its data are far."""
        row = self._cluster.rows.get(machine.node.name)
        level = None if row is None else level_of(self._cluster, run.task, row, self._keys)
        level = len(self._factors) - 1 if level is None else level
        size = sum(each.size for each in run.task.inputs)
        self._starts[level] += 1
        self._bytes[level] += size
        run.pace /= self._factors[level] + self._seconds[level] * size / GB / run.size

    @property
    def locality(self) -> float | None:
        """The share of starts on a node with the data; None before the first."""
        starts = self._starts.total()
        return self._starts[0] / starts if starts else None

    @property
    def across_gigabytes(self) -> float | None:
        """GB that were read from other racks, which the label tells apart; None without it."""
        return self._bytes[len(self._factors) - 1] / GB if self._keys else None
