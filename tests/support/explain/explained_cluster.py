"""A cluster with a pod in each state that an explanation knows, one scheduler, and those who may ask it."""

from contextlib import contextmanager
from types import SimpleNamespace

from eclectus.kubeclient.api_errors import MissingError, RejectedError
from eclectus_e2e.testbed.controlplane.components import POD_GROUPS_VERSION
from live_cluster import Admin, Scheduler, pod, wait
from pod_groups import pod_group
from secured_pages import page, token_of

NAMESPACE, ELSEWHERE = "explain", "explain-elsewhere"
CORE, RBAC = "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE_CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", f"{CORE}/persistentvolumes"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
POLICY_BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
POD_GROUPS = f"/apis/{POD_GROUPS_VERSION}/namespaces/{NAMESPACE}/podgroups"
SPARING = "explain-sparing"  # the schedulerName of a profile that evicts nobody
LEARNING = "explain-learning"  # and of one for which a dead node is the last choice
PROFILES = [
    {"schedulerName": name, "place": {"policy": place}, "relieve": {"policy": relieve}}
    for name, place, relieve in (
        ("eclectus", "least-allocated", "preemption"),
        (SPARING, "least-allocated", "none"),
        (LEARNING, "rosella", "none"),
    )
]
NOBODY_BINDS = "nobody binds this pod"
LEARN = {"policy": "rosella", "spareShare": 0.5}  # nodes count as dead five times as soon
DELEGATED = {"port": 0, "authentication": "delegated"}


def on(*nodes, **rules):
    """Affinity to these nodes, and further rules."""
    required = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes
    ]
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required}}
    return {"nodeAffinity": terms, **rules}


def running(name, node, **spec):
    return pod(name, work=3600, affinity=on(node), **spec)


def labelled(body, app):
    body["metadata"]["labels"] = {"app": app}
    return body


def picky(name, node):
    """A pod whose preference its node does not meet."""
    affinity = on(node)
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [PREFERRED]
    return pod(name, work=3600, affinity=affinity)


APART = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "guard"}}, "topologyKey": "half"}
    ]
}
TOGETHER = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "half"}
    ]
}
PREFERRED = {
    "weight": 10,
    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
}
ZONE = "topology.kubernetes.io/zone"
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "half",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
    "nodeAffinityPolicy": "Ignore",
}
NEXT = {  # two labels of each: for a pod that selects both, every other node lacks two things
    node: {"explain.example/x": node, "explain.example/y": node} for node in ("n04", "n05")
}
MARKS = {**NEXT, "n06": {ZONE: "explain-a"}}
PLACED = [  # bound first
    running("bound", "n09"),
    picky("picky", "n08"),
    labelled(running("guard", "n01"), "guard"),
    labelled(running("spread-0", "n02"), "spread"),
    *(labelled(running(f"low-{at}", "n03", cpu="1"), "budgeted") for at in range(4)),
]
WAITING = [
    pod("cpu", cpu="100"),
    pod("taint", affinity=on("n00")),
    pod("affinity", nodeSelector={"half": "c"}),
    pod("apart", affinity=on("n01", podAntiAffinity=APART)),
    pod("together", affinity=on("n01", podAffinity=TOGETHER)),
    pod("far", affinity=on("n06"), volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "far"}}]),
    pod("refused", affinity=on("n09")),
    labelled(pod("spread-1", affinity=on("n02"), topologySpreadConstraints=[SPREAD]), "spread"),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    pod("typo", scheduler="eclectsu"),
    pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "none"}]),
    pod("budget", cpu="2", affinity=on("n03"), scheduler=SPARING, priorityClassName="explain-urgent"),
    pod("nominated", nodeSelector=NEXT["n04"]),
    pod("crowded", nodeSelector=NEXT["n05"]),
    *(pod(f"member-{at}", schedulingGroup={"podGroupName": "train"}) for at in range(2)),
]

# What is said of those whose claim or PodGroup, or another member, may be seen after them.
LATER = {
    "far": "had no available volume zone",
    **dict.fromkeys(("member-0", "member-1"), "has 2 of the 4 pods"),
}


@contextmanager
def explained_cluster(control_plane, kubelets, directory):
    """The pods of the tables above, and tokens of two readers: `explain-pods` and `explain-all`."""
    kubelets.reset()
    with (
        Admin(control_plane.kubeconfig, NAMESPACE) as admin,
        Admin(control_plane.kubeconfig, ELSEWHERE) as other,
    ):
        mark(admin, [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}], MARKS)
        admin.send("POST", CLASSES, {"metadata": {"name": "explain-urgent"}, "value": 1000})
        scheduler = Scheduler(
            directory, control_plane.kubeconfig, profiles=PROFILES, server=DELEGATED, learn=LEARN
        ).start()
        try:
            scheduler.wait_deciding()
            populate(admin, other)
            tokens = readers(admin)
            found = SimpleNamespace(admin=admin, scheduler=scheduler, tokens=tokens, plane=control_plane)
            wait("the roles count", lambda: all(may_ask(scheduler, each) for each in tokens.values()))
            wait("the pods are reported", lambda: is_settled(admin))
            wait("also what is seen after them", lambda: all(says(admin, *each) for each in LATER.items()))
            yield found
        finally:
            scheduler.kill()
            admin.remove_claims()
            admin.send("DELETE", f"{CLASSES}/explain-urgent")
            for path in (VOLUMES, STORAGE_CLASSES, POLICIES, POLICY_BINDINGS):
                if admin.get(f"{path}/explain"):
                    admin.send("DELETE", f"{path}/explain")
            for name in ("explain-pods", "explain-all"):
                for kind in ("clusterrolebindings", "clusterroles"):
                    if admin.get(f"{RBAC}/{kind}/{name}"):
                        admin.send("DELETE", f"{RBAC}/{kind}/{name}")
            mark(admin, None, {node: dict.fromkeys(labels) for node, labels in MARKS.items()})


def mark(admin, taints, labels):
    admin.patch(f"{CORE}/nodes/n00", {"spec": {"taints": taints}})
    for node, of_node in labels.items():
        admin.patch(f"{CORE}/nodes/{node}", {"metadata": {"labels": of_node}})


def populate(admin, other):
    admin.create(PLACED)
    other.create([running("full", "n05", cpu="4"), running("busy", "n11", cpu="4")])
    wait("the pods on nodes run", lambda: is_running(admin, len(PLACED)) and is_running(other, 2))
    selector = {"matchLabels": {"app": "budgeted"}}
    budgets = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
    spec = {"minAvailable": 4, "selector": selector}
    admin.send("POST", budgets, {"metadata": {"name": "budgeted"}, "spec": spec})
    wait(
        "the budget has a status", lambda: admin.get(f"{budgets}/budgeted")["status"].get("expectedPods") == 4
    )
    other.create([pod("holds", cpu="4", scheduler="another", priorityClassName="explain-urgent")])
    path = f"{CORE}/namespaces/{ELSEWHERE}/pods/holds/status"
    other.patch(path, {"status": {"nominatedNodeName": "n04"}})
    put_volume_in_another_zone(admin)
    refuse_binds_of(admin, "refused")
    admin.send("POST", POD_GROUPS, pod_group("train", 4))
    admin.create(WAITING)


def is_running(admin, pods):
    return admin.phases().get("Running") == pods


def put_volume_in_another_zone(admin):
    """The claim `far` is bound to a volume of a zone to which no node belongs."""
    immediate = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"}
    admin.send("POST", STORAGE_CLASSES, {"metadata": {"name": "explain"}, **immediate})
    common = {"storageClassName": "explain", "accessModes": ["ReadWriteOnce"]}
    spec = {**common, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    metadata = {"name": "explain", "labels": {ZONE: "explain-b"}}
    admin.send("POST", VOLUMES, {"metadata": metadata, "spec": spec})
    claims = f"{CORE}/namespaces/{NAMESPACE}/persistentvolumeclaims"
    spec = {**common, "resources": {"requests": {"storage": "1Gi"}}}
    admin.send("POST", claims, {"metadata": {"name": "far"}, "spec": spec})
    wait("the claim is bound", lambda: admin.get(f"{claims}/far")["status"]["phase"] == "Bound")


def refuse_binds_of(admin, name):
    """From now on the API server refuses to bind the pod of this name."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    is_other = f"object.metadata.namespace != '{NAMESPACE}' || object.metadata.name != '{name}'"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": is_other, "message": NOBODY_BINDS}],
    }
    admin.send("POST", POLICIES, {"metadata": {"name": "explain"}, "spec": spec})
    spec = {"policyName": "explain", "validationActions": ["Deny"]}
    admin.send("POST", POLICY_BINDINGS, {"metadata": {"name": "explain"}, "spec": spec})
    wait("the policy is in force", lambda: is_bind_refused(admin, name))


def is_bind_refused(admin, name):
    """Whether a bind is refused before the API server finds out that there is no such pod yet."""
    metadata = {"name": name, "namespace": NAMESPACE}
    body = {"metadata": metadata, "target": {"kind": "Node", "name": "n09"}}
    try:
        admin.send("POST", f"{CORE}/namespaces/{NAMESPACE}/pods/{name}/binding", body)
    except MissingError:
        return False
    except RejectedError as error:
        return NOBODY_BINDS in str(error)
    return False


def readers(admin):
    """Tokens: of one who may read pods of the namespace, and of one who may read all pods and nodes."""
    for name, resources in (("explain-pods", ["pods"]), ("explain-all", ["pods", "nodes"])):
        rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]
        admin.send("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    for name, kind in (("explain-pods", "rolebindings"), ("explain-all", "clusterrolebindings")):
        place = f"namespaces/{NAMESPACE}/" if kind == "rolebindings" else ""
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        admin.send("POST", f"{RBAC}/{place}{kind}", binding)
    return {name: token_of(admin, name, NAMESPACE) for name in ("explain-pods", "explain-all")}


def is_settled(admin):
    """Every pod that the scheduler reports on has a condition."""
    silent = ("typo", "gated")  # of these the API server, or nobody, says so
    return all(
        admin.condition(each["metadata"]["name"])
        for each in WAITING
        if each["metadata"]["name"] not in silent
    )


def says(admin, name, text):
    return text in admin.condition(name).get("message", "")


def may_ask(scheduler, token):
    return page(scheduler.address, f"/explain/pods/{NAMESPACE}/cpu", token)[0] == 200
