"""What a job has lent of its share: P(altruism), drawn for room and not for the whole job.

The paper draws for each job at every event: with probability P the job starts only what is due and leaves the
rest of its share to others, otherwise it starts all that its share holds (Grandl and others, OSDI 2016). As a
draw for the whole share this is a step and no knob: what a draw keeps starts and is not preempted, and what
it lends is drawn for again at the next event. There are many, so a job with P = 0.75 ends up lending little.

At an event others take what is lent. So in the paper, too, a draw can only be about what has become free
since the one before, and that is how it is read here:

- what is lent stays lent until it is used: only for a due task does the job ask for it back;
- a step in which something of a job changes draws once for all that is free and not lent, if a task that
  waits could start in it. Otherwise nothing hangs on the draw;
- what a draw does not lend is kept until the next one: tasks start in it as if they were due.

With 0 all is kept and with 1 all is lent, and nothing is drawn. Another process knows no draws: it draws for
all that is free then.
"""

from __future__ import annotations

from collections.abc import Iterable


class LentRoom:
    """Of one job. `altruism`: the probability with which it lends what has become free.

    `amounts`: what is lent, by resource; empty for nothing, None for all that is free.
    """

    def __init__(self) -> None:
        self.altruism = 0.0
        self.amounts: tuple[float, ...] | None = ()

    @property
    def is_all(self) -> bool:
        """Whether all that is free is lent, whatever that is."""
        return self.amounts is None

    @property
    def is_drawn(self) -> bool:
        """Whether chance decides what is lent."""
        return 0.0 < self.altruism < 1.0

    def set_altruism(self, altruism: float) -> bool:
        """Returns whether it is another one: then all that is free is to be drawn for again."""
        is_other = altruism != self.altruism
        if is_other:
            self.altruism = altruism
            self.take_back()
        return is_other

    def take_back(self) -> None:
        """Nothing is lent that was drawn for."""
        self.amounts = None if self.altruism >= 1.0 else ()

    def lend(self, free: Iterable[float]) -> None:
        """All that is free is lent."""
        self.amounts = tuple(free)

    def keep_within(self, free: Iterable[float]) -> None:
        """No more is lent than is free: what is used of it is drawn for anew once it is free again."""
        if self.amounts:
            self.amounts = tuple(map(min, self.amounts, free))
