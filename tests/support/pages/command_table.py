"""Where each command that a code block of a page names is run.

A new command on a page gets an entry in exactly one of these tables; tests/house/test_commands.py checks it.
"""

# Run by tests/system/test_page_commands.py within `make test-fast`: seconds, no control plane.
FAST = {
    "eclectus simulate my-cluster --plot my-cluster.html",
    "eclectus policies",
    "eclectus policies rosella",
    "eclectus scenarios",
    "python -m eclectus_e2e demo --help",
    "python -m eclectus_e2e nodes > nodes.json",
}

# Run on the cluster of `make up`, once it has learned, by tests/system/test_first_commands.py in `make test`.
LIVE = {
    "make up",
    "kubectl eclectus dag diamond",
    "kubectl eclectus pending",
    "kubectl eclectus speeds",
    "make status",
    "make down",
}

# Run by tests/system/test_page_commands.py within `make test-slow`: command -> minutes on two idle cores.
SLOW = {
    "eclectus simulate ablations": 10,
    "eclectus simulate alike": 3,
    "eclectus simulate new-nodes": 3,
    "eclectus simulate mixed": 10,
    "eclectus simulate perturbation --set 'events=[{at: 200s, action: scale, group: slow, factor: 16}]'"
    " --set workload.poisson.load=0.25 --set measure.warmUp=0.33 --profile eclectus --profile probes": 10,
    "eclectus simulate two-speeds": 3,
    "eclectus simulate two-speeds --seeds 10 --jobs 4 --plot two-speeds.html --json two-speeds.json": 5,
    "eclectus simulate two-speeds --set workload.poisson.load=0.9"
    " --set profiles.two-choices.place.compare=wait": 5,
    "make bench": 60,
    "make bench BENCH='--only simulator --tasks 100000'": 3,
    "make bench BENCH=--quick": 6,
    "make carbyne": 45,
    "make compare": 55,
    "make demo": 22,
    "make demo DEMO=--quick": 2,
    "make demo-full": 33,
    "make conformance": 25,
    "make chaos": 32,
    "make differential": 35,
    "make e2e-upstream": 5,
    "make held-out": 5,
    "make phoenix": 30,
    "make pressure": 65,
    "make report": 30,
    "make soak": 35,
    "make stragglers": 12,
    "make tenants": 6,
    "make versions": 30,
}

# Not run: pattern (`*` stands for anything) -> why not.
NOT_RUN = {
    "kubectl eclectus explain *": "needs a pod that waits; tests/system/test_explain.py asks a scheduler",
    "eclectus": "no command: a profile of this name in the output of a comparison",
    "eclectus scheduler --config *": "needs a cluster; every test in tests/system starts a scheduler",
    "eclectus explain *": "a pod and a tape of the reader's; tests/cli/test_explain.py runs it",
    "eclectus simulate my-cluster.yaml *": "a file of the reader's, like the shipped my-cluster",
    "eclectus config import *": "a file of the reader's; tests/config/test_upstream.py imports such files",
    "kubectl eclectus dag nightly-*": "a job of the reader's",
    "kubectl eclectus dag * nightly-*": "the same; tests/system/operator/test_dag_jobs.py changes one",
    "kubectl eclectus pools import *": "a file of the reader's; tests/config/queues imports such files",
    "eclectus check-config *": "a file of the reader's; tests/cli/test_configure_page.py checks examples",
    "eclectus simulate openb *": "needs a data set; tests/sim/workloads reads it where there is one",
    "helm *": "needs images that nodes can pull; tests/realnodes/test_chart.py does it with helm's SDK",
    "make bench BENCH='--only decisions'": "a part of `make bench`",
    "make bench BENCH='--only engine'": "a part of `make bench`",
    "make bench BENCH='--only plans'": "a part of `make bench`",
    "make bench BENCH='--only pools*": "two minutes; tests/bench/test_many_pools.py tests its parts",
    "make bench BENCH='--quick --only tenants'": "compiles Kueue; see the next one",
    "make bench BENCH='--only tenants*": "compiles Kueue; tests/bench/test_contest.py tests its parts",
    "make bench BENCH='--only prebind'": "a part of `make bench`",
    "make bench BENCH='--only preemption'": "a part of `make bench`",
    "make bench BENCH='--only rules'": "a part of `make bench`",
    "make bench BENCH='--only requests'": "a part of `make bench`; tests/bench/test_quick.py runs it",
    "make bench BENCH='--only starved'": "an hour; tests/bench/test_starved.py checks what it reckons",
    "make bench BENCH='--only simulator'": "a part of `make bench`",
    "make bench BENCH='--only workloads*": "parts of `make bench`; tests/bench/test_quick.py runs some",
    "make bench BENCH='--pairs 7 --nodes 15000 --pods 3000'": "`make bench`, longer",
    "make bench BENCH=--profile": "no measurement, for a reader",
    'make demo DEMO="--loads 0.*': "`make demo` at other loads",
    'make demo DEMO="--pairs 1"': "a part of `make demo`",
    "make carbyne CARBYNE=*": "a part of `make carbyne`; tests/bench/test_carbyne.py runs a short one",
    "make demo DEMO=dags": "a part of `make demo-full`",
    "make demo DEMO=scarce": "tests/e2e/demo/test_live.py runs a short one",
    "make demo DEMO=perturbations": "a part of `make demo-full`",
    "make demo DEMO=stream": "a part of `make demo-full`",
    "make demo NODES=real": "needs root and Debian packages; tests/realnodes starts the same nodes",
    "make chaos *": "a part of `make chaos`; tests/e2e/chaos plays forty stories",
    "make pressure *": "a part of `make pressure`; tests/e2e/chaos climbs a short one",
    "make differential *": "a part of `make differential`; tests/e2e/differential runs some clusters",
    "make versions MINOR=*": "a part of `make versions`",
    "make e2e-upstream UPSTREAM=*": "`make e2e-upstream` with another scheduler, for comparison",
    "make images*": "needs root and Debian packages; tests/e2e/testbed/test_images_live.py builds them",
    "make lint": ".ci/run runs it before the tests",
    "make phoenix PHOENIX=*": "a part of `make phoenix`; tests/bench/test_phoenix.py runs a short one",
    "make soak SOAK=*": "`make soak` with other sizes; tests/bench/test_soak.py runs the quick one",
    "make tenants TENANTS=--quick": "a part of `make tenants`; tests/bench/test_tenants.py runs a short one",
    "make stragglers STRAGGLERS=*": "a part of `make stragglers`; tests/bench/test_stragglers.py runs one",
    "make test": "these tests",
    "make test-fast": "these tests",
    "make test-slow": "these tests",
    "make up NODES=nodes.json": "other nodes; tests/e2e/testbed/test_nodes.py reads such files",
    "make up UP=*": "tests/e2e/testbed/test_up.py does the same",
    "make up NODES=real": "needs root and Debian packages; tests/realnodes starts the same nodes",
}
