# Entry points for people and CI. Targets that need Python packages, torch or nvcc find or install them first
# (cmake/environment.py). Choose another Python with `make test PYTHON=/path/to/python`.

PYTHON ?=
RECORD ?= tests/gpu_record.json
MAX_JOBS ?= $(shell nproc)
PYTEST_WORKERS ?= 2
NEWEST ?= build/newest
KERNEL_ARCHITECTURES = 8.0 8.9 9.0 10.0 12.0

export MAX_JOBS
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# $(call with,EXTRAS): the shell variables PYTHON, PATH, CUDA_HOME, ... of an environment that has these extras.
with = python3 cmake/environment.py --python "$(PYTHON)" --output build/environment.sh $(1); source build/environment.sh

CPP_SOURCES = $(shell find csrc tests bench -name '*.hpp' -o -name '*.cuh' -o -name '*.cu' -o -name '*.cpp' -o -name '*.h')

.PHONY: help
help:
	@echo "make build             libtorch_swizzle.so, headers and CMake files into torch_swizzle/"
	@echo "make test              every test that this machine can run"
	@echo "make test-newest       the Python tests against the newest torch on the package index, in an environment of its own"
	@echo "make bench             compare the kernels with torch"
	@echo "make bench-compare A=old.json B=new.json   what changed between two recorded results"
	@echo "make test-gpu          all tests on the GPU, into RECORD (default $(RECORD))"
	@echo "make gpu-record-check  exit 1 if RECORD is older than the sources"
	@echo "make kernels-compile   compile the kernels for every supported GPU architecture"
	@echo "make lint, make format, make clean"

.PHONY: build
build:
	@$(call with,build); $$PYTHON setup.py --quiet build_ext --inplace

.PHONY: core-test
core-test:
	@$(call with,build); .ci/install_googletest
	@source build/environment.sh; \
	cmake -S . -B build/core -DTORCH_SWIZZLE_CORE_ONLY=ON -DCMAKE_BUILD_TYPE=Release; \
	cmake --build build/core --parallel $(MAX_JOBS); \
	ctest --test-dir build/core --output-on-failure --parallel $(MAX_JOBS)

.PHONY: test
test: core-test test-python

.PHONY: test-python
test-python: build
	@$(call with,build test bench); $$PYTHON -m pytest tests/python -n $(PYTEST_WORKERS)

# In a copy of the tree, whose own library stays built for its torch. Writes tests/newest_record.json, whatever came out.
.PHONY: test-newest
test-newest:
	@[ -x $(NEWEST)/bin/python ] || python3 -m venv $(NEWEST)
	@$(NEWEST)/bin/python -m pip install --quiet --upgrade torch
	@rm -rf $(NEWEST)/tree; mkdir $(NEWEST)/tree
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory $(NEWEST)/tree
	@rm -f $(NEWEST)/report.xml
	-@PYTEST_ADDOPTS=--junitxml=$(abspath $(NEWEST))/report.xml \
	  $(MAKE) --directory $(NEWEST)/tree test-python PYTHON=$(abspath $(NEWEST))/bin/python
	@$(NEWEST)/bin/python tests/newest_record.py $(NEWEST)/report.xml tests/newest_record.json

.PHONY: bench
bench: build
	@$(call with,build bench); $$PYTHON -m bench

.PHONY: bench-compare
bench-compare:
	@$(call with,build bench); $$PYTHON -m bench.compare $(A) $(B)

# A library that was built on another machine and carried here is used as it is, if the sources are the same.
.PHONY: test-gpu
test-gpu:
	@$(call with,test); $$PYTHON tests/source_hash.py --built || $(MAKE) build; \
	$$PYTHON tests/gpu_record.py run --record $(RECORD)

.PHONY: gpu-record-check
gpu-record-check:
	@python3 tests/gpu_record.py check --record $(RECORD)

.PHONY: kernels-compile
kernels-compile:
	@$(call with,build); \
	cmake -S . -B build/kernels -DTORCH_SWIZZLE_KERNELS_ONLY=ON -DTORCH_CUDA_ARCH_LIST="$(KERNEL_ARCHITECTURES)"; \
	cmake --build build/kernels --parallel $(MAX_JOBS)

.PHONY: lint
lint:
	@$(call with,dev); \
	ruff check .; \
	ruff format --check .; \
	mypy; \
	clang-format --dry-run -Werror $(CPP_SOURCES)

.PHONY: format
format:
	@$(call with,dev); ruff check --fix --exit-zero .; ruff format .; clang-format -i $(CPP_SOURCES)

.PHONY: clean
clean:
	rm -rf build dist *.egg-info
	rm -rf torch_swizzle/lib torch_swizzle/include torch_swizzle/share torch_swizzle/_build_info.py
