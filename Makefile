# einsum.h: one header, nothing to configure. "make" builds the command, "make demo" shows it at
# work, "make test" runs every test. What is missing on the machine is named and skipped.
#
#   make            build/einsum, the command          make lint       the rules of the code
#   make demo       the command on real data           make matrix     compilers and languages
#   make test       everything, one summary line       make sanitize   tests under ASan and UBSan
#   make examples   examples against their output      make fuzz       FUZZ_SECONDS=20 per target
#   make check      two minutes of make test, for every commit
#   make bench      timings, see bench/                make clean
#   make test-arm   tests/test_cpu.c for aarch64, under qemu
#   make mutants    MUTANTS=150 SEED=1: small faults put in one at a time, and what notices them
#   make bench-kernels   single einsums against NumPy, PyTorch, .. and the roofline
#
# make test TESTS_ONLY="math views" runs only the steps whose names contain one of the words.

CC     ?= cc
CFLAGS ?= -O2
CLANG  ?= clang
LIBS    = -lm -pthread
# "make matrix" holds every file against these; other builds stay quiet.
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
          -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wundef -Wvla

FUZZ_SECONDS ?= 20

TESTS    = math npy views extreme path split contract einsum program builder gradient memory \
           memory_fit overflow kernels choice decomp hostile dist order cpu cpu_direct cpu_gett \
           cpu_safe special grammar
FUZZERS  = npy program expr
EXAMPLES = 01_hello 02_views 03_plan 04_program 05_monoid 06_memory 07_threads 08_graph 09_cpu \
           10_gradient 11_places 12_llama

B          = build
HEADERS    = einsum.h einsum_program.h einsum_memory.h einsum_decomp.h $(wildcard backends/*.h) \
             $(wildcard tools/*.h)
TEST_BIN   = $(TESTS:%=$(B)/test_%)
# Minutes to compile with sanitizers, and san-kernels-cpu runs the same kernels.
SAN_TESTS  = $(filter-out order cpu_direct cpu_gett,$(TESTS))
SAN_BIN    = $(SAN_TESTS:%=$(B)/san/test_%) $(B)/san/test_kernels_cpu $(B)/san/test_extreme_cpu
FUZZ_BIN   = $(FUZZERS:%=$(B)/fuzz_%)
EX_BIN     = $(EXAMPLES:%=$(B)/%)

# build/found.mk holds what tools/probe found: SAN_CC, SAN_FLAGS, FUZZ_CC, FUZZ_FLAGS, PYTHON, ...
ifeq ($(filter clean setup,$(MAKECMDGOALS)),)
-include $(B)/found.mk
endif

.PHONY: all demo test check test-arm lint matrix sanitize mutants fuzz bench bench-kernels examples \
        clean setup probe
.DELETE_ON_ERROR:

all: $(B)/einsum
	@cat $(B)/found.txt
	@echo "built $(B)/einsum; try: make demo"

$(B)/found.mk: tools/probe
	@mkdir -p $(B)
	@CC="$(CC)" CLANG="$(CLANG)" sh tools/probe $(B)

probe: $(B)/found.mk
	@cat $(B)/found.txt

$(B)/einsum: tools/einsum.c $(HEADERS) $(B)/found.mk
	$(CC) -std=c99 $(CFLAGS) -Wall -Wextra $(BLAS_FLAGS) -o $@ tools/einsum.c $(BLAS_LIBS) $(LIBS)

demo: $(B)/einsum
	@sh examples/demo.sh $(B)/einsum

# ---- tests ---------------------------------------------------------------------------------------

setup:
	@sh tools/setup

# Installs what is missing, looks again at what is there, then runs every step; see STEPS below.
test: setup
	@rm -rf $(B)/found.mk $(B)/log
	@$(MAKE) --no-print-directory probe
	@start=$$(date +%s); \
	  $(MAKE) --no-print-directory -s -k -j$(JOBS) -O steps; \
	  STEPS="$$($(MAKE) --no-print-directory -s step-names)" sh tests/summary.sh $(B)/log $$start

# What a commit can break and two minutes can find. It installs nothing.
CHECK = lint $(filter-out test-cpu% test-order,$(TESTS:%=test-%)) command
check: $(B)/found.mk
	@rm -rf $(B)/log
	@start=$$(date +%s); \
	  $(MAKE) --no-print-directory -s -k -j$(JOBS) -O $(CHECK:%=step-%); \
	  WHAT="make check" STEPS="$(CHECK)" sh tests/summary.sh $(B)/log $$start

$(B)/test_%: tests/test_%.c $(wildcard tests/*.h) $(HEADERS) $(B)/found.mk
	$(CC) -std=c99 $(CFLAGS) -o $@ $< $(LIBS)

# The random tests through the kernels of a backend.
$(B)/test_kernels_cpu $(B)/test_kernels_blas: tests/test_kernels.c $(wildcard tests/*.h) $(HEADERS)
	$(CC) -std=c99 $(CFLAGS) $(if $(findstring blas,$@),-DTEST_OPENBLAS,-DTEST_CPU) -o $@ $< \
	  $(if $(findstring blas,$@),$(BLAS_LIBS)) $(LIBS)

$(B)/test_memory_fit_cpu $(B)/test_extreme_cpu: $(B)/test_%_cpu: tests/test_%.c \
  $(wildcard tests/*.h) $(HEADERS) $(B)/found.mk
	$(CC) -std=c99 $(CFLAGS) -DTEST_CPU -o $@ $< $(LIBS)

# What holds all vector kernels takes clang twice as long at -O1.
SAN_O = $(if $(filter %/einsum %/test_cpu %/test_cpu_safe %/test_special %_cpu,$@),-O0,-O1)
$(B)/san/test_kernels_cpu $(B)/san/test_extreme_cpu: $(B)/san/test_%_cpu: tests/test_%.c \
  $(wildcard tests/*.h) $(HEADERS) $(B)/found.mk
	@mkdir -p $(B)/san
	$(SAN_CC) -std=c99 -g $(SAN_O) $(SAN_FLAGS) -DTEST_CPU -o $@ $< $(LIBS)

$(B)/san/test_%: tests/test_%.c $(wildcard tests/*.h) $(HEADERS) $(B)/found.mk
	@mkdir -p $(B)/san
	$(SAN_CC) -std=c99 -g $(SAN_O) $(SAN_FLAGS) -o $@ $< $(LIBS)

$(B)/tsan/test_%: tests/test_%.c $(wildcard tests/*.h) $(HEADERS) $(B)/found.mk
	@mkdir -p $(B)/tsan
	$(SAN_CC) -std=c99 -g $(SAN_O) -fsanitize=thread -o $@ $< $(LIBS)

$(B)/san/einsum: tools/einsum.c $(HEADERS) $(B)/found.mk
	@mkdir -p $(B)/san
	$(SAN_CC) -std=c99 -g $(SAN_O) $(SAN_FLAGS) -o $@ tools/einsum.c $(LIBS)

# Without libFuzzer the targets get a plain main that makes mutations from a fixed seed.
$(B)/fuzz_%: tests/fuzz_%.c $(HEADERS) $(B)/found.mk
	$(FUZZ_CC) -std=c99 -g -O1 $(FUZZ_FLAGS) -o $@ $< $(LIBS)

lint: $(B)/found.mk
	@$(if $(PYTHON),CC="$(CC)" $(PYTHON) tools/lint,echo "lint: skipped, no python3"; exit 77)

matrix: $(B)/found.mk
	@WARN="$(WARN)" sh tests/matrix.sh $(B)

sanitize: $(SAN_BIN) $(B)/san/einsum
	@for t in $(SAN_BIN); do echo "$$t"; $$t || exit 1; done
	@sh tests/test_command.sh $(B)/san/einsum

# NEON, cross-compiled and run under an emulator.
ARM_CC  ?= aarch64-linux-gnu-gcc
ARM_RUN ?= qemu-aarch64
ARM     = $(if $(and $(shell command -v $(ARM_CC)),$(shell command -v $(ARM_RUN))),yes)
ARM_BIN = $(B)/test_cpu_arm $(B)/test_kernels_arm $(B)/test_special_arm
$(ARM_BIN): $(B)/test_%_arm: tests/test_%.c $(wildcard tests/*.h) $(HEADERS)
	$(ARM_CC) -std=c99 $(CFLAGS) -DTEST_CPU -static -o $@ $< $(LIBS)

test-arm: $(if $(ARM),$(ARM_BIN))
	@$(if $(ARM),$(ARM_RUN) $(B)/test_cpu_arm && $(ARM_RUN) $(B)/test_special_arm && \
	  $(ARM_RUN) $(B)/test_kernels_arm 3000 21 -1 neon,\
	  echo "test-arm: skipped: no $(ARM_CC) or no $(ARM_RUN)")

# Hours; a run that was broken off goes on where it was. See tests/mutants.py.
MUTANTS      ?= 150
SEED         ?= 1
MUTANT_FILES ?= *.h backends/*.h tools/*.h tools/*.c
MUTANT_TESTS ?= $(TESTS) kernels_cpu kernels_avx2 kernels_plain extreme_cpu memory_fit_cpu command
mutants: $(B)/found.mk
	@$(or $(PYTHON),python3) tests/mutants.py --count $(MUTANTS) --seed $(SEED) --jobs $(JOBS) \
	  --cc "$(CC)" --work $(B)/mutants --files "$(MUTANT_FILES)" \
	  $(MUTANT_LIST:%=--list %) $(MUTANT_TESTS)

fuzz: $(FUZZ_BIN)
	@for t in $(FUZZERS); do sh tests/fuzz.sh $(B) $$t $(FUZZ_SECONDS) || exit 1; done

$(B)/%: examples/%.c $(HEADERS) $(B)/found.mk
	$(CC) -O1 -o $@ $< $(LIBS)

examples: $(EX_BIN)
	@for e in $(EXAMPLES); do \
	  $(B)/$$e > $(B)/$$e.out && diff -u examples/expected/$$e.txt $(B)/$$e.out && echo "ok $$e" \
	  || exit 1; done

# ---- the steps of make test, run JOBS at a time --------------------------------------------------
# A step prints one line and leaves its output in build/log. A program that does not compile leaves
# no result, and the summary counts that as a failure.

JOBS ?= $(or $(shell getconf _NPROCESSORS_ONLN 2> /dev/null),2)

ISAS  = avx512 avx2 neon plain
STEPS = matrix test-arm $(FUZZERS:%=fuzz-%) $(SAN_TESTS:%=san-%) $(TESTS:%=test-%) \
        $(ISAS:%=kernels-%) san-kernels-cpu san-extreme-cpu tsan-dist tsan-cpu_safe kernels-blas \
        memory-cpu \
        san-command \
        command numpy numpy-cpu models examples readme demo lint bench
RUN_STEPS = $(if $(TESTS_ONLY),$(sort $(foreach w,$(TESTS_ONLY),$(foreach s,$(STEPS),\
            $(if $(findstring $w,$s),$s)))),$(STEPS))
STEP = @sh tests/step.sh $(B)/log
COMMAND = env PYTHON="$(or $(NUMPY_PYTHON),python3)" sh tests/test_command.sh
NO_SAN = skip "no compiler with ASan and UBSan"

.PHONY: steps step-names $(STEPS:%=step-%)
steps: $(RUN_STEPS:%=step-%)
step-names:
	@echo $(RUN_STEPS)

$(TESTS:%=step-test-%): step-test-%: $(B)/test_%
	$(STEP) test-$* $<

$(SAN_TESTS:%=step-san-%): step-san-%: $(if $(SAN_CC),$(B)/san/test_%)
	$(STEP) san-$* $(if $(SAN_CC),$<,$(NO_SAN))

$(ISAS:%=step-kernels-%): step-kernels-%: $(B)/test_kernels_cpu
	$(STEP) kernels-$* $< 3000 21 -1 $*

step-san-kernels-cpu: $(if $(SAN_CC),$(B)/san/test_kernels_cpu)
	$(STEP) san-kernels-cpu $(if $(SAN_CC),$< 1500 22,$(NO_SAN))

step-san-extreme-cpu: $(if $(SAN_CC),$(B)/san/test_extreme_cpu)
	$(STEP) san-extreme-cpu $(if $(SAN_CC),$<,$(NO_SAN))

step-tsan-dist: $(if $(SAN_CC),$(B)/tsan/test_dist)
	$(STEP) tsan-dist $(if $(SAN_CC),$< 300,$(NO_SAN))

step-tsan-cpu_safe: $(if $(SAN_CC),$(B)/tsan/test_cpu_safe)
	$(STEP) tsan-cpu_safe $(if $(SAN_CC),$< 300,$(NO_SAN))

step-memory-cpu: $(B)/test_memory_fit_cpu
	$(STEP) memory-cpu $<

step-kernels-blas: $(if $(BLAS_LIBS),$(B)/test_kernels_blas)
	$(STEP) kernels-blas $(if $(BLAS_LIBS),$< 3000 23,skip "no OpenBLAS with its headers")

$(FUZZERS:%=step-fuzz-%): step-fuzz-%: $(B)/fuzz_%
	$(STEP) fuzz-$* sh tests/fuzz.sh $(B) $* $(FUZZ_SECONDS)

step-command: $(B)/einsum
	$(STEP) command $(COMMAND) $(B)/einsum

step-san-command: $(if $(SAN_CC),$(B)/san/einsum)
	$(STEP) san-command $(if $(SAN_CC),$(COMMAND) $(B)/san/einsum,$(NO_SAN))

step-numpy: $(B)/found.mk
	$(STEP) numpy $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) tests/numpy_diff.py,\
	  skip "Python has no numpy and opt_einsum")

step-numpy-cpu: $(B)/found.mk
	$(STEP) numpy-cpu $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) tests/numpy_diff.py --cpu 3 --seed 2 \
	  -n 3000,skip "Python has no numpy and opt_einsum")

step-models: $(B)/einsum
	$(STEP) models $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) tests/models.py $(B)/einsum,\
	  skip "Python has no numpy")

step-bench: $(B)/libbench.so
	$(STEP) bench sh tests/bench.sh "$(or $(NUMPY_PYTHON),$(PYTHON))" $(B)/libbench.so

step-examples: $(EX_BIN)
	$(STEP) examples $(MAKE) -s examples

step-readme: $(B)/einsum
	$(STEP) readme sh tests/readme.sh "$(CC)" $(B)

step-test-arm: $(if $(ARM),$(ARM_BIN))
	$(STEP) test-arm $(if $(ARM),sh -c '$(ARM_RUN) $(B)/test_cpu_arm && \
	  $(ARM_RUN) $(B)/test_special_arm && \
	  $(ARM_RUN) $(B)/test_kernels_arm 3000 21 -1 neon',skip "no $(ARM_CC) or no $(ARM_RUN)")

step-demo: $(B)/einsum
	$(STEP) demo sh -c 'sh examples/demo.sh $(B)/einsum | grep -v " ms, with" | \
	  diff -u examples/expected/demo.txt - && echo "as expected"'

step-matrix: $(B)/found.mk
	$(STEP) matrix $(MAKE) -s matrix

step-lint: $(B)/found.mk
	$(STEP) lint $(if $(PYTHON),$(MAKE) -s lint,skip "no python3")

# ---- timings -------------------------------------------------------------------------------------

BENCH_SO    = bench/bench_so.c bench/roofline.c
BENCH       = $(patsubst bench/%.c,%,$(filter-out $(BENCH_SO),$(wildcard bench/*.c)))
BENCH_FLAGS ?= -O2
# The tables of bench-kernels; e.g. make bench-kernels BENCH_ARGS="--set perf --cases dg"
BENCH_ARGS  ?= --set tccg,perf --summary

$(BENCH:%=$(B)/%): $(B)/%: bench/%.c $(HEADERS) $(B)/found.mk
	$(CC) -std=c99 -O3 -march=native -o $@ $< $(LIBS) -ldl

bench: $(BENCH:%=$(B)/%)
	@for b in $(BENCH); do echo "== $$b"; $(B)/$$b || exit 1; done

# The ceilings are those of the machine, whatever the library is compiled with.
$(B)/roofline.o: bench/roofline.c bench/bench.h $(B)/found.mk
	$(CC) -std=c99 -O3 -march=native -fPIC -c -o $@ $<

$(B)/libbench.so: bench/bench_so.c $(B)/roofline.o bench/bench.h $(HEADERS)
	$(CC) -std=c99 $(BENCH_FLAGS) -fPIC -shared -o $@ $< $(B)/roofline.o $(LIBS)

bench-kernels: $(B)/libbench.so
	$(or $(NUMPY_PYTHON),python3) bench/kernels.py $(BENCH_ARGS)

clean:
	rm -rf $(B)
