"""The sizes of a soak: what stands, what waits, and what comes and goes."""

from dataclasses import dataclass

from eclectus_e2e.errors import UsageError

MOST_ON_A_NODE = 50  # standing pods: the rest of a node's 110 is for those that come and go


@dataclass(frozen=True)
class Sizes:
    """One soak. Raises UsageError for sizes that do not go together."""

    minutes: float  # from the moment both processes lead
    nodes: int
    pods: int  # that stay on the nodes all the time
    pending: int  # pods that find no room
    shapes: int  # different specs among them
    rate: float  # pods a second that arrive, run and end
    life_seconds: float  # for which one of them runs, in the mean
    probed: int  # nodes of which a NodeProbe asks for benchmarks
    attackers: int = 0  # objects of the kinds with which a tenant attacks (attack.py); 0: nobody does
    unserved: bool = (
        False  # whether no scheduler serves these pods: what the attack costs the API server alone
    )

    def __post_init__(self) -> None:
        if not (self.minutes > 0 and self.rate > 0 and min(self.nodes, self.pending, self.shapes) > 0):
            raise UsageError("minutes, rate, nodes, pending and shapes must be above 0")
        if not self.nodes <= self.pods <= MOST_ON_A_NODE * self.nodes:
            raise UsageError(
                f"{self.pods} pods on {self.nodes} nodes: there must be 1 to {MOST_ON_A_NODE} a node, "
                "or pods that are to wait would find room"
            )
        if self.shapes > self.pending:
            raise UsageError(f"{self.shapes} shapes of {self.pending} pods: there are no more than pods")
        if self.probed > self.nodes:
            raise UsageError(f"{self.probed} probed nodes of {self.nodes}: there are no more than nodes")

    @property
    def seconds(self) -> float:
        """The length of the soak."""
        return self.minutes * 60

    @property
    def pending_from(self) -> float:
        """Seconds into the soak at which the pods that find no room are created.

        Before, the operator probes: while pods wait for room it starts no probe.
        """
        return self.seconds / 5

    @property
    def attack_from(self) -> float:
        """Seconds into the soak at which a tenant attacks; before, pods wait and nobody does."""
        return self.seconds * 0.6

    @property
    def compared_from(self) -> float:
        """Seconds into the soak from which on waits before the attack are compared with those beside it."""
        return self.seconds * 0.4


FULL = Sizes(
    minutes=20.0,
    nodes=15_000,
    pods=100_000,
    pending=20_000,
    shapes=5_000,
    rate=20.0,
    life_seconds=60.0,
    probed=50,
)
QUICK = Sizes(minutes=0.6, nodes=40, pods=200, pending=100, shapes=50, rate=10.0, life_seconds=2.0, probed=10)
