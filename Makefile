# `make demo`, `make test`, `make bench`, `make delivery`, `make links`, `make compare`, `make soak`, `make wheel`. Needs
# Python 3.11 or later with pip, a Rust toolchain and a C compiler; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# What the native module is built from; Python files are used where they lie.
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml

export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: build demo test test-rust test-python bench delivery links compare soak wheel clean

build: $(VENV)/.built

demo: $(VENV)/.built
	$(BIN)/tickwire demo $(ARGS)

test: test-rust test-python

# PyO3's build script asks the interpreter of VIRTUAL_ENV, so it must be there.
test-rust: $(VENV)/.tools
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --lib --features python -- -D warnings
	cargo test --quiet

test-python: $(VENV)/.built $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest tickwire._core --allowlist tests/py/stubtest.txt --ignore-unused-allowlist
	$(BIN)/pytest $(ARGS)

bench: $(VENV)/.built $(VENV)/.dev
	cargo bench --bench endpoint --bench netcode --bench renet --bench transport --bench wire
	$(BIN)/python benches/py/run.py

# How soon messages arrive over a lossy link, in virtual time; writes benches/delivery/results.json.
delivery:
	cargo bench --bench delivery

# How fast blocks move over bad links, in virtual time; writes benches/links/results.json. `make links ARGS=--real`: over
# real sockets through the proxy, and over loopback; writes results_real.json there.
ifeq ($(ARGS),--real)
links: $(VENV)/.built
	$(BIN)/python benches/py/links_real.py
else
links:
	cargo bench --bench links
endif

# Tickwire beside other libraries, some minutes; writes benches/compare/RESULTS.md and results.json.
compare: $(VENV)/.built
	$(BIN)/python benches/compare/run.py $(ARGS)

# Random games on random bad networks, two virtual days; `make soak ARGS="--seed 7 --hours 1000"`.
soak: $(VENV)/.built
	$(BIN)/tickwire soak --jobs 2 $(or $(ARGS),--seed ci --hours 48)

wheel: $(VENV)/.tools
	$(BIN)/maturin build --release --out dist

clean:
	rm -rf $(VENV) target dist python/tickwire/_core*.so

# venv's own way to get pip (ensurepip) is a separate package on some systems, so the caller's pip does it.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check pip 'maturin>=1.16,<2'
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(BIN)/maturin develop --release --extras demo
	touch $@

# The tools of the `dev` extra, read from pyproject.toml so that they are named once.
$(VENV)/.dev: $(VENV)/.tools pyproject.toml
	$(BIN)/python -c 'import tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*extras["demo"], *extras["dev"], sep="\n")' > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/dev.txt
	touch $@
