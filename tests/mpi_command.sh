#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command over ranks: tests/mpi_command.sh EINSUM LAUNCHER.., where LAUNCHER.. ends with the
# option that takes the number of ranks. Results and bytes are those of the copying fabric on one
# process; a rank that cannot go on ends all of them, with its status and one message.
einsum=$(realpath "$1")
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
data=examples/data
checks=0
wrong() {
  echo "FAIL: $*"
  cat "$work/out" "$work/err" 2> /dev/null
  exit 1
}
# ranks N STATUS ARGS..: the command on N ranks ends with that status
ranks() {
  n=$1 want=$2
  shift 2
  timeout -k 5 60 $launch "$n" $each "$einsum" "$@" > "$work/out" 2> "$work/err"
  status=$?
  checks=$((checks + 1))
  [ $status = "$want" ] || wrong "$n ranks: $* ends with $status, not $want"
}
says() {  # one rank says so, no other says anything
  grep -q -- "$1" "$work/err" || wrong "nobody says '$1'"
  [ "$(grep -c 'einsum: error' "$work/err")" = 1 ] || wrong "errors are said several times"
}
figure() { tr ',{}' '\n\n\n' < "$1" | sed -n "s/^ *\"$2\": *//p" | head -n 1; }

# alike PLACES RANKS FILES..: those files, the figures of $work/one and $work/out, and what every
# place did are the same
alike() {
  places=$1 n=$2
  shift 2
  for name; do
    cmp -s "$work/$name.npy" "$work/${name}2.npy" || wrong "$n ranks, $places places: $name"
  done
  for key in p tasks messages bytes; do
    [ "$(figure "$work/one" $key)" = "$(figure "$work/out" $key)" ] ||
      wrong "$n ranks, $places places: other $key"
  done
  listed='s/.*"places": \[\([^]]*\)\].*/\1/p'
  [ -n "$(sed -n "$listed" "$work/one")" ] &&
    [ "$(sed -n "$listed" "$work/one")" = "$(sed -n "$listed" "$work/out")" ] ||
    wrong "$n ranks, $places places: other figures of places"
}

launch=$* each= moved=0
cat > "$work/two.ein" << 'END'
input X[n,f] : f32
D[i,j] = sum[k]((X[i,k] - X[j,k])^2)
M[f,j] = X[i,f] * D[i,j]
G[f,g] = M[f,j] * X[j,g]
output D, M, G
END
for n in 1 2 3 4; do
  for places in $n $((n + 3)); do
    for way in "" "--decomp sqrt" "--cost bytes --keep j --strict" "--deterministic"; do
      "$einsum" run "$work/two.ein" "X=$data/iris.npy" -p $places --fabric copying $way --json \
        -o "D=$work/D.npy" -o "M=$work/M.npy" -o "G=$work/G.npy" > "$work/one" ||
        wrong "the copying fabric"
      ranks $n 0 run "$work/two.ein" "X=$data/iris.npy" -p $places --fabric mpi $way --json \
        -o "D=$work/D2.npy" -o "M=$work/M2.npy" -o "G=$work/G2.npy"
      alike $places $n D M G
      moved=$((moved + $(figure "$work/out" bytes)))
      [ "$(wc -l < "$work/out")" = 1 ] || wrong "several ranks print"
    done
  done
done
[ $moved -gt 0 ] || wrong "nothing moves"

# Values of rand are those of one process.
printf 'R[i=37,j=11] = rand(5,i,j)\nS[i=37] = sum[j=11](floor(rand(i,j)*1024))\noutput R, S\n' > \
  "$work/rand.ein"
"$einsum" run "$work/rand.ein" -q -o "R=$work/R.npy" -o "S=$work/S.npy" || wrong "rand"
for n in 1 3 4; do
  ranks $n 0 run "$work/rand.ein" -p $n --fabric mpi -q -o "R=$work/R2.npy" -o "S=$work/S2.npy"
  cmp -s "$work/R.npy" "$work/R2.npy" && cmp -s "$work/S.npy" "$work/S2.npy" ||
    wrong "$n ranks: other values of rand"
done

# Schedules: algorithms for products of matrices, and a plan that was written as one.
"$einsum" 'ij,kj->ik' $data/iris.npy $data/iris.npy -o "$work/A.npy" > /dev/null
"$einsum" 'ij,kj->ik' $data/iris.npy $data/iris.npy -o "$work/B.npy" > /dev/null
for name in cannon pumma summa johnson solomonik cosma; do
  places=4
  case $name in johnson|solomonik) places=8 ;; esac
  set -- run examples/models/mm.ein "A=$work/A.npy" "B=$work/B.npy" -p $places --json \
    --schedule examples/schedules/$name.sched
  "$einsum" "$@" --fabric copying -o "C=$work/C.npy" > "$work/one" || wrong "$name"
  [ "$(figure "$work/one" bytes)" -gt 0 ] || wrong "$name moves nothing"
  for n in 2 3 4; do
    ranks $n 0 "$@" --fabric mpi -o "C=$work/C2.npy"
    alike $places $n C
  done
done
"$einsum" plan "$work/two.ein" --shapes 150x4 -p 6 --cost bytes --keep k --strict \
  --schedule-out "$work/two.sched" > /dev/null || wrong "no schedule is written"
"$einsum" run "$work/two.ein" "X=$data/iris.npy" -p 6 --fabric copying --json \
  --schedule "$work/two.sched" \
  -o "D=$work/D.npy" -o "M=$work/M.npy" -o "G=$work/G.npy" > "$work/one" || wrong "two.sched"
[ "$(figure "$work/one" bytes)" -gt 0 ] || wrong "two.sched moves nothing"
for n in 2 4; do
  ranks $n 0 run "$work/two.ein" "X=$data/iris.npy" -p 6 --fabric mpi --json \
    --schedule "$work/two.sched" -o "D=$work/D2.npy" -o "M=$work/M2.npy" -o "G=$work/G2.npy"
  alike 6 $n D M G
done

"$einsum" 'ij,kj->ik' $data/iris.npy $data/iris.npy -p 3 --fabric copying > "$work/one"
ranks 3 0 'ij,kj->ik' $data/iris.npy $data/iris.npy --fabric mpi
cmp -s "$work/one" "$work/out" || wrong "an expression prints something else"

# Everywhere, then at one rank that is not the first.
ranks 3 3 run "$work/two.ein" X=none.npy --fabric mpi -o "D=$work/none.npy"
says 'none.npy: cannot open'
ranks 3 2 run "$work/two.ein" "X=$data/iris.npy" --fabric mpi -p 2
says 'less than the 3 ranks'
ranks 3 2 run "$work/two.ein" "X=$data/iris.npy" --fabric=mpi --nonsense
says 'nonsense'
ranks 2 2 run "$work/two.ein" "X=$data/iris.npy" --fabric mpi --svg -
says 'no rank sees all'
ranks 2 3 run "$work/two.ein" "X=$data/iris.npy" --fabric mpi -o "D=$work/nowhere/D.npy"
says 'nowhere'
ranks 2 2 run - "X=$data/iris.npy" --fabric mpi < "$work/two.ein"
says 'standard input does not go'
ranks 2 2 'ij->j' - --fabric mpi < "$data/iris.npy"
says 'standard input does not go'
cat > "$work/each" << 'END'
#!/bin/sh
# The second rank has another working folder.
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && cd /
exec "$@"
END
chmod +x "$work/each"
each=$work/each
ranks 3 3 run "$work/two.ein" "X=$data/iris.npy" --fabric mpi -o "D=$work/none.npy"
says 'iris.npy: cannot open'
[ ! -e "$work/none.npy" ] || wrong "a file is left of a run that failed"
# Where the first rank alone writes, the others need no folder.
cp $data/iris.npy "$work/iris.npy"
here=$(pwd)
mkdir "$work/sub"
cd "$work" || exit 1
ranks 3 0 run "$work/two.ein" "X=$work/iris.npy" --fabric mpi -o D=sub/D2.npy
[ -s sub/D2.npy ] || wrong "the first rank has written nothing"
cd "$here" || exit 1

# Ranks write results together: the third may not write as far as its part lies.
cat > "$work/big.ein" << 'END'
input X[n,f] : f64
Z[n,m,k] = X[n,0] * X[m,1] * X[k,2]
output Z
END
cat > "$work/rows.ein" << 'END'
input Z[n,m,k] : f64
S[n,m] = sum[k](Z[n,m,k])
output S
END
cat > "$work/each" << 'END'
#!/bin/sh
trap '' XFSZ
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ] && ulimit -f 32000
exec "$@"
END
ranks 3 3 run "$work/big.ein" "X=$data/iris.npy" --fabric mpi -o "Z=$work/none.npy"
says 'none.npy: cannot write: File too large'
for f in "$work/none.npy" "$work"/.npy-*; do
  [ ! -e "$f" ] || wrong "$f is left of a run that failed"
done
each=
# They read of an input what their places need: 27 MB, or a quarter of that.
"$einsum" run "$work/big.ein" "X=$data/iris.npy" -o "Z=$work/Z.npy" || wrong "the large product"
ranks 3 0 run "$work/big.ein" "X=$data/iris.npy" --fabric mpi -o "Z=$work/Z2.npy"
cmp -s "$work/Z.npy" "$work/Z2.npy" || wrong "a file that ranks wrote together"
for n in 1 4; do
  ranks $n 0 run "$work/rows.ein" "Z=$work/Z.npy" --keep m,k --deterministic --fabric mpi --json \
    -o "S=$work/S$n.npy"
  figure "$work/out" resident_bytes > "$work/resident$n"
done
cmp -s "$work/S1.npy" "$work/S4.npy" || wrong "sums of what ranks read in parts"
saved=$(($(cat "$work/resident1") - $(cat "$work/resident4")))
[ $saved -gt 12000000 ] || wrong "4 ranks read all of an input: $saved bytes less than one"
# The same elements, said to be in Fortran's order; then an input that is short at one rank.
LC_ALL=C sed "1,/}/s/'fortran_order': False,/'fortran_order': True, /" "$work/Z.npy" > "$work/F.npy"
cmp -s "$work/F.npy" "$work/Z.npy" && wrong "the order of elements is not another"
"$einsum" run "$work/rows.ein" "Z=$work/F.npy" --deterministic -o "S=$work/S1.npy" ||
  wrong "Fortran's order"
ranks 3 0 run "$work/rows.ein" "Z=$work/F.npy" --deterministic --fabric mpi -o "S=$work/S4.npy"
cmp -s "$work/S1.npy" "$work/S4.npy" || wrong "an input in Fortran's order"
head -c 3000 "$work/Z.npy" > "$work/sub/Z.npy"
cat > "$work/each" << 'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && cd sub
exec "$@"
END
each=$work/each
cd "$work" || exit 1
rm -f S4.npy
ranks 3 1 run "$work/rows.ein" Z=Z.npy --fabric mpi -o S=S4.npy
says 'Z.npy: file has [0-9]* bytes of data'
[ ! -e S4.npy ] || wrong "a file is left of a run that failed"
cd "$here" || exit 1
each=
# A rank that is killed in the middle of a run, which would take hours: the launcher ends all others
# and says so; what was written before stays whole.
cat > "$work/long.ein" << 'END'
input X[n,f] : f64
Z[n,m] = sum[a,b,c](exp(sin(X[n,0]*X[a,1] + X[m,2]*X[b,3] + X[c,0])))
output Z
END
cat > "$work/each" << 'END'
#!/bin/sh
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
  "$@" &
  sleep 2
  kill -9 $!
  kill -9 $$
fi
exec "$@"
END
each=$work/each
cp "$work/Z.npy" "$work/kept.npy"
start=$(date +%s)
timeout -k 5 60 $launch 4 "$work/each" "$einsum" run "$work/long.ein" "X=$data/iris.npy" \
  --fabric mpi --path none -o "Z=$work/Z.npy" > "$work/out" 2>&1
status=$?
checks=$((checks + 1))
[ $status -ne 0 ] && [ $status -ne 124 ] && [ $(($(date +%s) - start)) -lt 50 ] ||
  wrong "a rank is killed, the run ends with $status"
grep -qi 'signal\|kill\|terminat' "$work/out" || wrong "the launcher says nothing of a dead rank"
cmp -s "$work/Z.npy" "$work/kept.npy" || wrong "a killed run has changed its output"
each=
sleep 1  # until all of its ranks have ended
ranks 2 0 run "$work/two.ein" "X=$data/iris.npy" --fabric mpi -o "D=$work/D2.npy"
for f in "$work"/.npy-*; do [ ! -e "$f" ] || wrong "$f is left of a run that was killed"; done
# Help ends all ranks in order: a launcher that misses MPI_Finalize says so.
for word in --help --version; do
  ranks 3 0 run --fabric mpi $word
  [ ! -s "$work/err" ] || wrong "$word ends otherwise than runs do"
done
# The line of README.md, as it stands there but for the launcher and where the command is.
line=$(sed -n 's/^mpirun -n 4 einsum //p' README.md)
[ -n "$line" ] || wrong "README.md shows no run over ranks"
ranks 4 0 $line
grep -q '0.68569' "$work/out" || wrong "README.md: another result"
# Devices of a machine are dealt to its ranks; numbers are whole, so that results are the host's.
if [ -n "${CUDA_STUB:-}" ]; then
  mkdir "$work/stub" "$work/trace"
  cp "$CUDA_STUB" "$work/stub/libcuda.so.1"
  for name in nvrtc cublas cublasLt; do
    ln -s libcuda.so.1 "$work/stub/lib$name.so.13"
  done
  cat > "$work/whole.ein" << 'END'
X[i=17,j=6] = i*3 - j*j
output X : f64
END
  sed 's/: f32/: f64/' "$work/two.ein" > "$work/twice.ein"
  "$einsum" run "$work/whole.ein" -o "X=$work/X.npy" > "$work/out" || wrong "whole.ein"
  "$einsum" run "$work/twice.ein" "X=$work/X.npy" -o "D=$work/D.npy" -o "M=$work/M.npy" \
    -o "G=$work/G.npy" > "$work/out" || wrong "twice.ein"
  LD_LIBRARY_PATH=$work/stub:${LD_LIBRARY_PATH:-} STUB_DEVICES=2 STUB_TRACE=$work/trace
  export LD_LIBRARY_PATH STUB_DEVICES STUB_TRACE
  for n in 2 4; do
    rm -f "$work"/trace/*
    ranks $n 0 run "$work/twice.ein" "X=$work/X.npy" -p $((n + n % 4)) --decomp sqrt --fabric mpi \
      --kernels cuda -o "D=$work/D2.npy" -o "M=$work/M2.npy" -o "G=$work/G2.npy"
    for name in D M G; do
      cmp -s "$work/$name.npy" "$work/${name}2.npy" || wrong "$n ranks with devices: $name"
    done
    [ "$(echo "$work"/trace/device* | wc -w)" = 2 ] || wrong "$n ranks do not share two devices"
  done
fi
echo "ok $checks runs over ranks"
