"""The extension points that policies implement, what they may read, and what they may answer.

`roles`: the roles a policy may play. `view`: what it may read. `actions`: what it may answer. `learner`: the
role of a learner. `traits`: what a policy says of itself. All names are to be had from here.
docs/framework.md walks through them.
"""

from eclectus.framework.actions import (
    Action,
    Bind,
    Defer,
    Enqueue,
    Evict,
    Nominate,
    Reason,
    ReliefAction,
    ReserveMany,
    Unschedulable,
    Withheld,
)
from eclectus.framework.learner import Completion, Learn, LearnedCell, Speeds
from eclectus.framework.node_prices import NodePrices
from eclectus.framework.profile_settings import ProfileSettings
from eclectus.framework.roles import (
    Accounted,
    ClassQueue,
    Line,
    Order,
    PendingTasks,
    Place,
    Profile,
    Refused,
    Relieve,
)
from eclectus.framework.traits import LineTraits, OrderTraits, PlaceTraits, Policy
from eclectus.framework.view import View

__all__ = [
    "Accounted",
    "Action",
    "Bind",
    "ClassQueue",
    "Completion",
    "Defer",
    "Enqueue",
    "Evict",
    "Learn",
    "LearnedCell",
    "Line",
    "LineTraits",
    "NodePrices",
    "Nominate",
    "Order",
    "OrderTraits",
    "PendingTasks",
    "Place",
    "PlaceTraits",
    "Policy",
    "Profile",
    "ProfileSettings",
    "Reason",
    "Refused",
    "ReliefAction",
    "Relieve",
    "ReserveMany",
    "Speeds",
    "Unschedulable",
    "View",
    "Withheld",
]  # fmt: skip
