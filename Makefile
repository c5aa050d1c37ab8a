# einsum.h: one header, nothing to configure. "make" builds the command, "make demo" shows it at
# work, "make test" runs every test. What is missing on the machine is named and skipped.
#
#   make            build/einsum, the command          make lint       the rules of the code
#   make headers    einsum.h from src/, backends       make dev        build/dev/einsum, for gdb
#   make demo       the command on real data           make matrix     compilers and languages
#   make test       everything, one summary line       make sanitize   tests under ASan and UBSan
#   make examples   examples against their output      make fuzz       FUZZ_SECONDS=20 per target
#   make check      two minutes of make test, for every commit
#   make bench      timings, see bench/                make clean
#   make test-arm   tests/test_cpu.c for aarch64, under qemu
#   make test-mpi   tests/test_mpi.c on 1 to 16 ranks of OpenMPI and MPICH
#   make mutants    MUTANTS=150 SEED=1: small faults put in one at a time, and what notices them
#   make install    PREFIX=/usr/local DESTDIR=; make uninstall takes it away again
#   make bench-gpu   tests and timings of einsum_cuda.h where there is a GPU, into one file
#   make bench-kernels   single einsums against NumPy, PyTorch, .. and the roofline
#
# CC, CPPFLAGS, CFLAGS, LDFLAGS are honoured, BLAS=no leaves OpenBLAS out, MPI=yes (or
# MPI=mpicc.mpich, ..) builds --fabric mpi in; whatever depends on them is built again when they
# change.
# make test TESTS_ONLY="math views" runs only the steps whose names contain one of the words.

CC     ?= cc
CFLAGS ?= -O2
CLANG  ?= clang
BLAS   ?= yes
MPI    ?= no
LIBS    = -lm -pthread -ldl
FLAGS   = -std=c99 $(CPPFLAGS) $(CFLAGS)
BUILD   = $(CC) $(FLAGS)
LINK    = $(LDFLAGS) $(LIBS)
# "make matrix" holds every file against these; other builds stay quiet.
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
          -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wundef -Wvla

FUZZ_SECONDS ?= 20

TESTS    = math npy views extreme path split contract einsum program builder canon bound count \
           fusion groups gradient batch many widths memory memory_fit overflow kernels choice \
           decomp hostile dist dealt order rates cpu cpu_direct cpu_gett cpu_masked cpu_safe \
           special grammar users provider store distribution schedule steps grids dtensor scatter \
           within nodes cuda device device_groups device_along devices device_steps rewrite equal \
           rearrange operator race
FUZZERS  = npy program expr
EXAMPLES = 01_hello 02_views 03_plan 04_program 05_monoid 06_memory 07_threads 08_graph 09_cpu \
           10_gradient 11_places 12_llama 17_cuda $(if $(FFTW_LIBS),18_fftw)

B          = build
LIBRARY_H  = einsum.h $(wildcard backends/*.h)
HEADERS    = $(LIBRARY_H) $(wildcard tools/*.h) $(B)/fresh
TEST_BIN   = $(TESTS:%=$(B)/test_%)
# Minutes to compile with sanitizers, and san-kernels-cpu runs the same kernels.
SAN_TESTS  = $(filter-out order cpu_direct cpu_gett cuda device device_groups device_along devices \
               device_steps,$(TESTS))
SAN_BIN    = $(SAN_TESTS:%=$(B)/san/test_%) $(B)/san/test_kernels_cpu $(B)/san/test_extreme_cpu
FUZZ_BIN   = $(FUZZERS:%=$(B)/fuzz_%)
EX_BIN     = $(EXAMPLES:%=$(B)/%)

# build/found.mk holds what tools/probe found: SAN_CC, SAN_FLAGS, FUZZ_CC, FUZZ_FLAGS, PYTHON, ...
ifeq ($(filter clean setup uninstall,$(MAKECMDGOALS)),)
-include $(B)/found.mk
endif

.PHONY: all headers dev demo install uninstall test check test-arm test-mpi lint matrix sanitize \
        mutants fuzz bench bench-gpu bench-kernels examples clean setup probe
.DELETE_ON_ERROR:

all: $(B)/einsum
	@cat $(B)/found.txt
	@echo "built $(B)/einsum; try: make demo"

# Files that change only when their text does: what the probe looks at, and what is compiled with.
# Everything that is built depends on the latter.
quoted = '$(subst ','\'',$(1))'
PROBED = CC=$(call quoted,$(CC)) CLANG=$(call quoted,$(CLANG)) BLAS=$(call quoted,$(BLAS)) \
         MPI=$(call quoted,$(MPI)) CPPFLAGS=$(call quoted,$(CPPFLAGS)) \
         CFLAGS=$(call quoted,$(CFLAGS)) LDFLAGS=$(call quoted,$(LDFLAGS))
# changed COMMAND: what it prints becomes the target unless it is; several may do so at once.
changed = t=$@.$$$$ && $(1) > $$t && if cmp -s $$t $@; then rm -f $$t; else mv -f $$t $@; fi
.PHONY: FORCE
$(B)/probed: FORCE
	@mkdir -p $(B)
	@$(call changed,printf '%s\n' $(call quoted,$(PROBED)))

$(B)/found.mk: tools/probe $(B)/probed
	@$(PROBED) sh tools/probe $(B)

$(B)/flags: $(B)/found.mk FORCE
	@$(call changed,cat $(B)/probed $(B)/found.mk)

probe: $(B)/found.mk
	@cat $(B)/found.txt

# ---- shared objects ------------------------------------------------------------------------------
# The library, once for all programs of a build. Tests include its implementation all the same, for
# private functions; what they and examples use of the public ones comes from the objects:
# gnu_inline functions that are not inlined are nowhere but there. Without gcc or clang (SHARED, see
# tools/probe) every program compiles all of it, and so do those in WHOLE, which change something
# or call kernels in private.

THIN    = -w -fno-inline '-DEIN_API=extern __inline __attribute__((gnu_inline))'
WHOLE   = math contract cpu_safe
# Tests with many small cases cut work as if these were large.
CUT     = -DEINI_LEAF_WORK=24 -DEINI_SUM_WORK=8 -DEINI_LAYOUT_BYTES=16 -DEINI_BLAS_BLOCK=12 \
          -DEINI_BLAS_DEPTH=4 -DEINI_BLAS_CUT=24
LIBRARY = tests/library.c $(LIBRARY_H) $(B)/flags
OBJECTS = $(B)/library.o $(B)/library_cpu.o $(B)/library_cuda.o \
          $(if $(BLAS_LIBS),$(B)/library_blas.o)

$(B)/library.o: $(LIBRARY)
	$(BUILD) -fPIC -c -o $@ $<
$(B)/library_cut.o: $(LIBRARY)
	$(BUILD) $(CUT) $(ROUGH) -c -o $@ $<
$(B)/library_cpu.o: $(LIBRARY)
	$(BUILD) -fPIC -DLIBRARY_CPU $(ROUGH) -w -c -o $@ $<
$(B)/library_cuda.o: $(LIBRARY)
	$(BUILD) -fPIC -DLIBRARY_CUDA -w -c -o $@ $<
$(B)/library_blas.o: $(LIBRARY)
	$(BUILD) -fPIC -DLIBRARY_BLAS -w -c -o $@ $<
$(B)/library_blas_cut.o: $(LIBRARY)
	$(BUILD) $(CUT) -DLIBRARY_BLAS -w -c -o $@ $<

# einsum_mpi.h needs the library's private functions: no objects then.
MPICC     = $(filter-out no,$(MPI:yes=mpicc))
EINSUM_CC = $(if $(MPICC),OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC),$(CC))
LINKED    = $(if $(MPICC),,$(if $(SHARED),$(OBJECTS)))

$(B)/einsum: tools/einsum.c $(HEADERS) $(B)/flags $(LINKED)
	$(EINSUM_CC) $(FLAGS) -Wall -Wextra $(BLAS_FLAGS) \
	  $(if $(MPICC),-DWITH_MPI) $(if $(LINKED),-DEINSUM_LINKED) -o $@ tools/einsum.c $(LINKED) \
	  $(BLAS_LIBS) $(LINK)

# ---- installing ----------------------------------------------------------------------------------
# Headers lie as they do here, in a folder of their own. Nothing of them knows the machine, so what
# pkg-config and CMake read goes below share.

PREFIX   ?= /usr/local
INSTALL  ?= install
VERSION   = $(shell sed -n 's/^.define EINSUM_VERSION "\(.*\)"/\1/p' einsum.h)
# What is installed, by its folder below PREFIX.
IN        = bin include/einsum/backends share/man/man1 share/pkgconfig share/cmake/einsum
INSTALLED = bin/einsum share/man/man1/einsum.1 share/pkgconfig/einsum.pc \
            $(addprefix include/einsum/,$(LIBRARY_H)) \
            $(addprefix share/cmake/einsum/,einsum-config.cmake einsum-config-version.cmake)

$(B)/einsum.1: tools/man $(B)/einsum
	sh tools/man $(B)/einsum > $@

# In a .pc file a blank needs a backslash, which is one for sed, too.
install: $(B)/einsum $(B)/einsum.1
	@mkdir -p $(B)/package
	prefix=$$(printf '%s' $(call quoted,$(PREFIX)) | sed 's/ /\\ /g; s/[\&|]/\\&/g') && \
	  sed -e "s|@PREFIX@|$$prefix|" -e 's|@VERSION@|$(VERSION)|' tools/package/einsum.pc \
	  > $(B)/package/einsum.pc
	for f in einsum-config.cmake einsum-config-version.cmake; do \
	  sed 's|@VERSION@|$(VERSION)|' tools/package/$$f > $(B)/package/$$f || exit 1; done
	to=$(call quoted,$(DESTDIR)$(PREFIX)) && \
	  for d in $(IN); do $(INSTALL) -d "$$to/$$d" || exit 1; done && \
	  $(INSTALL) -m 755 $(B)/einsum "$$to/bin" && \
	  $(INSTALL) -m 644 einsum.h "$$to/include/einsum" && \
	  $(INSTALL) -m 644 $(wildcard backends/*.h) "$$to/include/einsum/backends" && \
	  $(INSTALL) -m 644 $(B)/einsum.1 "$$to/share/man/man1" && \
	  $(INSTALL) -m 644 $(B)/package/einsum.pc "$$to/share/pkgconfig" && \
	  $(INSTALL) -m 644 $(B)/package/*.cmake "$$to/share/cmake/einsum"

# Of the folders only those that are einsum's alone go.
uninstall:
	to=$(call quoted,$(DESTDIR)$(PREFIX)) && \
	  for f in $(INSTALLED); do rm -f "$$to/$$f" || exit 1; done && \
	  for d in share/cmake/einsum include/einsum/backends include/einsum; do \
	    if [ -d "$$to/$$d" ]; then rmdir "$$to/$$d" || exit 1; fi; done

# The headers are made from parts, and committed; nothing is built from stale ones.
MADE = einsum.h backends/einsum_cpu.h backends/einsum_cpu_kernels.h backends/einsum_cuda.h \
       backends/einsum_dist.h
PARTS_einsum.h = src
PARTS_backends/einsum_cpu.h = backends/cpu
PARTS_backends/einsum_cpu_kernels.h = backends/cpu-kernels
PARTS_backends/einsum_cuda.h = backends/cuda
PARTS_backends/einsum_dist.h = backends/dist
headers:
	@$(foreach h,$(MADE),sh tools/join $(PARTS_$h) > $h;)

$(B)/fresh: $(MADE) tools/join $(foreach h,$(MADE),$(wildcard $(PARTS_$h)/*))
	@mkdir -p $(B)
	@$(foreach h,$(MADE),sh tools/join $(PARTS_$h) | cmp -s - $h || \
	  { echo "$h is not what $(PARTS_$h) makes: make headers" >&2; exit 1; };)
	@touch $@

# The command with debug information that names the parts, as compilers do then.
dev: $(B)/found.mk
	@mkdir -p $(B)/dev
	@sh tools/join -l src > $(B)/dev/einsum.h
	@sh tools/join -l backends/cpu > $(B)/dev/einsum_cpu.h
	@sh tools/join -l backends/cpu-kernels > $(B)/dev/einsum_cpu_kernels.h
	@sh tools/join -l backends/dist > $(B)/dev/einsum_dist.h
	$(CC) -std=c99 -g -O1 -Wall -Wextra -DEINSUM_IMPLEMENTATION= -include $(B)/dev/einsum.h \
	  -include $(B)/dev/einsum_cpu.h -include $(B)/dev/einsum_dist.h -o $(B)/dev/einsum \
	  tools/einsum.c $(LIBS)

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

# What a commit can break and two minutes can find: no rule that takes a compiler, no test that is
# the CPU backend's own, fewer random cases, and code that compiles fast. It installs nothing.
CHECK = command quick-lint $(filter-out test-cpu% test-cuda test-device% test-order test-rates \
        test-special test-batch,$(TESTS:%=test-%))
ROUGH =
check: $(B)/found.mk
	@rm -rf $(B)/check/log
	@start=$$(date +%s); \
	  TEST_FEWER=30 $(MAKE) --no-print-directory -s -k -j$(JOBS) -O B=$(B)/check CFLAGS=-O1 \
	  ROUGH=-O0 $(CHECK:%=step-%); \
	  WHAT="make check" STEPS="$(CHECK)" sh tests/summary.sh $(B)/check/log $$start

# ---- the programs of the tests -------------------------------------------------------------------

TEST_C = $(wildcard tests/*.h) $(HEADERS) $(B)/flags
# linked OBJECT..: what follows the name of a test: flags to link objects, or none of it
linked = $(if $(SHARED),$(THIN)) -o $@ $< $(if $(SHARED),$(1))
# What tests of several headers are linked to: a linker takes of objects all that they have.
ALL    = $(B)/library.o $(B)/library_cpu.o

$(WHOLE:%=$(B)/test_%): $(B)/test_%: tests/test_%.c $(TEST_C)
	$(BUILD) $(ROUGH) -o $@ $< $(LINK)

# It sees declarations only.
$(B)/test_provider: tests/test_provider.c $(TEST_C) $(ALL)
	$(BUILD) -Wall -Wextra -o $@ $< $(ALL) $(LINK)

# Nor does this, which takes a stub of CUDA at run time.
$(B)/libcuda_stub.so: tests/cuda_stub.c $(B)/flags
	$(CC) -std=gnu99 -O2 $(CPPFLAGS) -Wall -Wextra -fPIC -shared -o $@ $< -ldl -lm -pthread
CUDA_ALL = $(B)/library.o $(B)/library_cuda.o
$(B)/test_cuda $(B)/test_device: $(B)/test_%: tests/test_%.c $(TEST_C) $(CUDA_ALL)
	$(BUILD) -Wall -Wextra -o $@ $< $(CUDA_ALL) $(LINK)

$(B)/test_device_groups $(B)/test_device_along $(B)/test_devices \
  $(B)/test_device_steps: $(B)/test_%: tests/test_%.c $(TEST_C) \
  $(if $(SHARED),$(B)/library.o $(B)/library_cuda.o)
	$(BUILD) $(call linked,$(B)/library.o $(B)/library_cuda.o) $(LINK)

$(B)/test_%: tests/test_%.c $(TEST_C) $(if $(SHARED),$(ALL))
	$(BUILD) $(call linked,$(ALL)) $(LINK)

$(B)/test_kernels $(B)/test_order: $(B)/test_%: tests/test_%.c $(TEST_C) \
  $(if $(SHARED),$(B)/library_cut.o $(B)/library_cpu.o)
	$(BUILD) $(CUT) $(call linked,$(B)/library_cut.o $(B)/library_cpu.o) $(LINK)

# The random tests through the kernels of a backend.
$(B)/test_kernels_cpu: tests/test_kernels.c $(TEST_C) \
  $(if $(SHARED),$(B)/library_cut.o $(B)/library_cpu.o)
	$(BUILD) -DTEST_CPU $(call linked,$(B)/library_cut.o $(B)/library_cpu.o) $(LINK)
$(B)/test_kernels_blas: tests/test_kernels.c $(TEST_C) \
  $(if $(SHARED),$(B)/library_cut.o $(B)/library_blas_cut.o)
	$(BUILD) -DTEST_OPENBLAS $(call linked,$(B)/library_cut.o $(B)/library_blas_cut.o) \
	  $(BLAS_LIBS) $(LINK)

$(B)/test_kernels_cuda: tests/test_kernels.c $(TEST_C) $(B)/libcuda_stub.so \
  $(if $(SHARED),$(B)/library_cut.o $(B)/library_cuda.o)
	$(BUILD) '-DTEST_CUDA="$(B)/libcuda_stub.so"' \
	  $(call linked,$(B)/library_cut.o $(B)/library_cuda.o) $(LINK)

# What a budget holds is found as without the backend, in full there; its kernels show in fewer.
$(B)/test_memory_fit_cpu: FEWER = -DTEST_FEWER=3
$(B)/test_memory_fit_cpu $(B)/test_extreme_cpu: $(B)/test_%_cpu: tests/test_%.c $(TEST_C) \
  $(if $(SHARED),$(ALL))
	$(BUILD) -DTEST_CPU $(FEWER) $(call linked,$(ALL)) $(LINK)

# The library for tests in Python.
$(B)/libtest.so: tests/einsum_so.c $(TEST_C) $(if $(SHARED),$(ALL))
	$(BUILD) -fPIC -shared $(call linked,$(ALL)) $(LINK)
$(B)/libtest_bench.so: bench/bench_so.c $(B)/roofline.o $(TEST_C) bench/bench.h \
  $(if $(SHARED),$(ALL))
	$(BUILD) -fPIC -shared $(call linked,$(ALL)) $(B)/roofline.o $(LINK)

# With sanitizers clang takes a minute for the library, and two for all vector kernels, twice that
# at -O1. It compiles thinly at -O0 only. The kernels are 130 MB: programs share one copy of them.
SAN_BUILD = $(SAN_CC) -std=c99 -g1 -DTEST_FEWER=6
SAN_SO    = $(SAN_BUILD) $(SAN_FLAGS) -fPIC -shared -Wl,-soname,$(@F)
SAN_ALL   = $(B)/san/library.so $(B)/san/library_cpu.so
SAN_CPU   = batch cpu cpu_masked many rates special widths
SAN_WHOLE = $(WHOLE) kernels
SAN_O     = -O0
SAN_LIBS  = '-Wl,-rpath,$$ORIGIN' $(LIBS)
$(B)/san/library.so: $(LIBRARY)
	@mkdir -p $(B)/san
	$(SAN_SO) -O1 -o $@ $< $(LIBS)
$(B)/san/library_cut.so: $(LIBRARY)
	@mkdir -p $(B)/san
	$(SAN_SO) -O0 $(CUT) -o $@ $< $(LIBS)
$(B)/san/library_cpu.so: $(LIBRARY)
	@mkdir -p $(B)/san
	$(SAN_SO) -O0 -DLIBRARY_CPU -w -o $@ $< $(LIBS)
$(B)/san/library_cuda.so: $(LIBRARY)
	@mkdir -p $(B)/san
	$(SAN_SO) -O0 -DLIBRARY_CUDA -w -o $@ $< $(LIBS)

$(SAN_WHOLE:%=$(B)/san/test_%): $(B)/san/test_%: tests/test_%.c $(TEST_C)
	@mkdir -p $(B)/san
	$(SAN_BUILD) $(SAN_O) $(SAN_FLAGS) -o $@ $< $(LIBS)

$(B)/san/test_kernels_cpu: tests/test_kernels.c $(TEST_C) $(B)/san/library_cut.so \
  $(B)/san/library_cpu.so
	$(SAN_BUILD) -O0 $(SAN_FLAGS) -DTEST_CPU $(THIN) -o $@ $< $(B)/san/library_cut.so \
	  $(B)/san/library_cpu.so $(SAN_LIBS)

$(B)/san/test_extreme_cpu: tests/test_extreme.c $(TEST_C) $(SAN_ALL)
	$(SAN_BUILD) -O0 $(SAN_FLAGS) -DTEST_CPU $(THIN) -o $@ $< $(SAN_ALL) $(SAN_LIBS)

$(SAN_CPU:%=$(B)/san/test_%): $(B)/san/test_%: tests/test_%.c $(TEST_C) $(SAN_ALL)
	$(SAN_BUILD) -O0 $(SAN_FLAGS) $(THIN) -o $@ $< $(SAN_ALL) $(SAN_LIBS)

$(B)/san/test_provider: tests/test_provider.c $(TEST_C) $(B)/san/library.so
	$(SAN_BUILD) -O0 $(SAN_FLAGS) -o $@ $< $(B)/san/library.so $(SAN_LIBS)

$(B)/san/test_%: tests/test_%.c $(TEST_C) $(B)/san/library.so
	$(SAN_BUILD) -O0 $(SAN_FLAGS) $(THIN) -o $@ $< $(B)/san/library.so $(SAN_LIBS)

$(B)/tsan/test_%: tests/test_%.c $(TEST_C)
	@mkdir -p $(B)/tsan
	$(SAN_BUILD) $(SAN_O) -fsanitize=thread -o $@ $< $(LIBS)

SAN_TOOL = $(SAN_ALL) $(B)/san/library_cuda.so
$(B)/san/einsum: tools/einsum.c $(HEADERS) $(B)/flags $(SAN_TOOL)
	$(SAN_BUILD) -O0 $(SAN_FLAGS) -DEINSUM_LINKED -o $@ tools/einsum.c $(SAN_TOOL) $(SAN_LIBS)

# Without libFuzzer the targets get a plain main that makes mutations from a fixed seed.
$(B)/fuzz_%: tests/fuzz_%.c $(HEADERS) $(B)/flags
	$(FUZZ_CC) -std=c99 -g1 -O0 -DEINI_ARENA_FIRST=1 $(FUZZ_FLAGS) -o $@ $< $(LIBS)

lint: $(B)/found.mk
	@$(if $(PYTHON),CC="$(CC)" $(PYTHON) tools/lint,echo "lint: skipped, no python3"; exit 77)

matrix: $(B)/found.mk
	@WARN="$(WARN)" sh tests/matrix.sh $(B) $(MATRIX)

sanitize: $(SAN_BIN) $(B)/san/einsum
	@for t in $(SAN_BIN); do echo "$$t"; $$t || exit 1; done
	@sh tests/test_command.sh $(B)/san/einsum

# NEON, cross-compiled and run under an emulator, which is what takes long: few random cases.
ARM_CC  ?= aarch64-linux-gnu-gcc
ARM_RUN ?= qemu-aarch64
ARM     = $(if $(and $(shell command -v $(ARM_CC)),$(shell command -v $(ARM_RUN))),yes)
ARM_BIN = $(B)/test_cpu_arm $(B)/test_kernels_arm $(B)/test_special_arm $(B)/test_cpu_direct_arm \
          $(B)/test_cpu_gett_arm $(B)/test_cpu_masked_arm
ARM_ALL = $(B)/library_arm.o $(B)/library_cpu_arm.o
ARM_CUT = $(B)/library_cut_arm.o $(B)/library_cpu_arm.o
ARM_TEST = $(ARM_CC) -std=c99 $(CFLAGS) -DTEST_CPU -DTEST_FEWER=10 $(THIN) -static -o $@ $<
$(B)/library_arm.o: $(LIBRARY)
	$(ARM_CC) -std=c99 -O1 -w -c -o $@ $<
$(B)/library_cut_arm.o: $(LIBRARY)
	$(ARM_CC) -std=c99 -O1 $(CUT) -w -c -o $@ $<
$(B)/library_cpu_arm.o: $(LIBRARY)
	$(ARM_CC) -std=c99 $(CFLAGS) -DLIBRARY_CPU -w -c -o $@ $<
$(filter-out $(B)/test_kernels_arm,$(ARM_BIN)): $(B)/test_%_arm: tests/test_%.c $(TEST_C) $(ARM_ALL)
	$(ARM_TEST) $(ARM_ALL) $(LIBS)
$(B)/test_kernels_arm: tests/test_kernels.c $(TEST_C) $(ARM_CUT)
	$(ARM_TEST) $(CUT) $(ARM_CUT) $(LIBS)

ARM_TESTS = $(ARM_RUN) $(B)/test_cpu_arm && $(ARM_RUN) $(B)/test_special_arm && \
            $(ARM_RUN) $(B)/test_cpu_direct_arm 300 && $(ARM_RUN) $(B)/test_cpu_gett_arm 300 && \
            $(ARM_RUN) $(B)/test_cpu_masked_arm 300 && \
            $(ARM_RUN) $(B)/test_kernels_arm 400 21 -1 neon
test-arm: $(if $(ARM),$(ARM_BIN))
	@$(if $(ARM),$(ARM_TESTS),echo "test-arm: skipped: no $(ARM_CC) or no $(ARM_RUN)")

# Hours; a run that was broken off goes on where it was. See tests/mutants.py.
MUTANTS      ?= 150
SEED         ?= 1
MUTANT_FILES ?= *.h backends/*.h tools/*.h tools/*.c
MUTANT_TESTS ?= $(TESTS) kernels_cpu kernels_avx2 kernels_plain extreme_cpu memory_fit_cpu command
mutants: $(B)/found.mk
	@$(or $(PYTHON),python3) tests/mutants.py --count $(MUTANTS) --seed $(SEED) --jobs $(JOBS) \
	  --cc "$(CC)" --work $(B)/mutants --files "$(MUTANT_FILES)" \
	  $(MUTANT_LIST:%=--list %) $(MUTANT_SECONDS:%=--seconds %) $(MUTANT_TESTS)

fuzz: $(FUZZ_BIN)
	@for t in $(FUZZERS); do sh tests/fuzz.sh $(B) $$t $(FUZZ_SECONDS) || exit 1; done

$(B)/17_cuda: examples/17_cuda.c $(HEADERS) $(B)/flags $(if $(SHARED),$(ALL) $(B)/library_cuda.o)
	$(BUILD) $(call linked,$(ALL) $(B)/library_cuda.o) $(LINK)
$(B)/18_fftw: examples/18_fftw.c $(HEADERS) $(B)/flags $(if $(SHARED),$(ALL))
	$(BUILD) $(call linked,$(ALL)) $(FFTW_LIBS) $(LINK)
$(B)/%: examples/%.c $(HEADERS) $(B)/flags $(if $(SHARED),$(ALL))
	$(BUILD) $(call linked,$(ALL)) $(LINK)

examples: $(EX_BIN)
	@for e in $(EXAMPLES); do \
	  $(B)/$$e > $(B)/$$e.out && diff -u examples/expected/$$e.txt $(B)/$$e.out && echo "ok $$e" \
	  || exit 1; done

# ---- the steps of make test, run JOBS at a time --------------------------------------------------
# A step prints one line and leaves its output in build/log. A program that does not compile leaves
# no result, and the summary counts that as a failure.

JOBS ?= $(or $(shell getconf _NPROCESSORS_ONLN 2> /dev/null),2)

ISAS  = avx512 avx2 neon plain
PARTS = gcc clang c++ cross
# Those first that take longest, with what has to be compiled for them alone.
STEPS = progress san-command san-pictures san-cpu_safe tsan-cpu_safe $(PARTS:%=matrix-%) \
        test-arm $(FUZZERS:%=fuzz-%) \
        $(filter-out san-cpu_safe,$(SAN_TESTS:%=san-%)) $(TESTS:%=test-%) \
        $(ISAS:%=kernels-%) san-kernels-cpu san-extreme-cpu tsan-dist kernels-blas \
        kernels-cuda gpu-dry memory-cpu \
        mpi-openmpi mpi-mpich command pictures numpy numpy-cpu canon bound models \
        examples readme install demo lint bench
RUN_STEPS = $(if $(TESTS_ONLY),$(sort $(foreach w,$(TESTS_ONLY),$(foreach s,$(STEPS),\
            $(if $(findstring $w,$s),$s)))),$(STEPS))
STEP = @sh tests/step.sh $(B)/log
COMMAND = env PYTHON="$(or $(NUMPY_PYTHON),python3)" sh tests/test_command.sh
NO_SAN = skip "no compiler with ASan and UBSan"

.PHONY: steps step-names step-quick-lint $(STEPS:%=step-%)
steps: $(RUN_STEPS:%=step-%)
step-names:
	@echo $(RUN_STEPS)

DEVICE_STEPS = $(patsubst %,step-test-%,cuda device device_groups device_along devices \
                 device_steps)
$(filter-out $(DEVICE_STEPS),$(TESTS:%=step-test-%)): step-test-%: $(B)/test_%
	$(STEP) test-$* $<

# Generated kernels are compiled by CC: hundreds of small files.
$(DEVICE_STEPS): step-test-%: $(B)/test_% $(B)/libcuda_stub.so
	$(STEP) test-$* env CC="$(CC)" $< $(B)/libcuda_stub.so
# What stands ready for a machine with a GPU, tried without one.
step-gpu-dry: $(B)/gpu $(B)/libcuda_stub.so
	$(STEP) gpu-dry env CC="$(CC)" PYTHON="$(or $(NUMPY_PYTHON),python3)" \
	  sh bench/gpu.sh $(B) $(B)/libcuda_stub.so
step-kernels-cuda: $(B)/test_kernels_cuda
	$(STEP) kernels-cuda env CC="$(CC)" $< 250 21

$(SAN_TESTS:%=step-san-%): step-san-%: $(if $(SAN_CC),$(B)/san/test_%)
	$(STEP) san-$* $(if $(SAN_CC),$<,$(NO_SAN))

$(ISAS:%=step-kernels-%): step-kernels-%: $(B)/test_kernels_cpu
	$(STEP) kernels-$* $< 3000 21 -1 $*

step-san-kernels-cpu: $(if $(SAN_CC),$(B)/san/test_kernels_cpu)
	$(STEP) san-kernels-cpu $(if $(SAN_CC),$< 500 22,$(NO_SAN))

step-san-extreme-cpu: $(if $(SAN_CC),$(B)/san/test_extreme_cpu)
	$(STEP) san-extreme-cpu $(if $(SAN_CC),$<,$(NO_SAN))

step-tsan-dist: $(if $(SAN_CC),$(B)/tsan/test_dist)
	$(STEP) tsan-dist $(if $(SAN_CC),$< 300,$(NO_SAN))

step-tsan-cpu_safe: $(if $(SAN_CC),$(B)/tsan/test_cpu_safe)
	$(STEP) tsan-cpu_safe $(if $(SAN_CC),$< 300,$(NO_SAN))

MPI_TEST = WARN="$(WARN)" sh tests/mpi.sh $(B)
step-mpi-openmpi step-mpi-mpich: step-mpi-%: $(TEST_C) $(B)/libcuda_stub.so
	$(STEP) mpi-$* env CUDA_STUB="$(CURDIR)/$(B)/libcuda_stub.so" $(MPI_TEST) $* 1 3 4

# On more ranks, and on 4 with sanitizers: minutes.
test-mpi: $(TEST_C)
	@for m in openmpi mpich; do SANITIZE=yes $(MPI_TEST) $$m 1 2 3 4 6 8 12 16 || exit 1; done

step-memory-cpu: $(B)/test_memory_fit_cpu
	$(STEP) memory-cpu $<

step-kernels-blas: $(if $(BLAS_LIBS),$(B)/test_kernels_blas)
	$(STEP) kernels-blas $(if $(BLAS_LIBS),$< 3000 23,skip "no OpenBLAS with its headers")

$(FUZZERS:%=step-fuzz-%): step-fuzz-%: $(B)/fuzz_%
	$(STEP) fuzz-$* sh tests/fuzz.sh $(B) $* $(FUZZ_SECONDS)

step-progress step-pictures: step-%: $(B)/einsum
	$(STEP) $* $(if $(PYTHON),$(PYTHON) tests/$*.py $<,skip "no Python")
step-san-pictures: $(if $(SAN_CC),$(B)/san/einsum)
	$(STEP) san-pictures $(if $(SAN_CC),$(if $(PYTHON),$(PYTHON) tests/pictures.py $<,\
	  skip "no Python"),$(NO_SAN))

step-command: $(B)/einsum $(B)/libcuda_stub.so
	$(STEP) command env CUDA_STUB="$(CURDIR)/$(B)/libcuda_stub.so" $(COMMAND) $(B)/einsum

step-san-command: $(if $(SAN_CC),$(B)/san/einsum)
	$(STEP) san-command $(if $(SAN_CC),$(COMMAND) $(B)/san/einsum,$(NO_SAN))

NUMPY_DIFF = $(NUMPY_PYTHON) tests/numpy_diff.py --so $(B)/libtest.so
step-numpy: $(if $(NUMPY_PYTHON),$(B)/libtest.so)
	$(STEP) numpy $(if $(NUMPY_PYTHON),$(NUMPY_DIFF),\
	  skip "Python has no numpy and opt_einsum")

step-numpy-cpu: $(if $(NUMPY_PYTHON),$(B)/libtest.so)
	$(STEP) numpy-cpu $(if $(NUMPY_PYTHON),$(NUMPY_DIFF) --cpu 3 --seed 2 \
	  -n 3000,skip "Python has no numpy and opt_einsum")

step-canon: $(B)/einsum
	$(STEP) canon $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) tests/canon_diff.py $(B)/einsum,\
	  skip "Python has no numpy and opt_einsum")

step-bound: $(B)/einsum
	$(STEP) bound $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) -W ignore tests/bound_diff.py $(B)/einsum,\
	  skip "Python has no numpy and opt_einsum")

step-models: $(B)/einsum
	$(STEP) models $(if $(NUMPY_PYTHON),$(NUMPY_PYTHON) tests/models.py $(B)/einsum,\
	  skip "Python has no numpy")

step-bench: $(B)/libtest_bench.so
	$(STEP) bench sh tests/bench.sh "$(or $(NUMPY_PYTHON),$(PYTHON))" $(B)/libtest_bench.so

step-examples: $(EX_BIN)
	$(STEP) examples $(MAKE) -s examples

step-readme: $(B)/einsum
	$(STEP) readme sh tests/readme.sh "$(CC)" $(B)

step-install: $(B)/einsum $(B)/einsum.1
	$(STEP) install env MAKE="$(MAKE)" CC="$(CC)" sh tests/install.sh $(B)

step-test-arm: $(if $(ARM),$(ARM_BIN))
	$(STEP) test-arm $(if $(ARM),sh -c '$(ARM_TESTS)',skip "no $(ARM_CC) or no $(ARM_RUN)")

step-demo: $(B)/einsum
	$(STEP) demo sh -c 'sh examples/demo.sh $(B)/einsum | grep -v " ms, with" | \
	  diff -u examples/expected/demo.txt - && echo "as expected"'

$(PARTS:%=step-matrix-%): step-matrix-%: $(B)/found.mk
	$(STEP) matrix-$* $(MAKE) -s matrix MATRIX=$*

step-lint: $(B)/found.mk
	$(STEP) lint $(if $(PYTHON),$(MAKE) -s lint,skip "no python3")
step-quick-lint: $(B)/found.mk
	$(STEP) quick-lint $(if $(PYTHON),$(PYTHON) tools/lint --quick,skip "no python3")

# ---- timings -------------------------------------------------------------------------------------

BENCH_SO    = bench/bench_so.c bench/roofline.c
BENCH       = $(patsubst bench/%.c,%,$(filter-out $(BENCH_SO),$(wildcard bench/*.c)))
BENCH_FLAGS ?= -O2
# The tables of bench-kernels; e.g. make bench-kernels BENCH_ARGS="--set perf --cases dg"
BENCH_ARGS  ?= --set tccg,perf --summary

$(BENCH:%=$(B)/%): $(B)/%: bench/%.c $(HEADERS) $(B)/flags
	$(CC) -std=c99 -O3 -march=native -o $@ $< $(LIBS)

bench: $(BENCH:%=$(B)/%)
	@for b in $(BENCH); do echo "== $$b"; $(B)/$$b || exit 1; done

# The ceilings are those of the machine, whatever the library is compiled with.
$(B)/roofline.o: bench/roofline.c bench/bench.h $(B)/flags
	$(CC) -std=c99 -O3 -march=native -fPIC -c -o $@ $<

$(B)/libbench.so: bench/bench_so.c $(B)/roofline.o bench/bench.h $(HEADERS)
	$(CC) -std=c99 $(BENCH_FLAGS) -fPIC -shared -o $@ $< $(B)/roofline.o $(LIBS)

# Under 8 minutes on a machine with a GPU; build/gpu.txt. Without one it says so.
bench-gpu: $(B)/gpu $(B)/found.mk
	@CC="$(CC)" PYTHON="$(or $(NUMPY_PYTHON),python3)" sh bench/gpu.sh $(B)

bench-kernels: $(B)/libbench.so
	$(or $(NUMPY_PYTHON),python3) bench/kernels.py $(BENCH_ARGS)

clean:
	rm -rf $(B)
