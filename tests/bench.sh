#!/bin/sh
# The benchmark program works: case files parse, small cases of every kind and a few of each set are
# verified, with NumPy as the only peer. Usage: tests/bench.sh PYTHON LIBBENCH.SO
set -eu
python=$1
so=$2
if [ -z "$python" ] || ! "$python" -c 'import numpy' 2> /dev/null; then
  echo "Python with NumPy is missing"
  exit 77
fi
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$python" - "$here/../bench" << 'END'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import cases
tccg = cases.load("tccg") + cases.load("tccg", as_written=True)
assert len(tccg) == 96 and len(cases.load("perf")) > 100
for c in tccg + cases.load("perf"):
    assert set(c.out) <= set(c.ext) and c.flops > 0 and set(c.dtypes) <= {"f64", "f32"}, c.name
print("case files parse")
END

run() {  # run NAME ARGUMENTS..
  name=$1
  shift
  "$python" bench/kernels.py --so "$so" --peers numpy --quick --rounds 1 --seconds 0 \
    --out "$out/$name" "$@" > "$out/log" 2>&1 || { cat "$out/log"; exit 1; }
  tail -n 1 "$out/log"
  for ext in csv md svg; do test -s "$out/$name.$ext"; done
}
cd "$here/.."
export PYTHONDONTWRITEBYTECODE=1
run tiny --set tiny --dtype f64,f32 --offset 0,16
run functional --set tiny --functional --dtype f64,f32 --cases 'contract*,batched,overhead'
run sets --set tccg,perf --as-written --threads 2 \
  --cases 'tccg31,matmul_8,bmm_1000_8,call_2x2,dg_grad_i4_j4_b5'
