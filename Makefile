# A short way into the CMake build; 'make' alone builds into build/. The demonstration builds the command,
# and the CUDA plugin only where there is a GPU to run it.
BUILD       ?= build
CMAKE_FLAGS ?=
CUDA        ?= AUTO
TARGET      ?= all
TESTS       ?= OFF
BENCH       ?= OFF
WHEEL_CUDA  ?= AUTO
PREFIX      ?= /usr/local

.PHONY: all deps demo check bench gpu measure results wheel install format lint neon avx512 clean

all:
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DGNOMON_TESTS=$(TESTS) \
	    -DGNOMON_BENCH=$(BENCH) -DGNOMON_CUDA=$(CUDA) $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD) --target $(TARGET)

deps:
	@scripts/deps.sh

demo:
	@scripts/deps.sh build demo
	@$(MAKE) --no-print-directory all $(if $(wildcard /dev/nvidiactl),,CUDA=OFF TARGET=gnomon_command)
	@scripts/demo.sh $(BUILD)

check:
	@scripts/deps.sh build check
	@$(MAKE) --no-print-directory all TESTS=ON
	@scripts/check.sh $(BUILD)

bench:
	@scripts/deps.sh build bench
	@$(MAKE) --no-print-directory all BENCH=ON
	@scripts/bench.sh $(BUILD)

gpu:
	@scripts/gpu.sh

measure:
	@scripts/deps.sh build bench
	@$(MAKE) --no-print-directory all BENCH=ON
	@scripts/measure.sh $(BUILD)

results:
	@python3 scripts/results/ship_models.py
	@python3 scripts/results/make.py

wheel:
	@scripts/deps.sh build wheel
	@WHEEL_CUDA=$(WHEEL_CUDA) scripts/wheel.sh

install: all
	@cmake --install $(BUILD)

format:
	@scripts/sources.sh | xargs clang-format-14 --style=file -i

lint:
	@scripts/deps.sh build lint
	@$(MAKE) --no-print-directory all
	@scripts/lint.sh $(BUILD)

neon:
	@scripts/deps.sh build cross
	@tests/cross/run_neon.sh build-neon

avx512:
	@scripts/deps.sh build check avx512
	@$(MAKE) --no-print-directory all TESTS=ON
	@tests/cross/run_avx512.sh $(BUILD) $(or $(ONLY),test_isa test_lstsq test_lstsq_rows test_svd test_svd_rows test_hosvd test_gemm)

clean:
	@rm -rf build build-*
