"""Orders that are informed of what happens, beside being asked for keys and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eclectus.framework import Policy, Profile, View
from eclectus.model.objects import Task


class InformedOrders:
    """The Orders that need binds; the others cost nothing."""

    def __init__(self, profiles: Iterable[Profile], fault: Callable[[Policy, str], None]) -> None:
        self._orders = {
            each.scheduler_name: each.order for each in profiles if "binds" in each.order.traits.needs
        }
        self._fault = fault

    def placed(self, view: View, task: Task, row: int) -> None:
        """The task is bound to the node of this row."""
        order = self._orders.get(task.profile)
        if order is not None:
            try:
                order.placed(view, task, row)
            except Exception as error:  # a plug-in's defect must not stop the others
                self._fault(order, f"{type(error).__name__}: {error}")
