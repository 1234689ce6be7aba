"""What the commands that ask a cluster import for an answer: their start-up time, without a clock."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import yaml

# Each costs a hundredth to a second of CPU, some with what they import; a whole answer costs a fifth.
HEAVY = {
    "aiohttp",
    "cryptography",
    "eclectus.cluster",
    "eclectus.config.configuration",
    "eclectus.config.jobs",
    "eclectus.config.queues",
    "eclectus.engine",
    "eclectus.explain",
    "eclectus.feasibility",
    "eclectus.framework",
    "eclectus.kube.translate",
    "eclectus.live",
    "eclectus.policies",
    "eclectus.sim",
    "email",
    "http.client",
    "kubernetes",
    "numpy",
    "pandas",
    "prometheus_client",
    "random",
    "rich",
    "statistics",
    "urllib.request",
    "uvloop",
}
OF_AN_ANSWER = {"asyncio", "ssl", "yaml"}
MOST_MODULES, MOST_OF_ITS_OWN = 235, 20
"""Of `version`, which asks the API server one question, and of any other command beyond these. Each costs a
thousandth of a second: one more is to be needed for an answer."""
PROGRAM = "import sys\nfrom eclectus.cli.main import main\ntry:\n main()\nfinally:\n print('|', *sys.modules)"
POD = {"namespace": "mine", "name": "p", "state": "unschedulable", "summary": "nothing is left of cpu"}
WHAT_IF = {"changes": ["priority=1"], "summary": "it would fit", "withRoomBefore": 0, "withRoom": 1}
WHAT_IF |= {"rules": [], "placement": {"policy": "kube", "answered": "noRoom"}, "pod": POD}
VISIBILITY = "/apis/visibility.eclectus.dev/v1alpha1"
ANSWERS = {
    "/version": {"gitVersion": "v1.37.0"},
    VISIBILITY: {"resources": [{"name": "pods/explanation"}, {"name": "pods/what-if"}]},
    f"{VISIBILITY}/namespaces/mine/pods/p/explanation": POD,
    f"{VISIBILITY}/namespaces/mine/pods/p/what-if": WHAT_IF,
}
LISTS = ("pods", "nodes", "dagjobs", "pools", "nodeprofiles", "leases", "configmaps", "pendingpods")


class Answering(BaseHTTPRequestHandler):
    """Lists are empty, and one pod is explained."""

    def do_GET(self):
        path = self.path.partition("?")[0]
        body = ANSWERS.get(path) or {"metadata": {}, "items": []}
        self.send_response(200 if path in ANSWERS or path.endswith(LISTS) else 404)
        content = json.dumps(body).encode()
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """Of an API server that answers."""
    path = tmp_path_factory.mktemp("k") / "config"
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}
        users = [{"name": "u", "user": {"token": "t"}}]
        entries = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "x"}
        path.write_text(yaml.safe_dump(entries))
        yield path
        server.shutdown()


@pytest.fixture(scope="module")
def of_version(kubeconfig):
    """The modules of the command that asks least."""
    return imported("version", "--kubeconfig", kubeconfig)[1]


def imported(*command):
    """(what the command prints, the modules that it has imported)."""
    run = [sys.executable, "-c", PROGRAM, *map(str, command)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    text, _, modules = done.stdout.rpartition("|")
    return text, set(modules.split())


def below(modules, packages):
    """Which of the packages these modules are of."""
    return {each for each in packages for name in modules if f"{name}.".startswith(f"{each}.")}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["version"], "v1.37.0"),
        (["pending"], "no Eclectus scheduler was found"),
        (["explain", "pod/p"], "nothing is left of cpu"),
        (["explain", "pod/p", "--what-if", "request.cpu=1"], "it would fit"),
        (["speeds"], "no speeds have been learned yet"),
        (["dag"], "there is no DagJob"),
        (["pools"], "there are no Pools"),
    ],
)
def test_an_answer_of_the_cluster_needs_nothing_heavy(kubeconfig, of_version, command, words):
    text, modules = imported(*command, "--kubeconfig", kubeconfig)
    assert words in text
    assert not below(modules, HEAVY)
    assert len(of_version) <= MOST_MODULES
    assert len(modules - of_version) <= MOST_OF_ITS_OWN


def test_a_translation_of_queues_asks_no_cluster(tmp_path):
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"}}
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump(queue | {"spec": {"weight": 2}}))
    text, modules = imported("pools", "import", tmp_path / "queues.yaml")
    assert "kind: Pool" in text
    assert not below(modules, (HEAVY | OF_AN_ANSWER) - {"eclectus.config.queues", "yaml"})


@pytest.mark.parametrize("command", [[], ["pending"], ["pools"], ["dag"], ["speeds"], ["ui"]])
def test_help_needs_nothing_of_an_answer(command):
    _, modules = imported(*command, "--help")
    verbs_need = (
        {"eclectus.config.jobs", "eclectus.config.queues", "yaml"}
        if command in (["dag"], ["pools"])
        else set()
    )
    assert not below(modules, (HEAVY | OF_AN_ANSWER) - verbs_need)


@pytest.mark.parametrize(
    "words", [["pools", "-o", ""], ["dag", ""], ["dag", "suspend", "--con"], ["pending", "-"]]
)
def test_completion_needs_nothing_of_an_answer(words):
    code = "import sys\nfrom eclectus.cli.main import for_kubectl, program\n"
    code += f"print(*for_kubectl(program, {words}), '|', *sys.modules)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    text, _, modules = done.stdout.rpartition("|")
    assert len(text.split()) > 1, "it has completed something"
    assert not below(modules.split(), HEAVY | OF_AN_ANSWER)
