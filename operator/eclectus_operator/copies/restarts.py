"""Whether the pods of a Job may be ended so that it makes others, at no cost of its `backoffLimit`.

Checked on the Job itself before each restart, since its controller decides what the end of a pod means: a
pod that is deleted counts as failed unless the Job's `podFailurePolicy` ignores pods with the condition
DisruptionTarget. `podReplacementPolicy: Failed` has the controller wait for the end of the pod, so that no
two do the work at a time. Only a task with an index is known again, so as to be restarted once.
"""

from collections.abc import Mapping

from eclectus.kubeclient.client import Object
from eclectus_operator.observed import DISRUPTION

HINT = (
    f"podFailurePolicy: {{rules: [{{action: Ignore, onPodConditions: [{{type: {DISRUPTION}}}]}}]}}, "
    "podReplacementPolicy: Failed and completionMode: Indexed"
)


def why_not(job: Object) -> str:
    """Why no pod of this Job is restarted; empty if it may be."""
    spec, name = job.get("spec") or {}, job["metadata"]["name"]
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or [{}]
    missing = [
        text
        for text, is_there in {
            f"as the first rule of its podFailurePolicy Ignore on {DISRUPTION}": _ignores(rules[0]),
            "podReplacementPolicy: Failed": spec.get("podReplacementPolicy") == "Failed",
            "completionMode: Indexed": spec.get("completionMode") == "Indexed",
        }.items()
        if not is_there
    ]
    return f"its Job {name} lacks {' and '.join(missing)}; it needs {HINT}" if missing else ""


def _ignores(rule: Mapping[str, object]) -> bool:
    """Whether the rule ignores the end of a pod that was disrupted; an earlier one could fail the Job."""
    conditions = rule.get("onPodConditions") or ()
    return rule.get("action") == "Ignore" and any(
        each.get("type") == DISRUPTION and each.get("status", "True") == "True"
        for each in conditions  # type: ignore[attr-defined]
    )
