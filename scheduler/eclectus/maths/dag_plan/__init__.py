"""When the tasks of a DAG job must start so that it ends as early as its share allows, and not before.

Grandl and others, "Altruistic Scheduling in Multi-Resource Clusters" (Carbyne), OSDI 2016, section 3.
`planned` packs the remaining stages into the share (`packing.py`), then moves every task as late as the end
of that schedule allows (`latest_starts.py`). What must start now is due; the rest of the share may be lent.
"""

from eclectus.maths.dag_plan.deadline import Deadline
from eclectus.maths.dag_plan.plan import Chunk, Plan, planned
from eclectus.maths.dag_plan.stages import StageLeft

__all__ = ["Chunk", "Deadline", "Plan", "StageLeft", "planned"]
