# `make demo`, `make arena`, `make test`, `make docs`, `make bench`, `make compare`, `make wheel`: CONTRIBUTING.md has all.
# Needs Python 3.11 or later with pip, a Rust toolchain and a C compiler; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# What the native module is built from; Python files are used where they lie, except the stub, whose docstrings are
# compiled in.
SOURCES := $(shell find src macros -name '*.rs') python/tickwire/_core.pyi macros/Cargo.toml Cargo.toml Cargo.lock pyproject.toml

export VIRTUAL_ENV := $(CURDIR)/$(VENV)

comma := ,
# Runs a step of the tests, and prints how long it took.
timed = @start=$$(date +%s); echo '$(1)'; $(1) || exit; echo "  $$(($$(date +%s) - start)) s"

.PHONY: build demo arena test test-rust test-python docs pictures bench delivery links ghosts latency peers fleet test-ray compare explore fuzz mutations sanitize soak wheel clean

build: $(VENV)/.built

demo: $(VENV)/.built
	$(BIN)/tickwire demo $(ARGS)

# A game in a window, over a bad network.
arena: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m tickwire.samples.arena play $(ARGS)

test: test-rust test-python

# PyO3's build script asks the interpreter of VIRTUAL_ENV, so it must be there.
test-rust: $(VENV)/.tools
	$(call timed,cargo fmt --all --check)
	$(call timed,cargo clippy --quiet --all-targets -- -D warnings)
	$(call timed,cargo clippy --quiet --workspace --lib --features faults -- -D warnings)
	$(call timed,cargo test --quiet --no-run)
	$(call timed,cargo test --quiet)

test-python: $(VENV)/.built $(VENV)/.dev
	$(call timed,$(BIN)/ruff check)
	$(call timed,$(BIN)/ruff format --check)
	$(call timed,$(BIN)/mypy)
	$(call timed,$(BIN)/pyright)
	$(call timed,$(BIN)/python -m mypy.stubtest tickwire._core --allowlist tests/py/stubtest.txt --ignore-unused-allowlist)
	$(call timed,$(BIN)/pytest -n 2 $(ARGS))

# The guide and the reference, into target/docs; every example of every page is run first.
docs: $(VENV)/.built $(VENV)/.dev
	$(BIN)/pytest tests/py/test_pages.py tests/py/test_docstrings.py
	$(BIN)/sphinx-build -q -W --keep-going -b html docs target/docs
	! grep -rl '>Type<span class="colon">' target/docs/reference

# What the pages show, made anew.
pictures: $(VENV)/.wheel $(VENV)/.dev
	$(BIN)/python docs/pictures.py

bench: $(VENV)/.wheel $(VENV)/.dev
	cargo bench --features criterion --bench endpoint --bench gaps --bench netcode --bench transport --bench wire
	cargo bench --manifest-path benches/compare/Cargo.toml --target-dir target --bench renet
	$(BIN)/python benches/py/run.py

# How soon messages arrive over a lossy link, in virtual time; writes benches/delivery/results.json. `make delivery
# ARGS=--kernel`: between network namespaces, where the machine allows it; writes results_kernel.json there. With more
# words (`ARGS="--kernel arrival"`), only the cases that contain one of them, and nothing is written.
ifneq ($(filter --kernel,$(ARGS)),)
delivery: $(VENV)/.wheel
	$(BIN)/python benches/py/kernel.py delivery $(filter-out --kernel,$(ARGS))
else
delivery:
	cargo bench --bench delivery
endif

# How fast blocks move over bad links, in virtual time; writes benches/links/results.json. `make links ARGS=--real`: over
# real sockets through the proxy, and over loopback; writes results_real.json there.
ifeq ($(ARGS),--real)
links: $(VENV)/.wheel $(VENV)/.dev
	$(BIN)/python benches/py/links_real.py
else ifneq ($(filter --kernel,$(ARGS)),)
links: $(VENV)/.wheel
	$(BIN)/python benches/py/kernel.py links $(filter-out --kernel,$(ARGS))
else
links:
	cargo bench --bench links
endif

# Ghosts in the scenes of benches/ghosts, and the same by hand in NumPy; writes results.json and RESULTS.md there, and
# the table in docs/ghost_arrays.md. `make ghosts ARGS=--rivals`: beside other libraries, which are built first.
ghosts: $(VENV)/.dev
	$(BIN)/python benches/ghosts/run.py $(ARGS)

# What hides latency: clocks, inputs, prediction, in virtual time; writes benches/latency/results.json.
latency: $(VENV)/.wheel $(VENV)/.dev
	$(BIN)/python benches/latency/run.py

# Games without a server, in virtual time; writes benches/peers/RESULTS.md and results.json.
peers: $(VENV)/.wheel $(VENV)/.dev
	$(BIN)/python benches/peers/run.py $(ARGS)

# Rooms on many machines that die, are cut off and updated, in virtual time; writes benches/fleet/RESULTS.md.
fleet: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python benches/fleet/run.py $(ARGS)

# Two nodes of Ray on this machine, one of which is lost; a minute.
test-ray: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'ray>=2.40' || { echo 'Ray has no package for this Python: its tests are skipped'; exit 0; }; \
	TICKWIRE_TEST_RAY=1 $(BIN)/pytest -p no:xdist tests/py/test_fleet_ray.py

# Tickwire beside other libraries, some minutes; writes benches/compare/RESULTS.md, results.json and the README's table.
compare: $(VENV)/.wheel $(VENV)/.dev
	$(BIN)/python benches/compare/run.py $(ARGS)
	$(BIN)/python benches/compare/readme.py

# Fuzzes each target for a minute: `make fuzz ARGS="600 packets calls"` for other times and targets. Needs the nightly
# toolchain and cargo-fuzz.
fuzz:
	tests/fuzz/run.sh $(ARGS)

# Plants bugs and looks which tests notice, half an hour; writes tests/mutations/README.md. `make mutations ARGS=name` for one.
mutations:
	$(PYTHON) tests/mutations/run.py $(ARGS)

# Tests under loom and the sanitizers: `make sanitize ARGS="models threads"` for some, and `ARGS=miri`, which takes very long.
# Needs the nightly toolchain with rust-src, and for that miri.
sanitize:
	tests/sanitize.sh $(ARGS)

# Random games with random combinations of features, judged by simple oracles: `make explore ARGS="--seed 7 --games 500"`,
# `ARGS="--seconds 60"`.
explore: $(VENV)/.built $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m explore $(ARGS)

# Random games on random bad networks, two virtual days: `make soak ARGS="--seed 7 --hours 1000"`.
soak: $(VENV)/.built
	PYTHONPATH=tests $(BIN)/python -m soak --jobs 2 $(or $(ARGS),--seed ci --hours 48)

# Without line tables (the profile `wheel` of Cargo.toml, which pyproject.toml names).
wheel: $(VENV)/.tools
	$(BIN)/maturin build --out dist

clean:
	rm -rf $(VENV) target dist python/tickwire/_core*.so

# venv's own way to get pip (ensurepip) is a separate package on some systems, so the caller's pip does it.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check pip 'maturin>=1.16,<2'
	touch $@

# The profile `release` of Cargo.toml compiles an edit in seconds. Figures are measured as players run Tickwire, with
# the profile `wheel`. Either build replaces the other.
$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(call timed,$(BIN)/maturin develop --release --features python$(comma)faults --extras demo)
	rm -f $(VENV)/.wheel; touch $@

$(VENV)/.wheel: $(VENV)/.tools $(SOURCES)
	$(call timed,$(BIN)/maturin develop --profile wheel --features python$(comma)faults --extras demo)
	rm -f $(VENV)/.built; touch $@

# What all extras need, read from pyproject.toml so that it is named once.
$(VENV)/.dev: $(VENV)/.tools pyproject.toml
	$(BIN)/python -c 'import tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(need for extra in extras.values() for need in extra), sep="\n")' > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/dev.txt
	touch $@
