"""A cluster with a pod in each state that an explanation knows, one scheduler, and those who may ask it."""

from contextlib import contextmanager
from types import SimpleNamespace

from live_cluster import Admin, Scheduler, pod, wait
from secured_pages import page, token_of

NAMESPACE, ELSEWHERE = "explain", "explain-elsewhere"
CORE, RBAC = "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SPARING = "explain-sparing"  # the schedulerName of a profile that evicts nobody
PROFILES = [
    {"schedulerName": name, "place": {"policy": "least-allocated"}, "relieve": {"policy": relieve}}
    for name, relieve in (("eclectus", "preemption"), (SPARING, "none"))
]
DELEGATED = {"port": 0, "authentication": "delegated"}


def on(node, **rules):
    """Affinity to one node, and further rules."""
    required = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [required]}}
    return {"nodeAffinity": terms, **rules}


def running(name, node, **spec):
    return pod(name, work=3600, affinity=on(node), **spec)


def labelled(body, app):
    body["metadata"]["labels"] = {"app": app}
    return body


APART = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "guard"}}, "topologyKey": "half"}
    ]
}
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
PLACED = [  # bound first
    running("bound", "n09"),
    labelled(running("guard", "n01"), "guard"),
    labelled(running("spread-0", "n02"), "spread"),
    *(labelled(running(f"low-{at}", "n03", cpu="1"), "budgeted") for at in range(4)),
]
WAITING = [
    pod("cpu", cpu="100"),
    pod("taint", affinity=on("n00")),
    pod("affinity", nodeSelector={"half": "c"}),
    pod("apart", affinity=on("n01", podAntiAffinity=APART)),
    labelled(pod("spread-1", affinity=on("n02"), topologySpreadConstraints=[SPREAD]), "spread"),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    pod("typo", scheduler="eclectsu"),
    pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "none"}]),
    pod("budget", cpu="2", affinity=on("n03"), scheduler=SPARING, priorityClassName="explain-urgent"),
    pod("nominated", nodeSelector=NEXT["n04"]),
    pod("crowded", nodeSelector=NEXT["n05"]),
]


@contextmanager
def explained_cluster(control_plane, kubelets, directory):
    """The pods of the tables above, and tokens of two readers: `explain-pods` and `explain-all`."""
    kubelets.reset()
    with (
        Admin(control_plane.kubeconfig, NAMESPACE) as admin,
        Admin(control_plane.kubeconfig, ELSEWHERE) as other,
    ):
        mark(admin, [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}], NEXT)
        admin.send("POST", CLASSES, {"metadata": {"name": "explain-urgent"}, "value": 1000})
        scheduler = Scheduler(
            directory, control_plane.kubeconfig, profiles=PROFILES, server=DELEGATED
        ).start()
        try:
            scheduler.wait_deciding()
            populate(admin, other)
            tokens = readers(admin)
            found = SimpleNamespace(admin=admin, scheduler=scheduler, tokens=tokens, plane=control_plane)
            wait("the roles count", lambda: all(may_ask(scheduler, each) for each in tokens.values()))
            wait("the pods are reported", lambda: is_settled(admin))
            yield found
        finally:
            scheduler.kill()
            admin.remove_claims()
            admin.send("DELETE", f"{CLASSES}/explain-urgent")
            for name in ("explain-pods", "explain-all"):
                for kind in ("clusterrolebindings", "clusterroles"):
                    if admin.get(f"{RBAC}/{kind}/{name}"):
                        admin.send("DELETE", f"{RBAC}/{kind}/{name}")
            mark(admin, None, {node: dict.fromkeys(labels) for node, labels in NEXT.items()})


def mark(admin, taints, labels):
    admin.patch(f"{CORE}/nodes/n00", {"spec": {"taints": taints}})
    for node, of_node in labels.items():
        admin.patch(f"{CORE}/nodes/{node}", {"metadata": {"labels": of_node}})


def populate(admin, other):
    admin.create(PLACED)
    other.create([running("full", "n05", cpu="4")])
    wait("the pods on nodes run", lambda: admin.phases().get("Running") == len(PLACED) and other.bound())
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
    admin.create(WAITING)


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


def may_ask(scheduler, token):
    return page(scheduler.address, f"/explain/pods/{NAMESPACE}/cpu", token)[0] == 200
