# The commands of this project, the same for people and for CI.  Each sets up what it needs.

PYTHON ?= python3
BIN := .venv/bin
# More workers than cores: many tests wait for a disk, a server or a browser.
WORKERS := $(shell echo $$((1 + $$(nproc))))
# The tests start many processes: none should have to compile the library again.
export PYTHONDONTWRITEBYTECODE :=
# Each has a worker's processor for itself, as our command line sees to: threads of OpenBLAS that
# wait for each other took half of the time of fits.
export OPENBLAS_NUM_THREADS := 1
# (What is imported is compiled then: most of what is installed never is.)
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

.PHONY: demo test lint types imports statics tests spark optimised soak spark-oldest pythons bench docs map reference pictures screenshots clean

demo: .venv/core
	$(BIN)/discreet demo

# What Debian installs does not wait for Python's packages.  Types and imports use one core, Spark's
# tests one session, and those without `assert` one process: they run beside the others.
test:
	$(MAKE) --no-print-directory -j 2 .venv/components lint
	$(MAKE) --no-print-directory -j 5 statics tests spark optimised

statics: types imports

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

imports: .venv/test
	$(BIN)/lint-imports

tests: .venv/test .venv/components
	$(BIN)/python -m compileall -q src
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not soak" --ignore tests/spark

# In one process, which starts Java once.
spark: .venv/test .venv/components
	$(BIN)/pytest -q -m "not soak" tests/spark

# Checks written as `assert` vanish under -O: none of ours may be one.  (Those of the tests stay:
# pytest rewrites them.  The variable reaches its workers too, as the option would not.)  That no
# source has one is read off its syntax; here the tests of refusals, losses, prices and the account
# say that all of it, with its dependencies, works so: not what a notebook shows of a refusal, nor
# how every stored type is read.  `make soak` runs every test.
CHECKS := tests/optimised tests/test_budget.py tests/test_curate.py tests/test_errors.py \
	tests/test_exact.py tests/test_ledger.py tests/test_loss.py tests/test_price.py tests/test_schema.py
OPTIMISED := PYTHONOPTIMIZE=1 $(BIN)/pytest -q -W ignore::pytest.PytestConfigWarning

optimised: .venv/test .venv/components
	$(BIN)/python -O -m compileall -q src
	$(OPTIMISED) -m "not soak" -k "not notebook and not stored_type" $(CHECKS)

soak: .venv/test .venv/components spark-oldest
	$(BIN)/pytest -m soak
	$(OPTIMISED) -n $(WORKERS) --dist worksteal tests

# The same checks in the other versions of Python that are here.
pythons: .venv/test .venv/components
	$(BIN)/python tests/pythons.py $(CHECKS)

# The tests of Spark once more, on the oldest version that is supported.
spark-oldest: .venv/test .venv/components
	test -d .venv/spark35 || $(INSTALL) --target .venv/spark35 "pyspark>=3.5,<4"
	PYTHONPATH=.venv/spark35 $(BIN)/pytest -m "not soak" tests/spark

bench: .venv/bench
	$(BIN)/python -m bench --write

# Every module with its first sentence, into docs/architecture.md; a test says when it is old.
map: .venv/core
	$(BIN)/python docs/make_map.py

# Every command and every route, into docs/reference; a test says when they are old.
reference: .venv/core
	$(BIN)/python docs/make_reference.py

# The pictures of the documents, drawn by real runs.
pictures: .venv/test
	$(BIN)/python docs/make_pictures.py

# Terminal, page and notebook, photographed while they run.
screenshots: .venv/test .venv/components
	$(BIN)/python docs/make_screenshots.py

docs: .venv/docs
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf .venv docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("discreet needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --upgrade "pip>=25.1"
	$(INSTALL) -c constraints.txt -e ".[accounting]"
	touch $@

# What is not a Python package: PostgreSQL, a browser, a C compiler for the failing disk.
.venv/components: tests/components.py
	mkdir -p .venv
	$(PYTHON) tests/components.py
	touch $@

.venv/test .venv/docs .venv/bench: .venv/%: .venv/core
	$(INSTALL) -c constraints.txt --group $*
	touch $@
