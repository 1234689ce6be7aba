"""The sizes of a soak: what stands, what waits, and what comes and goes."""

from dataclasses import dataclass

from eclectus_e2e.errors import UsageError
from eclectus_e2e.pairs import alternating

Span = tuple[float, float]
"""Begin and end, seconds into the soak."""

OBJECTS = 3.6  # of an attack, for each of the `attackers`
REMOVED_A_SECOND = 100.0  # of them, after it
REMOVAL = 0.16  # of the time between two attacks' ends
MOST_ON_A_NODE = 50  # standing pods: the rest of a node's 110 is for those that come and go


@dataclass(frozen=True)
class Attack:
    """One attack of a tenant, and the calm before it with which others' waits are compared.

    `served`: whether Eclectus is to place its pods. Otherwise they name a scheduler that nobody runs, which
    shows what the objects cost API server and etcd alone.
    """

    pair: int
    served: bool
    calm: Span
    attack: Span


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
    pairs: int = 1  # of attacks: one whose pods Eclectus serves, and one whose pods nobody serves

    def __post_init__(self) -> None:
        if not (
            self.minutes > 0 and self.rate > 0 and min(self.nodes, self.pending, self.shapes, self.pairs) > 0
        ):
            raise UsageError("minutes, rate, nodes, pending, shapes and pairs must be above 0")
        if not self.nodes <= self.pods <= MOST_ON_A_NODE * self.nodes:
            raise UsageError(
                f"{self.pods} pods on {self.nodes} nodes: there must be 1 to {MOST_ON_A_NODE} a node, "
                "or pods that are to wait would find room"
            )
        if self.shapes > self.pending:
            raise UsageError(f"{self.shapes} shapes of {self.pending} pods: there are no more than pods")
        if self.probed > self.nodes:
            raise UsageError(f"{self.probed} probed nodes of {self.nodes}: there are no more than nodes")
        if self.pairs > 1 and not self.attackers:
            raise UsageError(f"{self.pairs} pairs of attacks without attackers: say how many")
        for each in self.attacks[:1]:
            removal_seconds = (each.attack[1] - each.calm[0]) * REMOVAL / (1 - REMOVAL)
            if self.attackers * OBJECTS > removal_seconds * REMOVED_A_SECOND:
                raise UsageError(
                    f"{self.attackers} attackers, {self.pairs} pairs, {self.minutes:g} minutes: what an "
                    "attack creates would not be removed before the next one; choose fewer, or more minutes"
                )

    @property
    def seconds(self) -> float:
        """The length of the soak."""
        return self.minutes * 60

    @property
    def pending_from(self) -> float:
        """Seconds into the soak before which no pod that finds no room is created.

        Before, the operator probes: while pods wait for room it starts no probe.
        """
        return self.seconds / 5

    @property
    def quiet_until(self) -> float:
        """Seconds into the soak at which the first attack begins; its end without attacks."""
        return self.attacks[0].attack[0] if self.attackers else self.seconds

    @property
    def attacks(self) -> list[Attack]:
        """The attacks in the last seven tenths of the soak, in parts of equal length.

        A part begins with the time in which what the attack before it has created is removed, which counts
        as neither; then it is calm, as long as the attack after that, so that both percentiles are of as
        many pods.
        """
        if not self.attackers:
            return []
        begin, length = self.seconds * 0.3, self.seconds * 0.7 / (2 * self.pairs)
        found = list[Attack]()
        for pair, served in alternating((True, False), self.pairs):
            calm, attack, end = (begin + length * share for share in (REMOVAL, (1 + REMOVAL) / 2, 1.0))
            found.append(Attack(pair, served, (calm, attack), (attack, end)))
            begin = end
        return found


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
