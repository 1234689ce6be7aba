"""Carbyne: DAG jobs that lend each other what they do not need yet.

R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan, "Altruistic Scheduling in Multi-Resource Clusters",
OSDI 2016. `order`: which task is next. `planner`: what has changed, and what follows from it. `shares`: who
is entitled to what; `plain_pods`: the pods beside the jobs. `planned_job`: one job in its share; `paces`:
how long its tasks are expected to run; `next_starts`: when more of it becomes due; `changed_plans`: what is
written to its status. `reserved_nodes`, `room_soon`: which node is kept free for a task that waits too long.
"""

from eclectus.policies.carbyne.order import Carbyne

__all__ = ["Carbyne"]
