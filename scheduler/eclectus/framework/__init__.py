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
    ClassQueue,
    JobPlanner,
    Line,
    Order,
    PendingTasks,
    Place,
    Profile,
    Refused,
    Relieve,
    needs_of,
)
from eclectus.framework.traits import (
    NEEDS,
    LineTraits,
    Need,
    OrderTraits,
    PlaceTraits,
    Policy,
    RelieveTraits,
    Traits,
)
from eclectus.framework.view import View

__all__ = [
    "NEEDS",
    "Action",
    "Bind",
    "ClassQueue",
    "Completion",
    "Defer",
    "Enqueue",
    "Evict",
    "JobPlanner",
    "Learn",
    "LearnedCell",
    "Line",
    "LineTraits",
    "Need",
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
    "RelieveTraits",
    "ReserveMany",
    "Speeds",
    "Traits",
    "Unschedulable",
    "View",
    "Withheld",
    "needs_of",
]  # fmt: skip
