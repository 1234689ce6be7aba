"""A DAG job: stages of equal tasks, each of which may start when all tasks of its parents have succeeded."""

from msgspec import Struct

from eclectus.model.objects import Amounts, Spec


class JobStage(Struct, frozen=True, gc=False):
    """A stage of a job. `parents`: indices into `Job.stages`, each smaller than the stage's own."""

    name: str
    tasks: int
    spec: Spec  # of each of its tasks
    workload: str = ""  # the kind of work, as `Task.workload` of its tasks
    seconds: float | None = None  # estimated run time of a task at mean speed; None: unknown
    parents: tuple[int, ...] = ()
    succeeded: int = 0  # tasks that have succeeded, as the job's controller has counted them
    asked_pool: str = ""  # the Pool that its pods ask for by a label of their own; empty: the job's
    max_parallel: int | None = None  # how many of its tasks may run at a time; None: no limit


class Job(Struct, frozen=True, gc=False):
    """One DagJob, as last seen. Its pods are the tasks whose `Task.job` is its uid, in its namespace."""

    uid: str
    namespace: str
    name: str
    stages: tuple[JobStage, ...]  # in topological order
    created: float = 0.0  # seconds since the epoch
    pool: str = ""  # the Pool that its pods ask for; without Pools, who the work is for. Empty: its namespace
    weight: float = 1.0  # a job of weight 2 is entitled to twice the share of one of weight 1
    altruism: float = 1.0  # probability with which it lends at an event, 0..1 (Carbyne, 2016, 3.5)
    suspended: bool = False
    deadline: float | None = None  # of its plan, as written before: seconds since the epoch; None: none yet
    slips: int = 0  # how often its deadline was moved to a later time
    slip_seconds: float = 0.0  # by how much in all
    lent_seconds: Amounts = ()  # what it has lent so far, as written before: amounts times seconds
    borrowed_seconds: Amounts = ()
    max_parallel: int | None = None  # how many of its tasks may run at a time; None: no limit

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class JobPlan(Struct, frozen=True, gc=False):
    """What the scheduler plans for a job: written to its status, so that it survives a restart."""

    share: Amounts  # what the job is entitled to; empty: it has ended
    finish_seconds: float | None  # from now to its end inside its share; None: an estimate is missing
    deadline: float | None  # seconds since the epoch
    slips: int = 0
    slip_seconds: float = 0.0
    lent: Amounts = ()  # of its share, what it leaves to others now
    borrowed: Amounts = ()  # what it holds above its share now
    reserved_node: str = ""  # which is kept free for one of its tasks; empty: none is
    lent_seconds: Amounts = ()  # in all, amounts times seconds: added by the engine
    borrowed_seconds: Amounts = ()
