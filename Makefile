# Every target sets up what it needs in .venv and is quick the second time.
# EXTRAS chooses optional parts: make test EXTRAS=all

PYTHON ?= python3
EXTRAS ?= plot
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
PEERS := .venv-peers
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
SWEEP_STAMP := $(VENV)/.installed-sweep
GROUPS := --group test $(if $(filter all,$(subst $(comma), ,$(EXTRAS))),--group test-all)
TORCH_STAMP := $(if $(filter torch all,$(subst $(comma), ,$(EXTRAS))),$(VENV)/.torch)

.PHONY: demo test test-slow lint bench bench-peers race docs tables sweep study recipe-study wheel clean

demo: $(SWEEP_STAMP)
	$(BIN)/python -m paramagnet reproduce toy --quick --out demo-output

test: lint
	$(BIN)/python -m pytest

test-slow: lint
	$(BIN)/python -m pytest -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	mkdir -p bench-output
	for script in $(filter-out %/bench_peers.py %/bench_updates.py,$(wildcard benchmarks/bench_*.py)); do $(BIN)/python $$script || exit 1; done

# Other packages have an environment of their own: nothing here must come to depend on them.
bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/bench_peers.py --json benchmarks/data/peers.json
	$(PEERS)/bin/python benchmarks/bench_updates.py --former 822aec3 --json benchmarks/data/updates.json

# The likelihood that each package has after a given time (docs/race.md); goes on where it stopped.
race: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/race.py $(RACE) $(if $(MINUTES),--minutes $(MINUTES))
	$(PEERS)/bin/python benchmarks/race_page.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What README and the site say from records: tables, the findings, docs/reproduction.md, two figures. Run it
# whenever records were added; a test compares the findings and the page with the records.
tables: $(STAMP)
	$(BIN)/python benchmarks/document_tables.py
	$(BIN)/python benchmarks/reproduction_page.py
	PYTHONPATH=. $(BIN)/python benchmarks/overview_figure.py

# Long computations whose records are committed; each skips what is already there: the empty cells of Table 9,
# other selections of MNIST's images, then all in the order of PLANS["all"] in reproduction/plan.py. Set JOBS
# (processes) and MINUTES (each command stops after so many; unfinished runs are saved and go on next time) as
# you like. Afterwards run `make tables`.
SWEEP_OPTIONS = $(if $(JOBS),--jobs $(JOBS)) $(if $(MINUTES),--minutes $(MINUTES))
sweep: $(SWEEP_STAMP)
	$(BIN)/python -m paramagnet reproduce mnist_bit --trials 1 --no-report $(SWEEP_OPTIONS)
	$(BIN)/python -m paramagnet reproduce benchmarks/mnist_points.toml --no-report $(SWEEP_OPTIONS)
	$(BIN)/python -m paramagnet reproduce all $(SWEEP_OPTIONS)
	$(BIN)/python benchmarks/disorder_average.py
	$(BIN)/python benchmarks/finite_size.py

# The study of starts (docs/does_it_win.md): the runs that are missing, then its page.
study: $(SWEEP_STAMP)
	$(BIN)/python -m studies.starts.run win $(if $(JOBS),--jobs $(JOBS)) $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m studies.starts.refresh

# The study of recipes (docs/recipe_stage1.md): the runs of stage 1 that are missing, then its page.
recipe-study: $(SWEEP_STAMP)
	$(BIN)/python -m studies.recipe.run stage1 $(if $(JOBS),--jobs $(JOBS)) $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m studies.recipe.report stage1

wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(PEERS) dist docs/_build demo-output bench-output

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

# The CPU build must be there before anything asks for torch, or the package index's default drags in CUDA.
$(VENV)/.torch: | $(VENV)/.pip
	$(BIN)/python -m pip install --quiet $(TORCH)
	touch $@

$(STAMP): pyproject.toml | $(VENV)/.pip $(TORCH_STAMP)
	$(BIN)/python -m pip install --quiet $(GROUPS) --editable ".[$(EXTRAS)]"
	touch $@

ifneq ($(STAMP),$(SWEEP_STAMP))
$(SWEEP_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[sweep]"
	touch $@
endif

# The tutorials run while the pages are built, so they need every extra.
$(VENV)/.docs: pyproject.toml | $(VENV)/.pip $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --group docs --editable ".[all]"
	touch $@

$(PEERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PEERS)/bin/python -m pip install --quiet $(TORCH)
	$(PEERS)/bin/python -m pip install --quiet --group peers --editable .
	touch $@
