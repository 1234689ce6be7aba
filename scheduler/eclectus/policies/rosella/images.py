"""What it takes a node to pull the images that it lacks, as part of the service time of a class.

The project's own. A node reports its images with their unpacked sizes. One that another node has is known by
size; what no node has counts as nothing, as it takes all nodes equally long. Of an image that several nodes
report with different sizes the largest counts.

    seconds on a node = bytes of the images that it lacks / bandwidth

All pods of a class have the same images, so this is computed once for a class, until another node has one of
them. Services never end, so no pull is long beside them: for these it is nothing.
"""

from collections.abc import Callable, Iterator

import numpy as np

from eclectus.framework import Floats, Task, TaskClass, View
from eclectus.maths.replanning import in_steps
from eclectus.policies.rosella.costs import DEAD_RATE, ClassCosts
from eclectus.policies.rosella.locality import DataPrice
from eclectus.policies.rosella.replan import Replan

BYTES = 1e6  # a MB


class ReplanWithPulls(Replan):
    """Re-planning in which a node pulls the images that it lacks before it runs a task."""

    def __init__(
        self,
        theta: float | None,
        preference_weight: float,
        price_of: Callable[[View, Task], DataPrice | None],
        bandwidth: float,
    ) -> None:
        """`bandwidth`: at which images are pulled, MB/s; the others as in Replan."""
        super().__init__(theta, preference_weight, price_of)
        self._bandwidth = bandwidth

    def epoch(self, view: View) -> int:
        """Another number also when other nodes have images."""
        return super().epoch(view) + view.cluster.images.changes

    def costs(self, view: View, task_class: TaskClass) -> ClassCosts:
        """Those of a class with the pulls."""
        costs, version = super().costs(view, task_class), _version(task_class)
        pulls = self._pull_seconds(task_class, version)
        if pulls is None:
            return costs
        return task_class.kept(_with_pulls, (costs, version, self._bandwidth), costs, pulls, version)

    def in_words(self, task_class: TaskClass) -> Iterator[str]:
        """How long pulls take, and where none is needed; nothing where images do not count."""
        seconds = self._pull_seconds(task_class, _version(task_class))
        if seconds is None or not len(rows := task_class.waitable_rows):
            return
        there, longest = seconds[rows], float(seconds[rows].max())
        if longest:
            count = np.count_nonzero(there == 0.0)
            yield f"{count} of {len(rows)} nodes have its images, others pull them for up to {longest:.3g} s"

    def _pull_seconds(self, task_class: TaskClass, version: tuple[int, ...]) -> Floats | None:
        """By row, shape [capacity]; None if 0 everywhere."""
        _, *of_images = version
        if task_class.spec.long_running or not any(of_images):
            return None
        return task_class.kept(_pull_seconds, (version, self._bandwidth), task_class, self._bandwidth)


def _with_pulls(costs: ClassCosts, pulls: Floats, version: tuple[int, ...]) -> ClassCosts:
    """The service time counts as longer by a factor: what makes a slot dear does so while it pulls, too."""
    run = 1.0 / in_steps(np.maximum(costs.speeds.rate, DEAD_RATE))
    return costs.with_factor(1.0 + pulls / run, version)


def _version(task_class: TaskClass) -> tuple[int, ...]:
    """Another one when another node has one of the images of the class, or there are more rows."""
    cluster = task_class.cluster
    return (cluster.capacity, *map(cluster.images.version, task_class.spec.images))


def _pull_seconds(task_class: TaskClass, bandwidth: float) -> Floats | None:
    """For what a node lacks of the images that other nodes have, at so many MB/s."""
    capacity = task_class.cluster.capacity
    missing = np.zeros(capacity)
    for name in dict.fromkeys(task_class.spec.images):
        sizes, _ = task_class.cluster.images.sizes(name, capacity)
        missing[sizes == 0] += sizes.max(initial=0)
    return missing / (BYTES * bandwidth) if missing.any() else None
