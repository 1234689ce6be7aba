"""Whose writes are whose: of engine and scheduler, of Argo's executor, of kubelets and of users."""

from collections.abc import Mapping

TASK_RESULTS = "workflowtaskresults"
# Kubelets alone write these here: each pod has room, so no scheduler writes into a status that it waits.
_OF_KUBELETS = ("PATCH pods/status", "PATCH nodes/status")
_OF_USERS = ("POST dagjobs", "POST workflows")
_OF_THE_EXECUTOR = (f"POST {TASK_RESULTS}", f"PATCH {TASK_RESULTS}")


def of_engine_and_scheduler(found: Mapping[str, int]) -> dict[str, int]:
    """Those that are neither of the kubelets nor of the bench, which plays users and Argo's executor."""
    others = (*_OF_KUBELETS, *_OF_USERS, *_OF_THE_EXECUTOR)
    return {what: count for what, count in found.items() if count and what not in others}


def of_executor(found: Mapping[str, int]) -> int:
    """Those by which a pod of Argo reports what it has done."""
    return sum(found.get(what, 0) for what in _OF_THE_EXECUTOR)
