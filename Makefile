# Needs Python 3.11 or newer, make, a linker and coreutils. Choose the interpreter with PYTHON=/path/to/python3;
# TUNESMITH_POCL=unpack takes PoCL from the distribution's packages even where its wheel serves: see docs/setup.md.
SHELL = /bin/sh
BIN = .venv/bin
EXAMPLE = examples/opencl/rmsnorm
CUDA_EXAMPLE = examples/cuda/silu_and_mul
# Hundreds of processes start here: none shall compile Python again that another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-cuda test lint test-long gpu-test browser-test preflight clean

help:
	@echo 'make demo       tune the example kernel on the CPU, through OpenCL'
	@echo 'make demo-cuda  check, watch and rewrite a CUDA kernel, without a GPU'
	@echo 'make test       lint, types, import contract, tests'
	@echo 'make test-long  the rest: long tests, and more examples of every property'
	@echo 'make gpu-test   the tests that need an NVIDIA GPU, and its frameworks: see docs/setup.md'
	@echo 'make browser-test  the pages in Chromium: see CONTRIBUTING.md'
	@echo 'make preflight  what this machine still lacks, and the command that adds it'
	@echo 'make clean      remove .venv, caches and build outputs; runs stay'

demo:
	@sh scripts/setup.sh opencl device
	@echo 'The demo takes about three minutes: it writes a template of the kernel, searches it and checks the winner.'
	$(BIN)/tunesmith tune $(EXAMPLE)/problem.toml --seed 1 --time 60

# Without a GPU a run is checked and never timed: it ends with exit code 5.
demo-cuda:
	@sh scripts/setup.sh cuda
	$(BIN)/tunesmith check $(CUDA_EXAMPLE)/problem.toml --device cpu --sanitize
	$(BIN)/tunesmith explain $(CUDA_EXAMPLE)/problem.toml --device cpu
	$(BIN)/tunesmith tune $(CUDA_EXAMPLE)/problem.toml --device cpu --evals 4 --time 20; [ $$? -eq 5 ]

# Lint beside the tests: its output comes last.
test:
	@sh scripts/setup.sh dev,opencl,cuda,models,watch,mcp,exports
	@$(MAKE) --no-print-directory lint >.venv/lint.log 2>&1 & lint=$$!; \
	$(BIN)/pytest -n 2 --dist worksteal --durations 15 -m "not long"; tests=$$?; \
	wait $$lint; lint=$$?; cat .venv/lint.log; [ $$tests -eq 0 ] && [ $$lint -eq 0 ]

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test-long:
	@sh scripts/setup.sh dev,opencl,cuda,models,watch,mcp,exports,kernel-tuner,cpu,ray
	TUNESMITH_THOROUGH_TESTS=1 $(BIN)/pytest -n 2 --dist worksteal --durations 15 -m "long or hypothesis"

gpu-test:
	@sh scripts/setup.sh dev,opencl,cuda,models,watch,mcp,exports
	$(BIN)/pytest -m gpu --continue-on-collection-errors

browser-test:
	@sh scripts/setup.sh dev,opencl,cuda,models,watch,mcp,exports,browser
	$(BIN)/pytest -m browser

preflight:
	@sh scripts/preflight.sh

clean:
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	rm -rf src/tunesmith/__pycache__ src/tunesmith/*/__pycache__ tests/__pycache__ tests/*/__pycache__
