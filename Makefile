# Developers' commands: `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILE = $(BIN)/uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet
.DEFAULT_GOAL := help
.PHONY: help venv up status down demo demo-full compare test test-slow test-fast oracles held-out rivals report lint bench rosella phoenix tenants stragglers quincy together carbyne soak e2e e2e-upstream conformance differential chaos pressure versions images release lock audit manifests clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

venv: $(VENV)/.ready ## the Python environment, from the locked versions: a minute or more
$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Eclectus needs Python 3.11 or newer; call: make PYTHON=python3.12")'
	@PYTHONPATH=e2e:hack $(PYTHON) -m eclectus_hack venv $(VENV)
	@touch $@

up: venv ## a cluster with Eclectus and 30 fake nodes: under a minute; the first time 5 to 10 minutes more (E2E=kind, NODES=real, PROFILE=full)
	@$(BIN)/python -m eclectus_e2e up $(if $(NODES),--nodes $(NODES)) $(if $(PROFILE),--profile $(PROFILE)) $(UP)

status: venv ## what of that cluster runs
	@$(BIN)/python -m eclectus_e2e status

down: venv ## stop that cluster and remove its files
	@$(BIN)/python -m eclectus_e2e down

demo: venv ## Eclectus beside kube-scheduler, in pairs, with intervals and a picture: 20 minutes (DEMO="--pairs 1": 5; NODES=real: 60)
	@$(BIN)/python -m eclectus_e2e demo $(NODES) $(DEMO)

demo-full: venv ## three loads and a baseline, changes of speed with probes, DAG jobs: 30 minutes (DEMO=--quick: 6)
	@$(BIN)/python -m eclectus_e2e demo full $(DEMO)

compare: venv ## five schedulers on sixty nodes where classes of pods rank the nodes differently: 50 minutes (DEMO=--quick: 3)
	@$(BIN)/python -m eclectus_e2e demo compare $(DEMO)

test: venv ## the pure tests, then those on a real control plane: 47 minutes (PYTEST="tests/engine -k bind": a part)
	@$(BIN)/python -m eclectus_hack test all $(PYTEST)

test-fast: venv ## the pure tests alone, without the long ones: 9 minutes on two idle cores
	@$(BIN)/python -m eclectus_hack test fast $(PYTEST)

test-slow: venv ## the long tests and oracles, 95 minutes; then every long command that a page names, 13 hours
	@$(BIN)/python -m eclectus_hack test slow $(PYTEST)

oracles: venv ## the simulator against closed forms and laws, with a table: 50 minutes on two idle cores
	@$(BIN)/python -m pytest tests/oracles -n auto --dist worksteal $(PYTEST)

held-out: venv ## README's ratios with their intervals, and where nodes differ little or change, on ten held-out streams: 12 minutes on two idle cores (HELD_OUT=--quick: 2; HELD_OUT=--preferences: what softWeight does; HELD_OUT=--grid: by sizes, load and speeds)
	@$(BIN)/python -m eclectus_bench.held_out $(HELD_OUT)

rivals: venv ## print and write docs/results/rivals.md, Eclectus beside kube-scheduler with nodes labelled by speed, or packing: 8 minutes on two idle cores (RIVALS=--quick: 2)
	@$(BIN)/python -m eclectus_bench.rivals $(RIVALS)

report: venv ## write bench/report.md, the simulator beside published figures: 20 minutes on two idle cores
	@$(BIN)/python -m eclectus_bench.oracles.report $(REPORT)

lint: venv ## format, rules, types, import contracts; and a hint about long files and functions
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --config hack/import-contracts.toml --cache-dir build/import-linter
	@$(BIN)/python -m eclectus_hack sizes

bench: venv ## cost of a decision and of a simulated task, eleven workloads beside kube-scheduler: 90 minutes on two idle cores (BENCH=--quick: 3)
	@$(BIN)/python -m eclectus_bench $(BENCH)

rosella: venv ## print and write docs/results/rosella.md, Rosella's paper beside Sparrow, and its two laws: 10 minutes on two idle cores (ROSELLA=--quick: 1)
	@$(BIN)/python -m eclectus_bench.rosella.report $(ROSELLA)

phoenix: venv ## write docs/results/phoenix.md, what constraints cost by policy: 25 minutes on two idle cores (PHOENIX=--quick: 1)
	@$(BIN)/python -m eclectus_bench.phoenix.report $(PHOENIX)

tenants: venv ## print and write docs/results/tenants.md, what three tenants get by profile: 4 minutes on two idle cores (TENANTS=--quick: 1)
	@$(BIN)/python -m eclectus_bench.tenants $(TENANTS)

stragglers: venv ## print and write docs/results/stragglers.md, what copies gain and cost by rule: 45 minutes on two idle cores (STRAGGLERS=--quick: 1)
	@$(BIN)/python -m eclectus_bench.stragglers $(STRAGGLERS)

quincy: venv ## print and write docs/results/quincy.md, bytes across racks and turnaround by Quincy, delay scheduling and neither, and the paper's four policies: 25 minutes on two idle cores (QUINCY=--quick: 1)
	@$(BIN)/python -m eclectus_bench.quincy $(QUINCY)

together: venv ## print and write docs/results/together.md, what each feature brings alone and beside the others: 10 minutes on two idle cores (TOGETHER=--quick: 1)
	@$(BIN)/python -m eclectus_bench.together $(TOGETHER)

carbyne: venv ## write docs/results/carbyne.md, jobs with stages by order: 65 minutes on two idle cores (CARBYNE=--quick: 2)
	@$(BIN)/python -m eclectus_bench.carbyne.report $(CARBYNE)

soak: venv ## memory, steps, Leases and errors on 15,000 nodes with 120,000 pods: 20 minutes and up to 10 to build the cluster (SOAK=--quick: 1)
	@$(BIN)/python -m eclectus_bench.soak $(SOAK)

e2e: venv ## the live tests alone (E2E=kind, E2E=existing, or a control plane built here)
	@$(BIN)/python -m eclectus_hack test live $(PYTEST)

e2e-upstream: venv ## Kubernetes' own specs of preemption against Eclectus: 4 minutes (FOCUS=REGEX: others)
	@$(BIN)/python -m eclectus_e2e upstream $(if $(FOCUS),--focus '$(FOCUS)') $(UPSTREAM)

conformance: venv ## all of Kubernetes' own scheduling specs, Eclectus in kube-scheduler's place: 20 minutes
	@$(BIN)/python -m eclectus_e2e upstream --focus '\[sig-scheduling\]' $(UPSTREAM)

differential: venv ## random clusters and pods put to kube-scheduler and Eclectus, every answer compared: 30 minutes (N=100: so many clusters)
	@$(BIN)/python -m eclectus_e2e differential $(if $(N),--clusters $(N)) $(DIFFERENTIAL)

chaos: venv ## two schedulers and two operators on a simulated API server, network and clock, with faults, every write checked: 30 minutes (N=100: so many stories)
	@$(BIN)/python -m eclectus_e2e chaos $(if $(N),--seeds $(N)) $(CHAOS)

pressure: venv ## a search for objects that cost the scheduler more than their number, over all pairs of kinds: 60 minutes of CPU
	@$(BIN)/python -m eclectus_e2e pressure $(PRESSURE)

versions: venv ## a smoke run on each supported minor version of Kubernetes: 6 minutes; the first time 5 to 10 more for each (MINOR=1.36: one)
	@$(BIN)/python -m eclectus_e2e versions $(MINOR)

manifests: venv ## write the derived files: manifests/, docs/reference/, the chart's table of values, the Dockerfiles
	@$(BIN)/python -m eclectus_hack manifests

images: venv ## build the images without Docker, as archives in build/images/ (as root, on Debian or Ubuntu)
	@$(BIN)/python -m eclectus_hack images $(IMAGES)

release: venv ## rehearse a release in build/release (as root, with images): 10 minutes, the first time 30 (RELEASE="--registry localhost:5000")
	@$(BIN)/python -m eclectus_hack release $(RELEASE)

lock: venv ## resolve the newest allowed versions into requirements/
	$(BIN)/pip install --quiet uv
	$(COMPILE) pyproject.toml --extra live --extra cli --extra load --extra otel --extra operator --group dev --upgrade -o requirements/dev.lock
	$(COMPILE) pyproject.toml --extra live --extra load --extra otel -c requirements/dev.lock -o requirements/live.lock
	$(COMPILE) pyproject.toml --extra cli --no-emit-package numpy -c requirements/dev.lock -o requirements/cli.lock
	$(COMPILE) pyproject.toml --extra operator --no-emit-package numpy -c requirements/dev.lock -o requirements/operator.lock
	echo hatchling | $(COMPILE) - -c requirements/dev.lock -o requirements/build.lock
	echo 'ortools>=9.15,<9.16' | $(COMPILE) - --no-deps -o requirements/flow.lock # as the extra `flow`
	echo pip-audit | $(COMPILE) - --upgrade -o requirements/audit.lock

audit: venv ## known vulnerabilities of the locked packages, by pip-audit from PyPI: a minute; skipped where PyPI cannot be asked
	@$(BIN)/python -m eclectus_hack audit

clean: ## remove what this checkout built (not the shared cache ~/.cache/eclectus)
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m eclectus_e2e down; fi
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
