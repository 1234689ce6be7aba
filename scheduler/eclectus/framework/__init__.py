"""The extension points that policies implement, what they may read, and what they may answer.

`roles`: the roles a policy may play. `view`: what it may read. `actions`: what it may answer. `learner`: the
role of a learner. `traits`: what a policy says of itself, and what it needs. All that a policy needs is to be
imported from here, the values that these are made of included. docs/policies.md walks through them.
"""

from eclectus.accounts.node_prices import NodePrices
from eclectus.accounts.pools import Pools, pool_group
from eclectus.cluster.changelog import AnyRows, ChangeLog, Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.actions import (
    Action,
    Ask,
    Bind,
    Defer,
    Enqueue,
    Evict,
    Nominate,
    Preempt,
    Reason,
    ReliefAction,
    ReserveMany,
    Solution,
    Unschedulable,
    Wait,
    WouldReclaim,
)
from eclectus.framework.learner import Completion, Learn, LearnedCell, Speeds
from eclectus.framework.profile_settings import ProfileSettings
from eclectus.framework.roles import (
    Attempt,
    ClassQueue,
    Hold,
    JobPlanner,
    Line,
    Order,
    PendingTasks,
    Place,
    Profile,
    Reach,
    Refused,
    RefusedGang,
    Relieve,
    Siblings,
    Speculate,
    Straggler,
    Waited,
    groupings_of,
    needs_of,
)
from eclectus.framework.traits import (
    NEEDS,
    HoldTraits,
    LineTraits,
    Need,
    OrderTraits,
    PlaceTraits,
    Policy,
    RelieveTraits,
    SpeculateTraits,
    Traits,
)
from eclectus.framework.view import Ranking, View, Weigh
from eclectus.maths.min_cost_flow import COST_MOST, FlowProblem, Ints
from eclectus.maths.numbers import Floats
from eclectus.model.errors import SettingsError
from eclectus.model.explanation import FlowArc, FlowPart
from eclectus.model.job import JobPlan
from eclectus.model.objects import Amounts, ClassKey, Input, Reservation, Spec, Task
from eclectus.model.settings import REQUIRED, Setting, setting

__all__ = [
    "COST_MOST", "NEEDS", "REQUIRED", "Action", "Amounts", "AnyRows", "Ask", "Attempt", "Bind", "ChangeLog",
    "ClassKey", "ClassQueue", "Completion", "Defer", "Enqueue", "Evict", "Floats", "FlowArc", "FlowPart",
    "FlowProblem", "Hold", "HoldTraits", "Input", "Ints", "JobPlan", "JobPlanner", "Learn", "LearnedCell",
    "Line", "LineTraits", "Need", "NodePrices", "Nominate", "Order", "OrderTraits", "PendingTasks", "Place",
    "PlaceTraits", "Policy", "Pools", "Preempt", "Profile", "ProfileSettings", "Ranking", "Reach", "Reason",
    "Refused", "RefusedGang", "ReliefAction", "Relieve", "RelieveTraits", "Reservation", "ReserveMany",
    "Rows", "Setting", "SettingsError", "Siblings", "Solution", "Spec", "Speculate", "SpeculateTraits",
    "Speeds", "Straggler", "Task", "TaskClass", "Traits", "Unschedulable", "View", "Wait", "Waited", "Weigh",
    "WouldReclaim", "groupings_of", "needs_of", "pool_group", "setting",
]  # fmt: skip
