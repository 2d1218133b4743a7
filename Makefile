# make setup | run | test | test-all | bench | lint | generated | docs | explore | quic | wheel | mutants. Needs python3 >= 3.11 with venv, cargo >= 1.85 and make; the rest goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes
RUST := Cargo.toml Cargo.lock $(shell find crates -path crates/quic -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
RUN := runs/rfc2415

.PHONY: setup run quick test test-all bench lint generated docs explore quic wheel mutants format pins clean
.DELETE_ON_ERROR:

# Two jobs, for setup. What recipes run must not see them: cargo would look for a job server.
MAKEFLAGS += --jobs=2
unexport MAKEFLAGS MFLAGS
# Of the hundreds of processes that tests start, each would compile the package and the tests again.
unexport PYTHONDONTWRITEBYTECODE

setup: .venv/.pinned .venv/.built

# Python sources need no building: the install is an editable one. pip looks for maturin on the path. The old module is
# removed first: to write over it would crash whoever is running it. The flags are those of a wheel, which takes what is
# built here.
.venv/.built: .venv/bin/maturin pyproject.toml $(RUST)
	@sh .ci/prerequisites $(PYTHON)
	@rm -f python/firstflight/_native.*.so
	RUSTFLAGS="$$RUSTFLAGS $$($(PYTHON) .ci/wheel --flags)" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# pip would compile the packages' own tests, too, nearly half of what there is.
.venv/.pinned: .venv/bin/maturin
	$(PIP) --no-compile --requirement requirements.txt
	@$(BIN)/python -W ignore -m compileall -qq -x '/tests/' .venv/lib || true
	@touch $@

# maturin comes first, so that it builds while pip installs the rest.
.venv/bin/maturin: requirements.txt
	@sh .ci/prerequisites $(PYTHON)
	$(PYTHON) -m venv .venv
	@sed -n '/^maturin==/,/[^\\]$$/p' requirements.txt >.venv/maturin.txt
	$(PIP) --requirement .venv/maturin.txt
	@touch $@

# A run of an older version of the code is kept under a new name: the program says where it is, what it takes and how to
# delete it.
run: setup
	$(BIN)/firstflight run rfc2415 --out $(RUN) --set-aside
	$(BIN)/firstflight report $(RUN)

RUST_TESTS := cargo test --quiet --locked --workspace --exclude firstflight-python
SIMULATED := $(BIN)/pytest tests/docs tests/studies tests/unit -n auto --dist worksteal
test: quick
	@echo "Left out: slow tests, and tests in real time. make test-all runs them, too."

quick: setup
	$(RUST_TESTS)
	$(SIMULATED) -m 'not slow'

# Tests in real time mostly wait, so six run at once, and the slow ones take what time they leave. Those that fail run alone,
# and those that fail then once more: a busy machine may have been the cause.
SLOW := $(shell command -v chrt >/dev/null && echo setsid chrt --idle 0) $(SIMULATED) -m slow -p no:cacheprovider
REALTIME := $(BIN)/pytest tests/realtime
AGAIN := $(REALTIME) --last-failed --last-failed-no-failures none
test-all: quick
	@$(SLOW) >.venv/slow.txt 2>&1 & slow=$$!; \
	trap 'kill -- -$$slow 2>/dev/null || kill $$slow; exit 130' INT TERM; \
	$(REALTIME) -n 6 --dist worksteal; failed=$$?; \
	wait $$slow && slow=0 || slow=1; cat .venv/slow.txt; \
	[ $$failed = 0 ] || $(AGAIN) || $(AGAIN) && exit $$slow

bench: setup
	$(BIN)/python -m bench --peers

# What the tests of path and of TCP's sender and receiver do not notice: docs/robustness.md.
SHARD ?= 0/40
MUTANTS = cargo mutants --shard $(SHARD) --sharding round-robin --output target/mutants-$(1) --package firstflight-$(1) --test-package firstflight-$(1)
mutants: export CARGO_PROFILE_DEV_DEBUG = 0
mutants: export PROPTEST_DISABLE_FAILURE_PERSISTENCE = 1
mutants:
	-$(call MUTANTS,path) --file 'crates/path/src/**'
	-$(call MUTANTS,tcp) --file 'crates/tcp/src/sender/**' --file 'crates/tcp/src/receiver/**' --file 'crates/tcp/src/profile/*_window.rs'

lint: setup
	cargo fmt --all --check
	cargo fmt --manifest-path crates/quic/Cargo.toml --check
	cargo clippy --quiet --locked --workspace --all-targets -- --deny warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/vulture
	$(BIN)/mypy
	@printf '[mypy]\n[mypy-numpy.*,firstflight]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n' >.venv/stubtest.ini
	$(BIN)/python -m mypy.stubtest --mypy-config-file .venv/stubtest.ini --ignore-missing-stub firstflight._native

# What is made from the code: tests fail where it is not current. docs/evidence_page.py and docs/pictures.py need runs.
GENERATED := tcp_fields:python/firstflight/scenario/tcp_fields.py scenario_schema:python/firstflight/scenario.schema.json \
	api_page:docs/api.md commands_page:docs/commands.md reference_page:docs/reference.md third_party:LICENSE-THIRD-PARTY.md
generated: setup
	for made in $(GENERATED); do \
		$(BIN)/python docs/$${made%:*}.py >.venv/made && cp .venv/made $${made#*:} || exit; done
	$(BIN)/python docs/keys_page.py
	UPDATE_LINES=1 $(BIN)/pytest --quiet tests/unit/test_one_ack.py

# The site, in site/: without a network, and strict: a link that leads nowhere or a page without a place fails.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The page of `firstflight explore`: the simulator as WebAssembly, and what draws. It needs Node.js 18 or later with npm.
WASM := wasm32-unknown-unknown
explore: setup
	@sh .ci/explorer_prerequisites $(WASM)
	cargo build --quiet --locked --package firstflight-explore --target $(WASM) --profile browser
	npm --prefix explorer ci --silent --ignore-scripts
	@mkdir -p explorer/build
	$(BIN)/python -m firstflight.explore.start examples/download.toml >explorer/build/start.json
	npm --prefix explorer run --silent build -- ../target/$(WASM)/browser/firstflight_explore.wasm build/start.json ../python/firstflight/explore/explorer.html

# The server and client over QUIC that scenarios with `transport = "quic"` run: a workspace of its own, with its own lock.
quic:
	cargo build --quiet --locked --release --manifest-path crates/quic/Cargo.toml --target-dir crates/quic/target

# With the page of `firstflight explore`, where `make explore` made it before.
wheel: .venv/bin/maturin
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python .ci/wheel

format: setup
	cargo fmt --all
	cargo fmt --manifest-path crates/quic/Cargo.toml
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# After a change of the dependencies in pyproject.toml; needs uv.
pins:
	uv pip compile --quiet pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --custom-compile-command "make pins" --output-file requirements.txt

clean:
	rm -rf .venv dist target crates/quic/target python/firstflight/_native.*.so
