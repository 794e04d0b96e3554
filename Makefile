# `make demo`, `make arena`, `make test`, `make docs`, `make bench`, `make compare`, `make wheel`: CONTRIBUTING.md has all.
# Needs Python 3.11 or later with pip, a Rust toolchain and a C compiler; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# What the native module is built from; Python files are used where they lie.
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml

export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: build demo arena test test-rust test-python docs pictures bench delivery links ghosts latency peers compare fuzz mutations sanitize soak wheel clean

build: $(VENV)/.built

demo: $(VENV)/.built
	$(BIN)/tickwire demo $(ARGS)

# A game in a window, over a bad network.
arena: $(VENV)/.built
	$(BIN)/python -m tickwire.samples.arena play $(ARGS)

test: test-rust test-python

# PyO3's build script asks the interpreter of VIRTUAL_ENV, so it must be there.
test-rust: $(VENV)/.tools
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --lib --features faults -- -D warnings
	cargo test --quiet

test-python: $(VENV)/.built $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python -m mypy.stubtest tickwire._core --allowlist tests/py/stubtest.txt --ignore-unused-allowlist
	$(BIN)/pytest $(ARGS)

# The guide and the reference, into target/docs; every example of every page is run first.
docs: $(VENV)/.built $(VENV)/.dev
	$(BIN)/pytest tests/py/test_pages.py tests/py/test_docstrings.py
	$(BIN)/sphinx-build -q -W --keep-going -b html docs target/docs

# What the pages show, made anew.
pictures: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python docs/pictures.py

bench: $(VENV)/.built $(VENV)/.dev
	cargo bench --bench endpoint --bench gaps --bench netcode --bench transport --bench wire
	cargo bench --manifest-path benches/compare/Cargo.toml --target-dir target --bench renet
	$(BIN)/python benches/py/run.py

# How soon messages arrive over a lossy link, in virtual time; writes benches/delivery/results.json. `make delivery
# ARGS=--kernel`: between network namespaces, where the machine allows it; writes results_kernel.json there.
ifeq ($(ARGS),--kernel)
delivery: $(VENV)/.built
	$(BIN)/python benches/py/kernel.py delivery
else
delivery:
	cargo bench --bench delivery
endif

# How fast blocks move over bad links, in virtual time; writes benches/links/results.json. `make links ARGS=--real`: over
# real sockets through the proxy, and over loopback; writes results_real.json there.
ifeq ($(ARGS),--real)
links: $(VENV)/.built
	$(BIN)/python benches/py/links_real.py
else ifeq ($(ARGS),--kernel)
links: $(VENV)/.built
	$(BIN)/python benches/py/kernel.py links
else
links:
	cargo bench --bench links
endif

# Ghosts in the scenes of benches/ghosts, and the same by hand in NumPy; writes results.json and RESULTS.md there, and
# the table in docs/ghosts.md. `make ghosts ARGS=--rivals`: beside other libraries, which are built first.
ghosts: $(VENV)/.dev
	$(BIN)/python benches/ghosts/run.py $(ARGS)

# What hides latency: clocks, inputs, prediction, in virtual time; writes benches/latency/results.json.
latency: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python benches/latency/run.py

# Games without a server, in virtual time; writes benches/peers/RESULTS.md and results.json.
peers: $(VENV)/.built $(VENV)/.dev
	$(BIN)/python benches/peers/run.py $(ARGS)

# Tickwire beside other libraries, some minutes; writes benches/compare/RESULTS.md, results.json and the README's table.
compare: $(VENV)/.built
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

# Random games on random bad networks, two virtual days; `make soak ARGS="--seed 7 --hours 1000"`.
soak: $(VENV)/.built
	$(BIN)/tickwire soak --jobs 2 $(or $(ARGS),--seed ci --hours 48)

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

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(BIN)/maturin develop --release --features python,faults --extras demo,samples
	touch $@

# What all extras need, read from pyproject.toml so that it is named once.
$(VENV)/.dev: $(VENV)/.tools pyproject.toml
	$(BIN)/python -c 'import tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(need for extra in extras.values() for need in extra), sep="\n")' > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/dev.txt
	touch $@
