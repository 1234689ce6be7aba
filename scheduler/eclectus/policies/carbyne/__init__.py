"""Carbyne: DAG jobs that lend each other what they do not need yet.

R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan, "Altruistic Scheduling in Multi-Resource Clusters",
OSDI 2016. `order`: which task is next. `planner`: shares and plans of all jobs. `planned_job`: one of them.
"""

from eclectus.policies.carbyne.order import Carbyne

__all__ = ["Carbyne"]
