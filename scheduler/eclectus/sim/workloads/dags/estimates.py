"""What the scheduler believes of the run times of stages, beside their true means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.random_draws import stream
from eclectus.sim.base.work import Dag


@dataclass(frozen=True)
class Estimates:
    """Errors of estimates. True sizes do not change with them."""

    source: Annotated[
        Literal["declared", "history"],
        Setting(
            "declared: the mean of the stage, with the errors below; history: the median of the last runs of "
            "the same stage of a job of that name, unknown before the first run has ended",
            why="perfect unless errors are set",
        ),
    ] = "declared"
    bias: Annotated[
        float,
        Setting("declared: relative error of every estimate; 0.5 is half too much", least=-0.99, most=99),
    ] = 0.0
    noise: Annotated[
        float,
        Setting(
            "declared: standard deviation of the logarithm of a factor with mean 1, drawn for every stage of "
            "every job",
            least=0,
            most=3,
        ),
    ] = 0.0
    runs: Annotated[
        int,
        Setting("history: how many last runs", why="one outlier among five counts little", least=1, most=100),
    ] = 5

    def __post_init__(self) -> None:
        for name in ("bias", "noise"):
            if self.source == "history" and getattr(self, name):
                raise SettingsError(name, "is valid only with source: declared")

    @property
    def history_runs(self) -> int:
        """How many last runs estimates are made of; 0: they are declared."""
        return self.runs if self.source == "history" else 0

    def drawn(self, seed: int) -> Callable[[Dag], tuple[float, ...] | None]:
        """A function that returns an estimate of each stage of a job, in seconds; None: the true means."""
        if not self.bias and not self.noise:
            return lambda dag: None
        rng = stream(seed, "errors of estimates")

        def believed(dag: Dag) -> tuple[float, ...]:
            factors = rng.lognormal(-(self.noise**2) / 2, self.noise, len(dag.stages)) * (1.0 + self.bias)
            return tuple((factors * [stage.seconds for stage in dag.stages]).tolist())

        return believed
