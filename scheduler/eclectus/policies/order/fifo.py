"""First in, first out: kube-scheduler's queue order (PrioritySort).

Higher `spec.priority` first, then the earlier creation, then the earlier entry into the queue. A pod that
was unschedulable keeps its position: its creation time does not change, not even with a restart.
"""

from dataclasses import dataclass

from eclectus.framework import Order, OrderTraits


@dataclass(frozen=True)
class FifoOrder(Order):
    """Priority, then age."""

    traits = OrderTraits(ranks_groups=False)
