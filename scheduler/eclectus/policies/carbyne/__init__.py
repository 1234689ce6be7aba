"""Carbyne: DAG jobs that lend each other what they do not need yet.

R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan, "Altruistic Scheduling in Multi-Resource Clusters",
OSDI 2016. `order`: which task is next. `planner`: what has changed, and what follows from it. `planned_job`:
one job in its share, and the shares of all. `reserved_nodes`: which node is kept free for a task that waits
too long.
"""

from eclectus.policies.carbyne.order import Carbyne

__all__ = ["Carbyne"]
