#!/bin/sh
# make install and uninstall, into paths with blanks: what is installed, programs built with what
# pkg-config and CMake say, the manual page, what is left afterwards; and that everything is built
# again when flags change, and only then. Usage: MAKE=make CC=cc tests/install.sh BUILD
set -u
build=$1
make=${MAKE:-make}
cc=${CC:-cc}
root=$PWD
work="$(cd "$build" && pwd)/install test"
failed=0
skipped=
rm -rf "$work"
mkdir -p "$work"

have() { command -v "$1" > /dev/null 2>&1; }
wrong() { echo "install: $*"; failed=1; }
quiet() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; wrong "fails: $*"; return 1; }; }
listed() { (cd "$1" && find . ! -type d | sort); }

# ---- what is installed, and where --------------------------------------------------------------

stage="$work/put in here"
prefix="/opt/ein sum"
usr="$work/a prefix"
{
  for h in einsum.h backends/*.h; do echo "./include/einsum/$h"; done
  echo ./bin/einsum
  echo ./share/man/man1/einsum.1
  echo ./share/pkgconfig/einsum.pc
  echo ./share/cmake/einsum/einsum-config.cmake
  echo ./share/cmake/einsum/einsum-config-version.cmake
} | sort > "$work/want"
quiet $make -s install DESTDIR="$stage" PREFIX="$prefix"
quiet $make -s install DESTDIR= PREFIX="$usr"
for at in "$stage$prefix" "$usr"; do
  listed "$at" > "$work/got"
  diff -u "$work/want" "$work/got" || wrong "other files than these are in $at"
  for h in einsum.h backends/*.h; do
    cmp -s "$h" "$at/include/einsum/$h" || wrong "$h is another one in $at"
  done
done
[ "$(listed "$stage" | wc -l)" -eq "$(wc -l < "$work/want")" ] || wrong "files outside of PREFIX"
grep -r "put in here" "$stage" && wrong "DESTDIR stands in an installed file"
version=$("$usr/bin/einsum" --version | sed 's/einsum //')
[ "$("$usr/bin/einsum" 'kyx->' examples/data/digits.npy)" = 31147 ] ||
  wrong "the command does not run"

# ---- programs ----------------------------------------------------------------------------------

mkdir -p "$work/program"
cat > "$work/program/main.c" << 'END'
#define EINSUM_IMPLEMENTATION
#include <einsum.h>
#include <stdio.h>
int other(void);
int main(void) {
  float a[2] = {1, 2}, c[1];
  int64_t two[] = {2}, one[] = {1};
  ein_ztensor in[] = {{.dtype = EIN_F32, .rank = 1, .shape = two, .data = a}};
  ein_ztensor out = {.dtype = EIN_F32, .rank = 0, .shape = one, .data = c};
  if (other() || ein_einsum(NULL, "i->", 1, in, &out) != EIN_OK) return 1;
  printf("%s %g\n", ein_version(), c[0]);
  return 0;
}
END
# Every header by itself, and those of the backends before the one they need.
for h in einsum.h backends/*.h; do
  [ "$h" = backends/einsum_mpi.h ] && continue  # mpi.h may not be there: tests/mpi.sh
  [ "$h" = backends/einsum_cpu_kernels.h ] && continue  # einsum_cpu.h's, empty by itself
  printf '#include <%s>\nint other(void);\nint other(void) { return EIN_OK; }\n' "$h" \
    > "$work/program/other.c"
  quiet $cc -I"$usr/include/einsum" -std=c99 -Wall -Wextra -Werror -fsyntax-only \
    "$work/program/other.c"
  [ "$h" = backends/einsum_openblas.h ] && continue  # nor may cblas.h, which only this includes
  printf '#define EINSUM_IMPLEMENTATION\n#include <%s>\n' "$h" > "$work/program/all.c"
  quiet $cc -I"$usr/include/einsum" -std=c99 -fsyntax-only "$work/program/all.c"
done

if have pkg-config; then
  export PKG_CONFIG_PATH="$usr/share/pkgconfig"
  [ "$(pkg-config --modversion einsum)" = "$version" ] || wrong "pkg-config says another version"
  eval "set -- $(pkg-config --cflags --libs einsum)"
  quiet $cc -O0 -o "$work/program/a" "$work/program/main.c" "$work/program/other.c" "$@" &&
    [ "$("$work/program/a")" = "$version 3" ] || wrong "the program of pkg-config's flags is wrong"
  eval "set -- $(PKG_CONFIG_PATH="$stage$prefix/share/pkgconfig" pkg-config --cflags einsum)"
  [ "$1" = "-I$prefix/include/einsum" ] || wrong "pkg-config does not name the prefix: $*"
else
  skipped="$skipped pkg-config"
fi

if have cmake; then
  cat > "$work/program/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.10)
project(uses_einsum C)
find_package(einsum ${ASKED} REQUIRED)
find_package(einsum REQUIRED)  # twice must do no harm
add_executable(a main.c other.c)
target_link_libraries(a einsum::einsum)
END
  series=${version%.*}
  for asked in "" 0 "$series" "$version"; do
    rm -rf "$work/cmake"
    quiet cmake -S "$work/program" -B "$work/cmake" -DASKED="$asked" \
      -DCMAKE_C_COMPILER="${cc%% *}" \
      -DCMAKE_PREFIX_PATH="$usr"
  done
  quiet cmake --build "$work/cmake" && [ "$("$work/cmake/a")" = "$version 3" ] ||
    wrong "the program of CMake is wrong"
  for asked in 99 "$series.99" 0.0.1; do
    rm -rf "$work/cmake2"
    cmake -S "$work/program" -B "$work/cmake2" -DASKED="$asked" -DCMAKE_PREFIX_PATH="$usr" \
      > "$work/log" 2>&1 && wrong "CMake takes $version for $asked"
    grep -q "einsum-config.cmake, version: $version" "$work/log" ||
      { cat "$work/log"; wrong "CMake"; }
  done
else
  skipped="$skipped cmake"
fi

# ---- the manual page ---------------------------------------------------------------------------

page="$usr/share/man/man1/einsum.1"
linted=
if have groff; then
  linted=yes
  groff -man -Tascii -ww -z "$page" > "$work/log" 2>&1
  [ -s "$work/log" ] && { cat "$work/log"; wrong "groff warns of the manual page"; }
fi
if have mandoc; then
  linted=yes
  quiet mandoc -T lint -W warning "$page"
fi
[ -n "$linted" ] || skipped="$skipped groff"
sed 's/\\-/-/g; s/\\(aq/'"'"'/g; s/\\e/\\/g' "$page" > "$work/page"
"$usr/bin/einsum" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p' > "$work/options"
[ -s "$work/options" ] || wrong "--help has no options"
while read -r option; do
  grep -q -e "^\.B $option" "$work/page" || wrong "the manual page lacks $option"
done < "$work/options"
for c in $("$usr/bin/einsum" --help | sed -n 's/^einsum \([a-z][a-z]*\) .*/\1/p'); do
  grep -q "^\.SS $c\$" "$work/page" || wrong "the manual page lacks $c"
  example=$("$usr/bin/einsum" "$c" --help | sed -n 's/^Example: //p')
  grep -qxF -e "$example" "$work/page" || wrong "the manual page lacks the example of $c"
done

# ---- and away ----------------------------------------------------------------------------------

echo mine > "$usr/include/mine.h"
quiet $make -s uninstall DESTDIR="$stage" PREFIX="$prefix"
quiet $make -s uninstall DESTDIR= PREFIX="$usr"
[ -z "$(listed "$stage")" ] || { listed "$stage"; wrong "uninstall leaves that in DESTDIR"; }
[ "$(listed "$usr")" = ./include/mine.h ] || { listed "$usr"; wrong "uninstall leaves that"; }
[ ! -d "$usr/share/cmake/einsum" ] || wrong "uninstall leaves a folder"
quiet $make -s uninstall DESTDIR= PREFIX="$usr"  # twice must do no harm

# ---- flags -------------------------------------------------------------------------------------
# A compiler that writes down how it is called, and makes files that run.

flags=$build/install-flags
rm -rf "$flags"
mkdir -p "$flags"
cat > "$flags/cc" << 'END'
#!/bin/sh
echo " $* " >> "$(dirname "$0")/log"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ] && [ "$2" != /dev/null ]; then
    printf '#!/bin/sh\nexit 0\n' > "$2"
    chmod +x "$2"
  fi
  shift
done
END
chmod +x "$flags/cc"
built() {  # built VARIABLE=VALUE..: what is compiled then, on $flags/log
  : > "$flags/log"
  quiet $make -s B="$flags" CC="$root/$flags/cc" CPPFLAGS= CFLAGS=-O1 LDFLAGS= BLAS=yes "$@" \
    "$flags/einsum" "$flags/test_math" "$flags/test_path"
}
case $flags in /*) root= ;; esac
built
grep -q -- "-o $flags/einsum .*-lopenblas" "$flags/log" || wrong "the first time not all is built"
built
[ -s "$flags/log" ] && { cat "$flags/log"; wrong "built again without a change"; }
for change in CPPFLAGS=-DSEEN=1 CFLAGS=-O3 "LDFLAGS=-L/seen -Wl,-z,seen" "CPPFLAGS=-DSEEN='\"a b\"'"
do
  built "$change"
  for name in einsum test_math test_path; do
    grep -F -- " ${change#*=} " "$flags/log" | grep -q -- "-o $flags/$name " ||
      case $change in *\'*) grep -q -- '-DSEEN="a b" ' "$flags/log" ;; *) false ;; esac ||
      wrong "$change does not reach $name"
  done
  built "$change"
  [ -s "$flags/log" ] && wrong "$change: built again without a change"
done
built BLAS=no
grep -q -- "-o $flags/einsum " "$flags/log" || wrong "BLAS=no: not built again"
grep -q openblas "$flags/log" && wrong "BLAS=no does not leave OpenBLAS out"
cp "$flags/cc" "$flags/cc2"
built BLAS=no CC="$root/$flags/cc2"
grep -q -- "-o $flags/einsum " "$flags/log" || wrong "CC: not built again"

[ $failed -eq 0 ] && echo "installed, used and removed${skipped:+; not there:$skipped}"
exit $failed
