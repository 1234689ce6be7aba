"""Questions as users write them: the changes, and which policy is asked."""

from collections.abc import Sequence

from eclectus.config.changes import read_changes
from eclectus.explain.what_if import Question
from eclectus.model.errors import QuestionError
from eclectus.model.printed import nearest
from eclectus.policies import table


def read_question(texts: Sequence[str], as_policy: str, namespace: str) -> Question:
    """The question; `namespace`: of pods that are named without one. Raises QuestionError."""
    if not texts and not as_policy:
        raise QuestionError("nothing is asked: say what would be other (what-if), or which policy decides")
    changes = read_changes(texts, namespace)
    if as_policy and as_policy not in table.PLACE:
        raise QuestionError(
            f"there is no Place policy {as_policy!r}; {nearest(as_policy, list(table.PLACE))}"
        )
    return Question(changes, tuple(texts), table.PLACE[as_policy]() if as_policy else None)
