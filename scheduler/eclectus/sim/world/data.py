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
    hot: float = setting(
        0.0, "the share of tasks that read one data set, on nodes that are drawn once", least=0, most=1
    )

    def __post_init__(self) -> None:
        if (self.near is None) != (not self.label):
            raise SettingsError("label", "belongs to near, and near needs it")


class Data:
    """What was drawn, and where tasks have started."""

    def __init__(self, settings: DataSettings, seed: int, machines: Iterable[Machine]) -> None:
        self._settings = settings
        self._random = stream(seed, "data")
        self._cluster = Cluster()
        for machine in machines:
            self._cluster.set_node(machine.node)
        self._names = [name for name in self._cluster.names if name]
        self._keys = (settings.label,) if settings.label else ()
        self._factors = (1.0, *([settings.near] if settings.near is not None else []), settings.remote)
        self._starts = Counter[int]()
        self._hot = Input("hot", BLOCK, self._draw()) if settings.hot else None

    def submit(self, run: TaskRun) -> None:
        """The pod says where its data are; when a task is submitted again they are where they were."""
        if not run.task.inputs:
            if self._hot is not None and self._random.random() < self._settings.hot:
                read = self._hot
            else:
                read = Input(run.task.name, BLOCK, self._draw())
            run.task = replace(run.task, inputs=(read,))

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
        self._starts[level] += 1
        run.pace /= self._factors[level]

    @property
    def locality(self) -> float | None:
        """The share of starts on a node with the data; None before the first."""
        starts = self._starts.total()
        return self._starts[0] / starts if starts else None
