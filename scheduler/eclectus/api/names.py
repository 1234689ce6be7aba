"""Every name of the `eclectus.dev` API: group, kinds, resource paths, labels and annotations.

Nothing else in the code spells the group's name; `tests/house/test_names.py` holds that.
"""

GROUP = "eclectus.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

NODE_PROBE, NODE_PROBES = "NodeProbe", "nodeprobes"  # kind and resource
NODE_PROFILE, NODE_PROFILES = "NodeProfile", "nodeprofiles"
DAG_JOB, DAG_JOBS = "DagJob", "dagjobs"
POOL, POOLS = "Pool", "pools"
SCHEDULER_CONFIGURATION = "SchedulerConfiguration"  # kind of the file
NODE_PROBES_PATH = f"/apis/{API_VERSION}/{NODE_PROBES}"
NODE_PROFILES_PATH = f"/apis/{API_VERSION}/{NODE_PROFILES}"
POOLS_PATH = f"/apis/{API_VERSION}/{POOLS}"
VISIBILITY_GROUP = f"visibility.{GROUP}"  # what the scheduler serves behind an APIService
VISIBILITY_API = f"{VISIBILITY_GROUP}/{VERSION}"
PENDING_PODS = "pendingpods"  # a resource of it
VISIBILITY_SERVICE = f"{VERSION}.{VISIBILITY_GROUP}"  # the APIService
DEFAULT_SCHEDULER = "default-scheduler"  # kube-scheduler's name unless it is configured otherwise
OPERATOR = f"{GROUP}/operator"  # reporting controller of the operator's events

# On pods of users.
POOL_LABEL = f"{GROUP}/pool"  # the name of the Pool that it asks for; on a namespace, that of its pods
CLASS_LABEL = f"{GROUP}/class"  # class of work, where the images do not tell
ESTIMATED_SECONDS = f"{GROUP}/estimated-seconds"  # expected run time on an average node
PATH_SECONDS = f"{GROUP}/path-seconds"  # longest chain of work from the pod's start to the end of its job
JOB_WORK_SECONDS = f"{GROUP}/job-work-seconds"  # work of its job not begun when it came, its own included
RELAXED_PREFERENCES = f"{GROUP}/relaxed-preferences"  # written with the bind: what its node does not meet
PROGRESS = f"{GROUP}/progress"  # annotation: what part of its work, or of each of its phases, is done
PHASE_WEIGHTS = f"{GROUP}/phase-weights"  # annotation: how much of its time each of its phases takes
INPUTS = f"{GROUP}/inputs"  # annotation: the data that the pod reads and the nodes that have it, in JSON
LEADER_SINCE = f"{GROUP}/leader-since"  # written with the bind: the acquireTime of its leader's Lease

# On pods that may be copied where they straggle, and on their copies.
SPECULATIVE_LABEL = f"{GROUP}/speculative"  # "true": a second pod may do the same work beside it
IDEMPOTENT = f"{GROUP}/idempotent"  # annotation, "true": nothing is wrong if its work is done twice
BENCHMARK_LABEL = f"{GROUP}/benchmark"  # "true": once it has succeeded, probes may do its work again
RESTARTABLE = f"{GROUP}/restartable"  # annotation, "true": its Job may do its work anew in another pod
ROOT_TASK = f"{GROUP}/root-task"  # annotation, "true": the pod leads its job and is never ended for others
COPY_OF_LABEL = f"{GROUP}/copy-of"  # the uid of the original: only the operator makes pods with it
ORIGINAL = f"{GROUP}/original"  # annotation of a copy, or of a probe that is one: the name of its original
STRAGGLING = f"{GROUP}/Straggling"  # condition, by the scheduler: a copy is expected to end earlier

# On the pods of a DagJob.
DAG_JOB_LABEL = f"{GROUP}/dag-job"  # its name
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"  # on the pods of a Job: its name
STAGE_LABEL = f"{GROUP}/stage"
TASK_INDEX_LABEL = f"{GROUP}/task-index"  # number of the task within its stage, from 0
OUTPUT = f"{GROUP}/output"  # annotation, with a dot and the name of a stage: what its tasks have handed on
MEMORY_FACTORS = f"{GROUP}/memory-factors"  # annotation: by how much memory was raised, of which containers

# On DagJobs.
JOB_KEY_LABEL = f"{GROUP}/job-key"  # the job of which this is a run: runs with one key share their history

# On the operator's probe pods.
INSTANCE_LABEL = f"{GROUP}/instance"  # the installation of the operator
RUN_ID_LABEL = f"{GROUP}/run-id"  # the NodeProbe, as a hash of its uid; marks any pod of a probe
SEQ_LABEL = f"{GROUP}/seq"  # number of the benchmark run
ATTEMPT_LABEL = f"{GROUP}/attempt"  # also on the pods of a DagJob, from 0
PROBE_LABEL = f"{GROUP}/probe"  # name of the NodeProbe
NODE_ANNOTATION = f"{GROUP}/node"  # the node to be measured
ROOM_ANNOTATION = f"{GROUP}/room"  # notional requests: what the probe would ask for if it reserved room

# By these a scheduler or an operator takes a pod for a probe: only the operator may create pods with them.
PROBE_KEYS = (INSTANCE_LABEL, RUN_ID_LABEL, SEQ_LABEL, PROBE_LABEL, NODE_ANNOTATION, ROOM_ANNOTATION)
# Nor may a template of a DagJob, whose pods the operator creates, have any of them.
OPERATOR_KEYS = (*PROBE_KEYS, COPY_OF_LABEL)

# Leases by which one installation of all does a work: at one place, whatever the settings say.
CLAIMS_NAMESPACE = "kube-system"
SCHEDULER_NAME_CLAIM = "eclectus-serves-"  # with the schedulerName
PROBES_CLAIM = "eclectus-runs-probes"

# On the Lease of a scheduler.
SCHEDULER_NAMES = f"{GROUP}/scheduler-names"  # annotation: the schedulerNames it serves, with commas
SERVER = f"{GROUP}/server"  # annotation: where its leader's server is, and the certificate, as JSON
LEASE_LABEL = f"{GROUP}/lease"  # on the Lease by which one scheduler of several leads: a hash of its name
PART_OF_LABEL = "app.kubernetes.io/part-of"  # of every object of the chart and of the Lease
PART_OF = "eclectus"

TAPE_PATH = "/debug/tape"  # on the scheduler's server: records a tape for clients that may post there

# On nodes.
NO_PROBES_LABEL = f"{GROUP}/no-probes"  # its presence excludes a node from benchmarks
KERNEL_LABEL = f"{GROUP}/kernel"  # major and minor version, such as 6.12
CORES_LABEL = f"{GROUP}/cores"  # physical cores
CLOCK_MHZ_LABEL = f"{GROUP}/clock-mhz"  # nominal clock of the cores
DISKS_LABEL = f"{GROUP}/disks"  # local disks
NIC_GBPS_LABEL = f"{GROUP}/nic-gbps"  # the fastest network interface, Gbit/s
GPU_MODEL_LABEL = f"{GROUP}/gpu-model"
MACHINE_LABELS = (KERNEL_LABEL, CORES_LABEL, CLOCK_MHZ_LABEL, DISKS_LABEL, NIC_GBPS_LABEL, GPU_MODEL_LABEL)

# Of the test bed, the simulator's manifests and the demo.
WORK_SECONDS = f"e2e.{GROUP}/work-seconds"  # annotation of a pod: its true run time at speed 1
REMOTE_FACTOR = (
    f"e2e.{GROUP}/remote-factor"  # annotation of a pod: how much longer it takes without its inputs
)
STRAGGLERS = f"e2e.{GROUP}/stragglers"  # annotation of a pod: share of the attempts, their factor, a seed
ARRIVAL_SECONDS = f"e2e.{GROUP}/arrival-seconds"  # annotation of a pod or job: when it is created
PROBED_LABEL = f"demo.{GROUP}/probed"
RESERVED_TAINT = f"demo.{GROUP}/reserved"
