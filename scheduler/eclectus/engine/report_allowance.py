"""How many pods are reported as waiting, by what the API server bears beside binds.

A report is two writes, and takes from binds what they need, while a bind ends a wait. So while binds go on
reports are limited as TCP limits what it sends (additive increase, multiplicative decrease; Chiu and Jain,
1989): the rate is halved in each second in which binds are answered slowly, and rises by so much in each in
which they are answered soon. All at once whenever answers are fast would make them slow, again and again.
"""

from math import inf

GRACE_SECONDS = 1.0  # shorter waits are not reported and cost no write
GRACE_BINDS = 20.0  # nor waits in which the API server answers fewer binds, one after the other
GRACE_SECONDS_MOST = 30.0  # up to this
ANSWERS = 16.0  # of binds, over which their time is averaged
SHARE = 0.05  # of a report for each bind: a report is two writes
REPORTS_A_SECOND = 0.1  # beside that, while answers are slow
RATE_MOST = 100.0  # the same while answers are fast: two hundred writes
RATE_LEAST = 1.0  # what is left of that after many seconds of slow answers
RATE_RAISED = 5.0  # by so much in each second of fast answers: 20 s from nothing to all
ADAPTED_SECONDS = 1.0  # between two changes of the rate, so that each is seen in the answers
SAVED_MOST = 500.0  # reports at once, where the rate was never cut
SAVED_CUT = 5.0  # the same where it was, or what a fifth of a second brings
REPORTS_IN_ADVANCE = 15.0  # of classes of which no pod is reported: an autoscaler knows nothing of them
BATCH_SECONDS = 0.1  # between reports, once the rate was cut: one by one each would cost a step of its own


class ReportAllowance:
    """How many reports may be made: any number, unless binds go on.

    Slow is what makes the grace longer than GRACE_SECONDS. Binds go on until none has been answered for as
    long as the grace, nor waits for its answer, but for one that waits for longer than any grace: that may
    wait for a volume.
    """

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}  # uid -> when its bind was sent, seconds
        self._mean = 0.0  # for which binds were unanswered, seconds
        self._sent_at = self._answered_at = -inf  # the last times, seconds
        self._rate = RATE_MOST  # reports a second while answers are fast
        self._left, self._as_of = SAVED_MOST, 0.0
        self._adapted_at = -inf  # when the rate was changed, seconds
        self.grace = GRACE_SECONDS  # for which a pod waits before it is reported, while binds go on

    @property
    def is_cut(self) -> bool:
        """Whether answers were slow of late: then few pods speak for all."""
        return self._rate < RATE_MOST

    @property
    def is_free(self) -> bool:
        """Whether a report may be made now, whether or not binds go on."""
        return self._rate == RATE_MOST and self._left >= 1.0

    def sent(self, uid: str, now: float) -> None:
        """A bind of this pod is sent."""
        self._sent[uid] = self._sent_at = now

    def answered(self, uid: str, before: float, now: float) -> None:
        """The pod is bound, its bind was refused, or it is gone; no effect if none was sent.

        `before`: the time of the last step, in which it was unanswered. Only until then has it certainly been
        so: where nothing happens for long, the answer has waited for this step.
        """
        sent = self._sent.pop(uid, None)
        if sent is not None:
            self._answered_at = now
            self._left += SHARE
            if before > sent or self._mean:
                self._mean += (before - sent - self._mean) / ANSWERS
                grace = min(max(GRACE_BINDS * self._mean, GRACE_SECONDS), GRACE_SECONDS_MOST)
                if grace > GRACE_SECONDS or self._rate < RATE_MOST:
                    self._adapt(grace, now)

    def _adapt(self, grace: float, now: float) -> None:
        """Halve the rate if answers are slow, raise it if they are not, once a second."""
        self.left(now)
        self.grace = grace
        passed = now - self._adapted_at
        if passed < ADAPTED_SECONDS and self.is_cut:
            return
        self._adapted_at = now
        if grace > GRACE_SECONDS:
            self._rate = max(self._rate / 2, RATE_LEAST)
        else:
            self._rate = min(self._rate + RATE_RAISED * passed, RATE_MOST)

    @property
    def _a_second(self) -> float:
        """Reports a second beside the share of binds."""
        return REPORTS_A_SECOND if self.grace > GRACE_SECONDS else self._rate

    def is_limited(self, now: float) -> bool:
        """Whether binds go on."""
        return now < self._limited_until

    @property
    def _limited_until(self) -> float:
        until = self._answered_at + self.grace
        return max(until, self._sent_at + GRACE_SECONDS_MOST) if self._sent else until

    def left(self, now: float, in_advance: float = 0.0) -> int:
        """How many reports may be made now, while they are limited."""
        most = max(SAVED_CUT, 2 * BATCH_SECONDS * self._a_second) if self.is_cut else SAVED_MOST
        self._left = min(self._left + self._a_second * (now - self._as_of), most)
        self._as_of = now
        return int(max(self._left + in_advance + 1e-6, 0.0))  # a little less than one would never be due

    def spend(self) -> None:
        """A report is made, while they are limited."""
        self._left = max(self._left - 1.0, -REPORTS_IN_ADVANCE)

    def due(self, since: float, in_advance: float = 0.0) -> float:
        """When the next report may be made if they are not free, of a pod that waits since then, seconds.

        After the grace, and when one is left or they are limited no more; in advance after GRACE_SECONDS.
        """
        a_second = self._a_second
        is_left_at = self._as_of + (max(1.0, BATCH_SECONDS * a_second) - in_advance - self._left) / a_second
        limited = max(since + (GRACE_SECONDS if in_advance else self.grace), is_left_at)
        return min(limited, max(since + GRACE_SECONDS, self._limited_until))
