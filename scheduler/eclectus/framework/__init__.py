"""The extension points that policies implement, what they may read, and what they may answer.

`roles`: the roles a policy may play. `view`: what it may read. `actions`: what it may answer.
`learner`: the role of a learner. All names are to be had from here. docs/framework.md walks through them.
"""

from eclectus.framework.actions import Action, Batch, Join, Place, Plan, Refuse, Why
from eclectus.framework.learner import Completion, Learn, Learned, Speeds
from eclectus.framework.roles import Accounted, Hold, Lane, Line, Order, PlacePolicy, Profile, Relieve, Turns
from eclectus.framework.view import View

__all__ = [
    "Accounted", "Action", "Batch", "Completion", "Hold", "Join", "Lane", "Learn", "Learned", "Line", "Order",
    "Place", "PlacePolicy", "Plan", "Profile", "Refuse", "Relieve", "Speeds", "Turns", "View", "Why",
]  # fmt: skip
