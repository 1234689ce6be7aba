"""What the command `eclectus scheduler` imports until it decides: its start-up time, without a clock."""

import socket
import subprocess
import sys

import yaml

# Each costs a hundredth to a few tenths of a second of CPU, some with what they import, and no pod is bound
# by it.
HEAVY = [
    "cryptography",
    "kubernetes",
    "pydantic",
    "requests",
    "urllib3",
    "aiohttp",
    "importlib.metadata",
    "difflib",
    "eclectus.sim",
    "eclectus.tape",
    "eclectus.explain.what_if",
    "eclectus.live.metrics_page",
    "eclectus.live.pages",
    "prometheus_client",
    "urllib.request",
    "http.client",
    "http.server",
    "email",
    "tempfile",
    "jsonschema",
    "numpy.ma",
    "numpy.testing",
    "zoneinfo",
    "statistics",
]
DEFAULT_POLICIES = {"line", "line.fifo", "order", "order.fifo", "relieve", "relieve.none"}
DEFAULT_POLICIES |= {"speculate", "speculate.none", "hold", "hold.none"}
MOST_MODULES, MOST_OF_OURS = 541, 220
"""A tenth of a second for every 150 modules of ours: one more is to be needed at the start."""
MOST_DATACLASSES = 60
"""Each takes 0.4 ms to make, a Struct a fortieth of that: settings and objects with defaults of their own."""
PROGRAM = """
import sys
from eclectus.cli.main import main
try:
    main()
finally:
    ours = [vars(module).values() for name, module in sys.modules.items() if name.startswith("eclectus")]
    classes = {each for values in ours for each in values if isinstance(each, type)}
    print(sum("__dataclass_fields__" in vars(each) for each in classes), *sys.modules)
"""


def run_scheduler(tmp_path, port, user, **server):
    """Start the command on a port; returns (modules that it has imported, what it has written to stderr)."""
    config, kubeconfig = tmp_path / "c.yaml", tmp_path / "kubeconfig"
    document = {"apiVersion": "eclectus.dev/v1alpha1", "kind": "SchedulerConfiguration"}
    server = {"port": port, "authentication": "delegated", **server}
    profiles = {"profiles": [{"schedulerName": "eclectus"}], "server": server}
    config.write_text(yaml.safe_dump(document | profiles))
    clusters = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}
    contexts = {"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
    kubeconfig.write_text(yaml.safe_dump(clusters | contexts | {"users": [{"name": "u", "user": user}]}))
    command = ["scheduler", "--config", str(config), "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1, done.stderr
    return set(done.stdout.split()), done.stderr


def test_the_scheduler_imports_nothing_heavy_before_it_decides(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        modules, text = run_scheduler(tmp_path, taken.getsockname()[1], {"token": "t"})
    assert "eclectus.live.scheduler_process" in modules, "it has come as far as its parts"
    assert not modules.intersection(HEAVY), text
    policies = {name.removeprefix("eclectus.policies.") for name in modules if ".policies." in name}
    others = {name for name in policies if name.partition(".")[0] not in {"table", "shared", "rosella"}}
    assert others == DEFAULT_POLICIES
    (dataclasses,) = (word for word in modules if word.isdigit())
    assert int(dataclasses) <= MOST_DATACLASSES
    assert len(modules - {dataclasses}) <= MOST_MODULES
    assert len([name for name in modules if name.startswith("eclectus")]) <= MOST_OF_OURS


def test_a_port_in_use_is_one_line_that_says_what_to_change(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, text = run_scheduler(tmp_path, port, {"token": "t"})
    (line,) = text.splitlines()
    assert line.startswith(f"error: cannot listen on 127.0.0.1:{port}: another process listens there")
    assert "set server.port to another port" in line


def test_a_certificate_that_cannot_be_read_is_one_line_with_its_name(tmp_path):
    files = {"tlsCertFile": str(tmp_path / "tls.crt"), "tlsPrivateKeyFile": str(tmp_path / "tls.key")}
    _, text = run_scheduler(tmp_path, 0, {"token": "t"}, **files)
    (line,) = text.splitlines()
    assert line.startswith("error: the certificate of the server cannot be read: ")
    assert files["tlsCertFile"] in line
