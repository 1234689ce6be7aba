"""Carbyne: DAG jobs that lend each other what they do not need yet.

R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan, "Altruistic Scheduling in Multi-Resource Clusters",
OSDI 2016. `order`: which task is next, and which node is kept free for one that waits too long. `planner`:
what has changed, and what follows from it. `planned_job`: one job in its share, and the shares of all.
`lent_room`: what a job has lent of it, by chance. `paces`: how long tasks take where they may run.
`bookings`: what plans are sure of, and why no job ends later than in its share (`overhang: bounded`).
"""

from eclectus.policies.carbyne.order import Carbyne

__all__ = ["Carbyne"]
