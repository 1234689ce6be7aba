"""What one operator is told at its start."""

from dataclasses import dataclass
from typing import Annotated

from eclectus.api.probe_names import ProbeId
from eclectus.model.settings import Setting


@dataclass(frozen=True)
class Settings:
    """How an operator runs; the chart gives every field."""

    instance: Annotated[
        str, Setting("name of this installation: 1 to 16 lower-case letters and digits, in every pod's name")
    ]
    namespace: Annotated[str, Setting("where probe pods are made")]
    unit_image: Annotated[
        str, Setting("image of the built-in benchmark", why="none by default: there is no public one")
    ] = ""
    pull_secrets: Annotated[
        str, Setting("names of Secrets in that namespace to pull images with, separated by commas")
    ] = ""
    priority_class: Annotated[
        str, Setting("PriorityClass of probe pods", why="the chart's own has the lowest priority there is")
    ] = ""
    most_running: Annotated[
        int,
        Setting(
            "most probes at a time, of all NodeProbes together",
            why="a net below the limits of each; the chart sets a ResourceQuota of the same number",
            unit="pods",
            least=1,
            most=500,
        ),
    ] = 10
    orphan_seconds: Annotated[
        float,
        Setting(
            "how long a pod of ours that nobody knows of is left alone",
            why="longer than any write can be under way",
            unit="s",
            least=0,
        ),
    ] = 60.0
    look_seconds: Annotated[
        float,
        Setting(
            "longest time between two looks at everything",
            why="what no watch has told is found then; a look costs two lists",
            unit="s",
            least=1,
        ),
    ] = 60.0

    def __post_init__(self) -> None:
        ProbeId(self.instance, "run", 0)  # raises NamingError, which says what an instance may be
