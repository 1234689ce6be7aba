"""What one run of one contestant has shown."""

from collections.abc import Mapping

import msgspec


class Run(msgspec.Struct, frozen=True):
    """One run of one contestant. CPU and writes are from the first submission until all writes are done."""

    contestant: str
    pair: int
    steps: int  # of all graphs
    seconds: float  # from the first submission to the last end
    graph_seconds: float  # mean, from the submission of a graph to its end
    writes: Mapping[str, int]  # of engine and scheduler, by what they are of
    executor_writes: int  # of Argo's pods
    engine_cpu_seconds: float
    scheduler_cpu_seconds: float
    plane_cpu_seconds: float
    strangers_cores: float  # that processes outside of the bench used meanwhile
