# One BLAS thread: parallelism here is over processes, and timings stay comparable.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
SOURCES := pyproject.toml constraints.txt

.PHONY: help demo test test-pages pythons processors thorough lint lock format docs docs-look docs-links package reports compare-reports papers peers accountants libraries observed benchmarks clean

help:
	@echo "make demo        install, then certify, run, audit and report one algorithm on real data"
	@echo "make test        install with the development extras and run the tests (twenty minutes on two cores)"
	@echo "make test-pages  the commands of all pages, and slices of the benchmarks (some minutes)"
	@echo "make pythons     sealed runs on each Python found of 3.12 or later (some minutes; OTHERS=\"python3.13 …\")"
	@echo "make processors [CORES=\"Haswell SkylakeX Nehalem\"]"
	@echo "                 the tests that compute, and two reports, as on these (a quarter of an hour)"
	@echo "make thorough    the same with many more examples in the randomised tests"
	@echo "make lint        ruff, mypy --strict and the import contracts"
	@echo "make lock        requirements.lock anew: what is developed and tested with, with hashes"
	@echo "make docs        the site, into out/site/html, with warnings as errors"
	@echo "make docs-look   reads every page of it in a browser: small and large, light and dark (some minutes)"
	@echo "make docs-links  checks the links that leave it (needs a network)"
	@echo "make package     wheel and sdist into dist, twice and alike, checked; the wheel is tried in an empty"
	@echo "                 environment of each Python found (or PYTHONS=\"python3.13 …\"), the sdist by its own tests"
	@echo "make reports     certifies and attacks the algorithms of the four papers into reports/"
	@echo "make compare-reports [NAMES=\"curator dp-fts\"]"
	@echo "                 certifies and attacks again, and prints where reports/ would change"
	@echo "make papers      what the four papers state and what comes out, into reports/papers.md and .html"
	@echo "                 (checks recorded figures by spot runs; FULL=1 makes every figure anew, an hour)"
	@echo "make peers       measures other public auditors beside ours, into reports/auditors/ (an hour)"
	@echo "make libraries   runs and attacks what other libraries offer, into reports/libraries/libraries.md (a quarter of an hour)"
	@echo "make observed    tests what observes libraries that need environments of their own (needs Java)"
	@echo "make benchmarks  the timings (not part of the tests)"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpaudit needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python $(SOURCES)
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(BIN)/python $(SOURCES) requirements.lock
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) or sys.platform != "linux")'; then \
	  echo "installing requirements.lock by its hashes"; \
	  $(PIP) install --require-hashes --no-deps -r requirements.lock; \
	fi
	$(PIP) install -c constraints.txt -e '.[dev]'  # torch, and elsewhere all of it
	@touch $@ $(VENV)/.core

lock: $(VENV)/.dev  # uv is there already, as Flower needs it
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --prerelease disallow --extra dev -c constraints.txt --no-emit-package torch \
	  --custom-compile-command "make lock" -o requirements.lock pyproject.toml

demo: $(VENV)/.core
	$(BIN)/dpaudit demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not pages"  # neighbours share imports and fixtures

test-pages: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m pages

processors: $(VENV)/.dev
	PYTHON=$(BIN)/python tests/processors.sh $(CORES)

thorough: export DPAUDIT_TESTS := thorough
thorough: test test-pages

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python docs/site/build.py

docs-look: docs $(VENV)/.dev
	$(BIN)/python -m pytest -n auto tests/docs/look.py

docs-links: $(VENV)/.docs
	$(BIN)/python docs/site/build.py linkcheck

PYENV := $${PYENV_ROOT:-$$HOME/.pyenv}/versions
PYTHONS ?= $(foreach minor,11 12 13 14,python3.$(minor) $(PYENV)/3.$(minor).*/bin/python)
UNPACKED = out/package/sdist
INDEX = $(abspath out/package/simple)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
CORE_TESTS := tests/dpaudit/accounting tests/test_action.py tests/test_readme.py

package: $(VENV)/.dev
	rm -rf dist out/package
	$(BIN)/python -m venv out/package/tools
	out/package/tools/bin/pip --disable-pip-version-check -q install build twine
	out/package/tools/bin/python -m build -o dist . >/dev/null
	out/package/tools/bin/python -m build -o out/package . >/dev/null
	cd dist && for file in *; do cmp $$file ../out/package/$$file || exit 1; done
	out/package/tools/bin/twine check --strict dist/*
	mkdir -p $(INDEX)/dpaudit && cp dist/*.whl $(INDEX)/dpaudit
	cd $(INDEX)/dpaudit && for file in *.whl; do echo "<a href=\"$$file\">$$file</a>" > index.html; done
	@for python in $(PYTHONS); do \
	  name=$$($$python -c 'import ensurepip, sys; print("python%d.%d" % sys.version_info[:2])' \
	    2>/dev/null) || continue; \
	  in=out/package/$$name; test ! -d $$in || continue; \
	  $$python -m venv $$in && \
	  $$in/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt \
	    --extra-index-url file://$(INDEX) dpaudit==$(VERSION) && \
	  $$in/bin/dpaudit calibrate gaussian --claim 'epsilon = 1, delta = 1e-6' -o $$in/plan.toml && \
	  $$in/bin/dpaudit certify $$in/plan.toml -o $$in/certificate.json && \
	  $$in/bin/dpaudit verify $$in/certificate.json && \
	  cd $$in && bin/dpaudit init counts && cd counts && ! grep -rn "file://" . && \
	  ../bin/python -m pip --disable-pip-version-check -q install -c $(abspath constraints.txt) \
	    --extra-index-url file://$(INDEX) -r requirements.txt && \
	  ../bin/dpaudit check && cd $(CURDIR) || exit 1; \
	  echo "$$name: the wheel installs from an index, certifies, verifies and starts a project"; \
	done; ls -d out/package/python3*
	mkdir $(UNPACKED) && tar -xzf dist/*.tar.gz --strip-components 1 -C $(UNPACKED)
	cd $(UNPACKED) && PYTHONPATH=$$PWD:$$PWD/algorithms \
	  $(abspath $(BIN))/python -m pytest -q -p no:cacheprovider $(CORE_TESTS)

# Sealed runs on other Pythons: which calls of the kernel and which files each needs is its own. Where
# root calls it, an ordinary user is tried too. No torch, which sealed runs do not need.
WALLED := $(addprefix tests/dpaudit/sealed/test_,sandbox.py leaks.py faults.py handles.py)
OTHERS = $(foreach minor,12 13 14,python3.$(minor) $(PYENV)/3.$(minor).*/bin/python)
pythons:
	@tried=; for python in $(OTHERS); do \
	  name=$$($$python -c 'import ensurepip, sys; print("python%d.%d" % sys.version_info[:2])' \
	    2>/dev/null) || continue; \
	  case "$$tried " in *" $$name "*) continue;; esac; \
	  in=out/pythons/$$name; \
	  $$python -m venv $$in && \
	  $$in/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt \
	    -e '.[tables,secure]' 'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.98' && \
	  $$in/bin/python -m pytest -n 2 --dist worksteal -p no:cacheprovider $(WALLED) || exit 1; \
	  tried="$$tried $$name"; \
	done; \
	if test -n "$$tried"; then echo "runs are sealed on:$$tried"; \
	else echo "No Python of 3.12 or later was found, so that runs were sealed on no other one."; fi

reports: $(VENV)/.dev  # not the core alone: some attacks need the extra 'learn'
	$(BIN)/python -m audits.papers

compare-reports: $(VENV)/.dev
	$(BIN)/python -m audits.papers --compare $(NAMES)

papers: $(VENV)/.dev  # some data are not part of the project: see DPAUDIT_DATA in README.md
	nice -n 5 $(BIN)/python -m audits.paper_rows $(if $(FULL),--full)

peers: $(VENV)/.dev  # goes on where it was interrupted; the tools' environments are in out/peers
	nice -n 5 $(BIN)/python -m audits.peers

accountants: $(VENV)/.dev  # what other suites expect, beside what is proved here
	$(BIN)/python -m audits.accountants

libraries: $(VENV)/.dev  # environments of libraries that cannot stand beside others are in out/libraries
	nice -n 5 $(BIN)/python -m audits.libraries --workers 2

OBSERVED := smartnoise-sql:snsql mbi:mbi tumult:tmlt  # environment in out/libraries, and its test
observed: $(VENV)/.dev
	@for each in $(OBSERVED); do \
	  python=$$($(BIN)/python -c "import sys; from audits.libraries.rows import environment; \
	    print(environment(sys.argv[1]).python())" $${each%%:*}) || exit 1; \
	  $$python -m pytest -p no:cacheprovider --noconftest -W ignore \
	    tests/dpaudit/observing/adapters/test_$${each##*:}.py || exit 1; \
	done

benchmarks: $(VENV)/.dev
	$(BIN)/python -m pytest tests/benchmarks/gp_ucb.py -n 0 --benchmark-only

clean:
	rm -rf $(VENV) dist out .pytest_cache .mypy_cache .ruff_cache
