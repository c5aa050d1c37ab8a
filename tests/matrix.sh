#!/bin/sh
# The compile matrix: languages, compilers and modes, warnings as errors; each program is run.
# Usage: WARN="flags" tests/matrix.sh BUILD [PART..], parts: gcc clang c++ cross, default all. A
# compiler that is not there is named and skipped.
set -u
build=$1
shift
parts=${*:-gcc clang c++ cross}
dir="$build/matrix/$(printf %s "$parts" | tr ' ' -)"  # parts may run at a time
mkdir -p "$dir"
rows=0
failed=0
skipped=
blas=$(grep '^BLAS_LIBS := .' "$build/found.mk")  # not every cblas.h is OpenBLAS's
[ -n "$blas" ] || skipped=" einsum_openblas.h"

have() { command -v "$1" > /dev/null 2>&1; }
part() { case " $parts " in *" $1 "*) true ;; *) false ;; esac; }

# Warnings C++ does not know are left out for it.
cxxwarn=$(printf '%s\n' $WARN | grep -v 'prototypes' | tr '\n' ' ')

row() {  # row NAME COMMAND..: must succeed
  name=$1
  shift
  rows=$((rows + 1))
  if "$@" > "$dir/log" 2>&1; then
    echo "  ok    $name"
  else
    failed=$((failed + 1))
    echo "  FAIL  $name: $*"
    { grep -E 'error|undefined|multiple|failed|warning' "$dir/log" || cat "$dir/log"; } | head -n 8
  fi
}

# build_run OUT COMPILER-AND-FLAGS.. : compiles, links, runs
build_run() {
  out=$1
  shift
  "$@" -o "$dir/$out" -lm -pthread -ldl && "$dir/$out"
}

# two OUT IMPLEMENTATION-FLAGS USER-FLAGS COMPILE.. -- LINK: two translation units
two() {
  out=$1 first=$2 second=$3
  shift 3
  "$@" $first -DCOMPILE_MAIN -c -o "$dir/$out.1.o" tests/compile.c &&
    "$@" $second -c -o "$dir/$out.2.o" tests/compile.c
}
two_link() {  # two_link LINKER OUT ..
  linker=$1
  shift
  two "$@" && "$linker" -o "$dir/$1" "$dir/$1.1.o" "$dir/$1.2.o" -lm -pthread -ldl && "$dir/$1"
}

# Like two_link; and the first file shows nothing but its own functions.
two_hidden() {
  two_link "$@" &&
    ! nm -g "$dir/$2.1.o" | grep -v -e ' [Uw] ' -e '[ _]main$' -e 'compile_other$'
}

one="-DEINSUM_IMPLEMENTATION"
static="-DEINSUM_IMPLEMENTATION -DEINSUM_STATIC"

# The same with what another row compiled as the first one.
other_link() {  # other_link LINKER FIRST OUT USER-FLAGS COMPILE..
  linker=$1 first=$2 out=$3 second=$4
  shift 4
  "$@" $second -c -o "$dir/$out.2.o" tests/compile.c &&
    "$linker" -o "$dir/$out" "$dir/$first.1.o" "$dir/$out.2.o" -lm -pthread -ldl && "$dir/$out"
}

# Does a file begin with the implementation, as it is? Compilers read that once for all of them.
begins() {
  awk '/^#include "[.][.].einsum.h"/ { exit }
       /^#define EINSUM_IMPLEMENTATION$/ { plain = 1; next }
       /^ *# *(define|undef|if)/ { plain = 0; exit }
       END { exit !plain }' "$1"
}

# Every row compiles all of a header again, so none says what another one does. One per compiler
# looks at the flow of values (-O1), with all backends there; the others at declarations, at what
# is used where, and at linking, which is the same at -O0:
#   backends by macro          the header, and the backends after it
#   einsum_dist.h, einsum_cpu.h   included by themselves, without the other, with nothing unused
#   einsum_cpu.h, static       both files have all of the core, and the second nothing else
#   plainly before             the core alone in one of two files
# GCC 12 takes 5 s for the indentation of the core, and less than one for all else at -O0.
quick="-O0 $WARN -Wno-misleading-indentation -Werror"
for cc in gcc clang; do
  part $cc || continue
  if ! have $cc; then skipped="$skipped $cc"; continue; fi
  c="$cc -O1 $WARN -Werror"
  fast="$cc $quick"
  row "$cc c99, backends by macro" two_link $cc $cc-bring \
    "$one -DCOMPILE_BRING" -DCOMPILE_BRING $c -std=c99
  row "$cc c99, plainly before the implementation" two_link $cc $cc-plain \
    "$one -DCOMPILE_PLAIN_FIRST" "" $fast -std=c99
  row "$cc c99, EINSUM_STATIC in one of two files" other_link $cc $cc-plain $cc-alone \
    "-DEINSUM_STATIC -DEINSUM_CORE_ONLY -DEINSUM_IMPLEMENTATION" $fast -std=c99
  row "$cc c99, EINSUM_CORE_ONLY" two_link $cc $cc-core \
    "$one -DEINSUM_CORE_ONLY" -DEINSUM_CORE_ONLY $fast -std=c99
  row "$cc c99, einsum_dist.h in one of two files" two_link $cc $cc-dist \
    "$one -DCOMPILE_DIST" -DCOMPILE_DIST $fast -std=c99
  row "$cc c99, einsum_cpu.h, EINSUM_STATIC in both files" two_hidden $cc $cc-cpu-static \
    "$static -DCOMPILE_CPU" "$static" $fast -std=c99
  row "$cc c99, einsum_cpu.h in the other file" other_link $cc $cc-bring $cc-cpu \
    -DCOMPILE_CPU $fast -std=c99
  row "$cc c99, einsum_cuda.h" $fast -std=c99 $one -DCOMPILE_CUDA -fsyntax-only tests/compile.c
  if [ -n "$blas" ]; then
    row "$cc c99, einsum_openblas.h" $fast -std=c99 $one -DCOMPILE_BLAS -fsyntax-only \
      tests/compile.c
  fi
  row "$cc c17, own malloc, assert and EIN_API" two_link $cc $cc-malloc \
    "$one -DCOMPILE_MALLOC -DCOMPILE_ASSERT -DEIN_API=extern" "" $fast -std=c17
  row "$cc c99, the command" $c -std=c99 -DEINSUM_LINKED -c -o "$dir/einsum.o" tools/einsum.c
  row "$cc c99, the command in one file" $fast -std=c99 -fsyntax-only tools/einsum.c
  # A test need not use every function of a header it shares with others.
  begin="$dir/$cc/begin.h"
  fast="$fast -Wno-unused-function -std=c99"
  mkdir -p "$dir/$cc"
  printf '#define EINSUM_IMPLEMENTATION\n#include "%s/einsum.h"\n' "$(pwd)" > "$begin"
  row "$cc c99, what tests begin with" $fast -x c-header "$begin" -o "$begin.gch"
  for f in tests/*.c; do
    case $f in tests/compile.c | tests/test_mpi*.c) continue ;; esac  # tests/mpi.sh has mpi.h
    if begins "$f"; then before="-include $begin"; else before=; fi
    row "$cc c99, warnings of $f" $fast $before -fsyntax-only "$f"
  done
  for f in examples/*.c; do
    case $f in *_ranks.c) continue ;; esac  # likewise
    row "$cc c99, warnings of $f" $cc $WARN -Werror -std=c99 -fsyntax-only "$f"
  done
done

for cxx in g++ clang++; do
  part c++ || continue
  if ! have $cxx; then skipped="$skipped $cxx"; continue; fi
  x="$cxx -x c++ -O0 $cxxwarn -Wno-misleading-indentation -Werror"
  row "$cxx c++11, plainly before the implementation" two_link $cxx $cxx-plain \
    "$one -DCOMPILE_PLAIN_FIRST" "" $x -std=c++11
  row "$cxx c++11, EINSUM_CORE_ONLY" two_link $cxx $cxx-core \
    "$one -DEINSUM_CORE_ONLY" -DEINSUM_CORE_ONLY $x -std=c++11
  row "$cxx c++11, backends by macro" two_link $cxx $cxx-bring \
    "$one -DCOMPILE_BRING" -DCOMPILE_BRING $x -std=c++11
  row "$cxx c++11, einsum_cuda.h" $x -std=c++11 $one -DCOMPILE_CUDA -fsyntax-only tests/compile.c
  if [ -n "$blas" ]; then
    row "$cxx c++11, einsum_openblas.h" $x -std=c++11 $one -DCOMPILE_BLAS -fsyntax-only \
      tests/compile.c
  fi
  row "$cxx c++20, EINSUM_STATIC in both files" \
    two_link $cxx $cxx-static "$static" "$static" $x -std=c++20
  row "$cxx c++20, all headers" $x -std=c++20 $one -DCOMPILE_BRING \
    -fsyntax-only tests/compile.c
done

if part c++ && have gcc && have g++; then
  c_library() {
    gcc -std=c99 -O0 $one -c -o "$dir/mixed.1.o" tests/compile.c &&
      g++ -x c++ -std=c++11 -DCOMPILE_MAIN -c -o "$dir/mixed.2.o" tests/compile.c &&
      g++ -o "$dir/mixed" "$dir/mixed.1.o" "$dir/mixed.2.o" && "$dir/mixed"
  }
  row "C library, C++ user" c_library
fi

arm=aarch64-linux-gnu-gcc
if ! part cross; then
  :
elif have $arm; then
  row "aarch64 gcc c99 -O3" $arm -std=c99 $quick -O3 $one -DCOMPILE_MAIN -c -o "$dir/arm.o" \
    tests/compile.c
else
  skipped="$skipped $arm"
fi

mingw=x86_64-w64-mingw32-gcc
if ! part cross; then
  :
elif have $mingw; then
  windows() {
    $mingw -std=c99 $quick $one -DCOMPILE_MAIN -c -o "$dir/win.1.o" tests/compile.c &&
      $mingw -std=c99 $quick -c -o "$dir/win.2.o" tests/compile.c &&
      $mingw -o "$dir/win.exe" "$dir/win.1.o" "$dir/win.2.o" &&
      { ! have wine || wine "$dir/win.exe"; }
  }
  row "mingw-w64 c99$(have wine || echo ' (compiled and linked, no wine to run it)')" windows
  row "mingw-w64 c99, einsum_cpu.h" $mingw -std=c99 $quick $one -DCOMPILE_CPU \
    -DCOMPILE_MAIN -c -o "$dir/win.3.o" tests/compile.c
  row "mingw-w64 c99, the command" $mingw -std=c99 -O0 -o "$dir/einsum.exe" tools/einsum.c
else
  skipped="$skipped mingw-w64"
fi

echo "matrix: $rows rows, $failed failed${skipped:+; not there:$skipped}"
[ $failed -eq 0 ]
