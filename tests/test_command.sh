#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests of the command: tests/test_command.sh BINARY. Needs sh and coreutils only; results are also
# compared with NumPy's where ${PYTHON:-python3} has it. Prints every check that failed; exit status
# 1 if there was any.

case ${1:-build/einsum} in
  /*) bin=${1:-} ;;
  *) bin=$PWD/${1:-build/einsum} ;;
esac
here=$(cd "$(dirname "$0")" && pwd) || exit 1
[ -x "$bin" ] || { echo "test_command.sh: no command at $bin" >&2; exit 1; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/einsum-test.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1
LC_ALL=C
export LC_ALL
checks=0
failures=0
nl='
'

# ---- checking

fail() {
  failures=$((failures + 1))
  echo "test_command.sh: $ran: $1"
}

# expect STATUS ARGS...: runs the command; its output is then in $out and $err. A success leaves
# stderr empty, an error leaves stdout empty and starts with one line of a fixed form.
expect() {
  want=$1
  shift
  ran="einsum $*"
  "$bin" "$@" > .out 2> .err
  settle $?
}

# The same with standard input from a file: expect_in FILE STATUS ARGS...
expect_in() {
  input=$1
  want=$2
  shift 2
  ran="einsum $* < $input"
  "$bin" "$@" < "$input" > .out 2> .err
  settle $?
}

settle() {
  checks=$((checks + 1))
  out=$(tr -d '\000' < .out)
  err=$(cat .err)
  [ "$1" = "$want" ] || fail "exit status $1, not $want${nl}$err"
  if [ "$want" = 0 ]; then
    [ -z "$err" ] || fail "stderr is not empty: $err"
  else
    [ -z "$out" ] || fail "an error, but stdout says: $out"
    case $err in 'einsum: error: '?*) ;; *) fail "no proper error: $err" ;; esac
  fi
}

prints() {
  checks=$((checks + 1))
  [ "$out" = "$1" ] || fail "prints${nl}$out${nl}instead of${nl}$1"
}

prints_part() {
  checks=$((checks + 1))
  case $out in *"$1"*) ;; *) fail "prints${nl}$out${nl}without: $1" ;; esac
}

says() {
  checks=$((checks + 1))
  case $err in *"$1"*) ;; *) fail "says${nl}$err${nl}without: $1" ;; esac
}

one_line() {
  checks=$((checks + 1))
  [ "$(wc -l < .err)" -eq 1 ] || fail "the error is not one line: $err"
}

ok() {
  checks=$((checks + 1))
  "$@" || fail "failed: $*"
}

bytes() { od -An -v -tx1 "$1" | tr -d ' \n'; }
same() { [ "$(bytes "$1")" = "$(bytes "$2")" ]; }
absent() { [ ! -e "$1" ]; }

# ---- arrays from nothing: npy FILE DESCR FORTRAN SHAPE DATA, the data as a printf format

octal() { printf '\\%03o' "$1"; }

npy() {
  head="{'descr': '$2', 'fortran_order': $3, 'shape': ($4), }"
  while [ $(((${#head} + 11) % 64)) -ne 0 ]; do head="$head "; done
  n=$((${#head} + 1))
  printf "\\223NUMPY\\001\\000$(octal $((n % 256)))$(octal $((n / 256)))" > "$1"
  printf '%s\n' "$head" >> "$1"
  # shellcheck disable=SC2059
  printf "$5" >> "$1"
}

# The bytes of small doubles, little-endian.
f8() {
  for x in "$@"; do
    case $x in
      0) printf '\\000\\000\\000\\000\\000\\000\\000\\000' ;;
      1) printf '\\000\\000\\000\\000\\000\\000\\360\\077' ;;
      2) printf '\\000\\000\\000\\000\\000\\000\\000\\100' ;;
      2.5) printf '\\000\\000\\000\\000\\000\\000\\004\\100' ;;
      3) printf '\\000\\000\\000\\000\\000\\000\\010\\100' ;;
      4) printf '\\000\\000\\000\\000\\000\\000\\020\\100' ;;
      5) printf '\\000\\000\\000\\000\\000\\000\\024\\100' ;;
      6) printf '\\000\\000\\000\\000\\000\\000\\030\\100' ;;
      10) printf '\\000\\000\\000\\000\\000\\000\\044\\100' ;;
      20) printf '\\000\\000\\000\\000\\000\\000\\064\\100' ;;
      0.1) printf '\\232\\231\\231\\231\\231\\231\\271\\077' ;;
      inf) printf '\\000\\000\\000\\000\\000\\000\\360\\177' ;;
      nan) printf '\\000\\000\\000\\000\\000\\000\\370\\177' ;;
    esac
  done
}

npy A.npy '<f8' False '2, 3' "$(f8 1 2 3 4 5 6)"
npy F.npy '<f8' True '2, 3' "$(f8 1 4 2 5 3 6)"
npy big.npy '>f8' False '2,' '\077\360\000\000\000\000\000\000\100\000\000\000\000\000\000\000'
npy x.npy '<f8' False '3,' "$(f8 1 1 2)"
npy b.npy '<f8' False '2,' "$(f8 10 20)"
npy k.npy '<f8' False '' "$(f8 2.5)"
npy odd.npy '<f8' False '3,' "$(f8 0.1 inf nan)"
npy i1.npy '|i1' False '2, 2' '\001\377\177\200'
npy u1.npy '|u1' False '3,' '\001\002\377'
npy bool.npy '|b1' False '3,' '\001\000\007'
npy f4.npy '<f4' False '2,' '\315\314\314\075\000\000\200\113'
npy f2.npy '<f2' False '2,' '\146\056\377\173'
npy c16.npy '<c16' False '2,' "$(f8 1 2 0.1 0)"
npy empty.npy '<f8' False '0, 3' ''

# ---- expressions

expect 0 'ij,j->i' A.npy x.npy
prints '[ 9 21]'
expect 0 ij A.npy
prints "[[1 2 3]$nl [4 5 6]]"
expect 0 'ij->ji' F.npy
prints "[[1 4]$nl [2 5]$nl [3 6]]"
expect 0 'i->' big.npy
prints 3
expect 0 i odd.npy
prints '[0.1 inf nan]'
expect 0 ij i1.npy
prints "[[   1   -1]$nl [ 127 -128]]"
expect 0 'i,i' u1.npy u1.npy
prints 6  # 1 + 4 + 255^2, wrapped as NumPy does
expect 0 i bool.npy
prints '[ True False  True]'
expect 0 i f4.npy
prints '[     0.1 16777216]'
expect 0 i f2.npy
prints '[     0.1 6.55e+04]'
expect 0 i c16.npy
prints '[  (1+2j) (0.1+0j)]'
expect 0 'i,j' b.npy b.npy
prints "[[100 200]$nl [200 400]]"
expect 0 'ij->j' empty.npy
prints '[0 0 0]'
expect 0 ij empty.npy
prints '[]'
expect 0 '...' A.npy
prints "[[1 2 3]$nl [4 5 6]]"
expect 0 'i,j,k->ijk' b.npy b.npy big.npy
prints "[[[100 200]$nl  [200 400]]$nl$nl [[200 400]$nl  [400 800]]]"
expect 0 -- '->' k.npy
prints 2.5
expect 0 '' k.npy
prints 2.5
expect 2 '->' k.npy
says 'goes after --'
expect 1 -- run A.npy  # the expression "run", not the subcommand
says 'operand 0 has 2 axes'
npy r3.npy '|u1' False '1, 1, 1' '\007'
expect 0 -- run r3.npy
prints '[[[7]]]'
expect 0 --json ij A.npy
prints '{"dtype": "f64", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}'
expect 0 --json i odd.npy
prints '{"dtype": "f64", "shape": [3], "data": [0.1, null, null]}'
expect 0 --json i c16.npy
prints '{"dtype": "c128", "shape": [2], "data": [[1, 2], [0.1, 0]]}'
expect 0 --dtype f32 --json ij A.npy
prints_part '"f32"'
expect 1 --dtype i32 ij A.npy
says 'same_kind'
expect 0 ij A.npy -p 1 --fabric serial --kernels portable --deterministic -q -j 2 --seed 3
prints "[[1 2 3]$nl [4 5 6]]"
expect 0 'ij,ij,j->i' A.npy A.npy x.npy --path '(0,2) (0,1)' --goal size --budget 0.1
prints '[ 23 113]'

# Arrays from standard input follow one another.
cat A.npy x.npy > two
expect_in two 0 'ij,j' - -
prints '[ 9 21]'

# More than 1000 elements are summarised, as NumPy does.
npy long.npy '|u1' False '1001,' "$(printf '%01001d' 0)"
expect 0 i long.npy
prints '[48 48 48 ... 48 48 48]'
expect 0 --full i long.npy
ok [ "$(wc -w < .out)" -eq 1001 ]
npy six.npy '|u1' False '6, 200' "$(printf '%01200d' 0)"
expect 0 ij six.npy  # as many rows as the ends have
ok [ "$(grep -c '48 \.\.\. 48' .out)" -eq 6 ]
npy thin.npy '|u1' False '7, 1, 143' "$(printf '%01001d' 0)"
expect 0 ijk thin.npy
ok [ "$(wc -l < .out)" -eq 13 ]

# Errors in expressions show the place.
expect 1 'ij,jk' A.npy A.npy
prints ''
says "einsum: error: index 'j'"
says "$nl  ij,jk$nl     ^"
expect 1 'ij-' A.npy
says "$nl  ij-$nl    ^"
expect 1 'ij->q' A.npy
expect 1 'i(' A.npy
expect 1 "i$(printf '\033')[2J" A.npy
case $err in *"$(printf '\033')"*) fail 'an escape sequence reaches the terminal' ;; esac
expect 1 'ij' A.npy A.npy
expect 1 'ij,jk' A.npy
expect 2 'ij,jk'
says 'no operands'
expect 2 P.ein A.npy
says 'einsum run'
expect 2 - A.npy
says 'einsum run'

# ---- the command line

ran=einsum
"$bin" > .out 2> .err
ok [ $? -eq 2 ]
ok [ -s .err ]
expect 0 --help
prints_part 'Exit status'
# Of a subcommand --help lists exactly the options that it takes, and its example works.
printf '%s\n' "$out" | sed -n 's/^  \(--*[a-z][^ ]*\) .*/\1/p' > options
ok [ "$(wc -l < options)" -gt 20 ]
subcommands=$(printf '%s\n' "$out" | sed -n 's/^einsum \([a-z][a-z]*\) .*/\1/p')
ok [ "$(echo $subcommands)" = \
  "run plan bench canon tune store calibrate bound rewrite search info" ]
mkdir help
ln -s "$here/../examples" help/examples
ln -s "$bin" help/einsum
for c in $subcommands; do
  expect 0 $c --help
  mv .out help/$c
  expect 0 $c x.npy -h
  ok cmp -s .out help/$c
  ok sh -c "head -n 1 help/$c | grep -q '^einsum $c '"
  while read -r option; do
    ran="einsum $c $option"
    takes=yes
    "$bin" $c $option 2 2>&1 < /dev/null | grep -q -e 'does not apply here' \
      -e 'not available in this version: only' && takes=no
    listed=no
    grep -q -e "^  $option " help/$c && listed=yes
    checks=$((checks + 1))
    [ $takes = $listed ] || fail "is taken: $takes, in --help: $listed"
  done < options
  ran=$(sed -n 's/^Example: //p' help/$c)
  ok sh -c "cd help && PATH=.:\$PATH && $ran > example && test -s example"
done
expect 0 --version
prints_part 'einsum '
expect 0 info
prints_part 'backends  portable'
prints_part 'f64'
expect 0 info --json -j 2
prints_part '"threads": 2'
prints_part '"rates": {"from": "by table", "machine": "'
expect 2 info what
# Rates: measured, kept in a file, read from it, refused with line and reason.
expect 2 calibrate --out rates.txt
expect 2 calibrate -o rates.txt -o rates.txt
expect 2 calibrate --json -o -
expect 3 calibrate -o no-such-folder/rates.txt
expect 0 calibrate --budget 0.001 -o rates.txt
prints ''
ok sh -c 'head -n 1 rates.txt | grep -q "^einsum rates 1$" && tail -n 1 rates.txt | grep -q "^end$"'
expect 0 calibrate --budget 0.001 --json -j 1
prints_part '{"from": "measured", "machine": "'
prints_part '"threads": 1, "flops_f64": '
expect 0 info --rates rates.txt
prints_part 'rates     rates.txt'
prints_part 'GFLOP/s of products'
export EINSUM_RATES=rates.txt
expect 0 info --json
prints_part '"rates": {"from": "rates.txt", "machine": "'
ok sh -c "'$bin' plan ij,jk --sizes i=9,j=9,k=9 --explain 2>&1 | grep -q 'rates in use: rates.txt'"
expect 0 bench ij,jk --sizes i=9,j=9,k=9 --rates rates.txt --seconds 0.02
sed 's/^hz .*/hz 0/' rates.txt > zero.txt
expect 1 plan ij,jk --sizes i=9,j=9,k=9 --rates zero.txt
says "zero.txt:$(grep -n '^hz' zero.txt | cut -d : -f 1):4: rates: no rate is zero"
EINSUM_RATES=zero.txt
ok sh -c "'$bin' plan ij,jk --sizes i=9,j=9,k=9 2>&1 |
  grep -q 'note: no rates, EINSUM_RATES: zero.txt: rates: no rate is zero'"
expect 0 plan ij,jk --sizes i=9,j=9,k=9 -q
EINSUM_RATES=no-such-file
ok sh -c "'$bin' info 2>&1 | grep -q 'note: no rates, EINSUM_RATES: no-such-file: '"
unset EINSUM_RATES
sed 's/^machine .*/machine Deep Thought/' rates.txt > other.txt
expect 1 plan ij,jk --sizes i=9,j=9,k=9 --rates other.txt
says "other.txt: rates of another machine: 'Deep Thought', this is '"
{ sed '$d' rates.txt; printf 'answer 42\nend\n'; } > more.txt
ok sh -c "'$bin' plan ij,jk --sizes i=9,j=9,k=9 --rates more.txt 2>&1 |
  grep -q 'note: rates: a line that is not known is skipped: answer 42'"
printf 'einsum rates 1\n\000' > nul.txt
expect 1 info --rates nul.txt
expect 3 info --rates no-such-file
expect 2 calibrate what
expect 2 calibrate --budget -1
# What a plan says of the cache of these rates is the bound for as many elements, in bytes.
elements=65536
bw='100000000000 100000000000 100000000000 50000000000'
sed "s/^fast_bytes .*/fast_bytes $((8 * elements))/; s/^flops_f64 .*/flops_f64 100000000000/
  s/^read_bw .*/read_bw $bw/; s/^all_read_bw .*/all_read_bw $(echo "$bw" | sed 's/ /000 /g')000/
  " rates.txt > known.txt
expect 0 plan ij,jk --sizes i=700,j=701,k=702 --dtype f64 --rates known.txt --json
planned=$(sed -n 's/.*"io_bound": \([0-9.e+]*\),.*/\1/p' .out)
expect 0 bound ij,jk --sizes i=700,j=701,k=702 --dtype f64 --fast-memory $elements --json
bound=$(sed -n 's/.*"compulsory": [0-9.e+]*, "bound": \([0-9.e+]*\),.*/\1/p' .out)
compulsory=$((700 * 701 + 701 * 702 + 700 * 702))
ok awk "BEGIN { exit !($bound > $compulsory && $planned == 8 * $bound) }"
# What must move: X0 = 3 S and 2 V / sqrt(S) of a product, statement by statement of a program.
expect 0 bound ij,jk-\>ik --sizes i=512,j=512,k=512 --fast-memory 1024 -p 4 \
  --dtype f64 --rates known.txt
prints_part 'moves at least 8388606 elements, compulsory 786432'
prints_part 'bound 8388608, per place 2097152; intensity 16 at X0 3072; tile i=32 k=32 j=32'
prints_part 'does 16 operations while an element comes from memory: arithmetic is the ceiling'
expect 0 bound 'ij,j->i' --sizes i=512,j=512 --fast-memory 1024 --rates known.txt
prints_part 'operations while an element comes from memory: memory is the ceiling'
expect 0 bound i,i-\>i --shapes 5,5 --fast-memory 4 --json
prints_part '"x0": null, "tile": {"i": null}, "bound": 10'
printf 'input A[4,n], B[n,6]\nX[i,k] = A[i,j]*B[j,k]\nY[i] = exp(X[i,i]) for i=4\n' > two.ein
expect 0 bound two.ein --sizes n=5 --fast-memory 8 --json
prints_part '[{"out": "X", "line": 2, "volume": 120, "flops": 240, "fast_memory": 8, '
prints_part '}}, {"out": "Y", "line": 3, "volume": 4,'
for n in 0 -1 x 1.5 1000000000000001 ''; do
  expect 2 bound i,i-\>i --shapes 5,5 --fast-memory "$n"
  says "--fast-memory takes a number of elements from 1 to 1e15, not '$n'"
  one_line
done
expect 2 bound i,i-\>i --shapes 5,5
says 'give the elements of --fast-memory'
expect 2 bound --fast-memory 8
expect 2 ij A.npy --fast-memory 8
expect 1 bound two.ein --fast-memory 8
# Groups: of a product of three tensors in two steps one; of two large products two.
printf 'input X[i=64,j=64,k=64], A[j,a=64], B[k,a]\nM[j,k,a] = A[j,a]*B[k,a]
Y[i,a] = X[i,j,k]*M[j,k,a]\noutput Y\n' > kr.ein
expect 0 bound kr.ein --fast-memory 3000 --groups
prints_part 'M + Y, lines 2 3: moves '
prints_part '1 group: '
prints_part '; no other groups move less'
expect 0 bound kr.ein --fast-memory 3000 --groups --json
prints_part '{"fast_memory": 3000, "io": '
prints_part '"proved": true, "looked": 3, "groups": [{"out": ["M", "Y"], "lines": [2, 3], '
printf 'input A[i=500,j=500], B[j,k=500], C[k,l=500]\nT[i,k] = A[i,j]*B[j,k]
Y[i,l] = T[i,k]*C[k,l]\noutput Y\n' > abc.ein
expect 0 bound abc.ein --fast-memory 3000 --groups
prints_part '2 groups: '
expect 0 bound 'ij,jk->ik' --sizes i=9,j=9,k=9 --fast-memory 30 --groups --json
prints_part '"groups": [{"out": '
expect 2 bound kr.ein --groups
# Cuts over places: a cube moves what it must, 3 n^2 (1/4 - 1/8) elements.
expect 0 bound ij,jk-\>ik --sizes i=512,j=512,k=512 -p 8 --grids
prints_part 'i/2 k/2 | j/2   196608  98304   75674.45     98304  i/2 k/2 | j/2   196608  98304'
expect 0 bound ij,jk-\>ik --sizes i=512,j=512,k=512 -p 8 --grids --fast-memory 196608 --json
prints_part '"best": {"cut": [2, 2, 2], "index": ["i", "k", "j"], "words": 98304, '
expect 1 bound ij,jk-\>ik --sizes i=512,j=512,k=512 -p 8 --grids --fast-memory 196607
says "no cut of 'y' over 8 places touches 196607 elements or less at a place"
expect 2 bound ij,jk-\>ik --sizes i=5,j=5,k=5 --grids
says '--grids is for several places'
expect 2 bound abc.ein -p 2 --grids --groups
says '--grids does not go with --groups'
expect 0 bound abc.ein -p 2 --grids
expect 2 plan kr.ein --groups
# What runs move is counted, and results are what they are.
expect 0 bench 'ij,jk->ik' --sizes i=20,j=20,k=20 --count 1500
prints_part '1200 elements moved, 1 times what must move (1200)'
expect 0 bench 'ij,jk->ik' --sizes i=20,j=20,k=20 --dtype f64 --count 100:ideal:4 --json
prints_part '{"fast_memory": 100, "replace": "ideal", "line": 4, "kernels": "tiles", "accesses": '
prints_part '"statements": [{"out": "y", "bound": 1593}]}'
printf 'input A[i=2,j=3] : f64\nY[i] = sum[j](A[i,j])\nZ[i] = exp(Y[i])\n' > folded.ein
expect 0 run folded.ein A=A.npy --kernels portable -o Z=direct.npy
expect 0 run folded.ein A=A.npy -o Z=counted.npy --count 100
prints_part '8 elements moved'
ok same direct.npy counted.npy
for n in 0 x 8: 8:lru:3 8:ideal:lru:x ''; do
  expect 2 run folded.ein A=A.npy --count "$n"
  says "--count takes elements of fast memory, lru (default) or ideal, and elements of a line, a \
power of two; not '$n'"
done
expect 2 run folded.ein A=A.npy --count 8 -p 2
says '--count goes with neither --fabric nor -p'
# Tuning: what is kept is found from another spelling and from near sizes; others are not touched.
expect 2 tune 'ij,jk,kl->il' --sizes i=9,j=20,k=31,l=5
says 'there is no store to write to'
expect 0 tune 'ij,jk,kl->il' --sizes i=9,j=20,k=31,l=5 --store tuned --budget 0.1
ok [ "$(wc -l < tuned)" -eq 2 ]
sed "s/\t[^\t]*\t[^\t]*\(\t[^\t]*\t[^\t]*\)$/\t(0,2) (0,1)\t-\1/" tuned > forced
expect 0 plan 'bc,xa,ab->xc' --sizes x=9,a=20,b=31,c=5 --store forced
prints_part 'method store'
EINSUM_STORE=forced
export EINSUM_STORE
expect 0 plan 'bc,xa,ab->xc' --sizes x=10,a=20,b=31,c=5 --json
prints_part '"match": "nearest", "idealised": false'
expect 0 plan 'bc,xa,ab->xc' --sizes x=90,a=20,b=31,c=5 --json
prints_part '"store": []'
expect 0 plan 'bc,xa,ab->xc' --sizes x=9,a=20,b=31,c=5 --json --deterministic
prints_part '"store": []'
unset EINSUM_STORE
expect 0 info --store forced
prints_part 'forced: 1 record, 1 of this machine'
echo 'input A[9,20], B[20,31], C[31,5]; Y[i,l] = sum[j,k](exp(A[i,j])*B[j,k]*C[k,l])
  output Y' > tune.ein
expect 0 plan tune.ein --dtype f64 --store forced --json
prints_part '"match": "exact", "idealised": true'
expect 0 tune tune.ein --dtype f64 --store tuned --budget 0.1
ok [ "$(wc -l < tuned)" -ge 2 ]
# Of a program whether its statements are grouped, too: as planned, or one by one.
printf '%s\n' 'input A[9,20], B[20,31], C[31,5]' 'T[i,k] = A[i,j]*B[j,k]' 'Y[i,l] = T[i,k]*C[k,l]' \
  'output T, Y' > two.ein
for n in 1 2 3 4 5; do  # on a busy machine a choice may turn out to be none
  expect 0 tune two.ein --dtype f64 --store both --budget 0.05
  prints_part 'program: '
  [ -f both ] && break
done
ok [ "$(sed -n '/^[^\t]*\tprogram of 2 #/p' both | wc -l)" -eq 1 ]
sed 's/^\([^\t]*\tprogram of 2 #.*\tauto\t\)[^\t]*/\1ungrouped/' both > apart
expect 0 plan two.ein --dtype f64 --store apart --json
prints_part '{"out": null, "match": "exact"'
"$bin" plan two.ein --dtype f64 --store apart --explain > .out 2> .err || fail "$(cat .err)"
ok grep -q 'store: program: exact; path auto, variant ungrouped' .err
printf 'einsum store 1\nodd\n' > odd
expect 0 store merge tuned odd forced -o all
ok [ "$(tail -n 1 all)" = odd ]
ok [ "$(sed -n '/(0,2) (0,1)/p' all | wc -l)" -eq 1 ]
expect 0 store merge all -o -
ok cmp -s .out all
cp all before
expect 0 store merge tuned -o all
"$bin" plan ij --shapes 2x2 --store all > .out 2> .err
ok grep -q 'warning: all:[0-9]*: 1 line is no record of this version, left out' .err
many=
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
  cp tuned many.$n
  many="$many many.$n"
done
# shellcheck disable=SC2086
(ulimit -n 12 && "$bin" store merge $many -o -) > .out 2> .err || fail "$(cat .err)"
ok cmp -s .out tuned
expect 2 store merge all
expect 2 store
expect 3 store merge missing -o all
expect 3 plan ij --shapes 2x2 --store missing
expect 3 tune ij --sizes i=2,j=2 --store no/where

# Rewrites: where rules apply, the program after, and why not; what is found runs.
printf 'input X[4,3], Y[3,4], v[4] : f64\nT[i,k] = X[i,j]*Y[j,k]\nU[i] = exp(v[i])\n%s\n%s\n' \
  'S[i] = sum[k](T[i,k]*v[k])*U[i]' 'output S' > rw.ein
expect 0 rewrite rw.ein --list
prints_part 'inline@4.1'
prints_part 'join@4.2'
expect 0 rewrite rw.ein --list --json
prints_part '{"place": "unfold@2.1", "rule": "unfold", "line": 2, "out": "T", "kind": 0, "flops": 0'
expect 0 rewrite rw.ein --apply inline@4 --verify
prints 'input X[4,3] : f64
input Y[3,4] : f64
input v[4] : f64
T[i=4,k=4] : f64 = sum[j=3](X[i,j]*Y[j,k])
S_1[i=4] : f64 = sum[k=4](T[i,k]*v[k])
S[i=4] : f64 = S_1[i]*exp(v[i])
output S
# verified: the sides differ by at most 0 roundings of the greatest value'
cp .out after.ein
expect 0 rewrite after.ein --apply shard@4.2 --apply merge@5 --verify
ok cmp -s .out after.ein
expect 1 rewrite rw.ein --apply split@2
says 'split does not apply at line 2'
says 'three factors or more'
expect 1 rewrite rw.ein --apply inline@9
says 'no statement is at line 9'
printf 'input A[] : f32\nS : f32 = A*A+A*3\noutput S\n' > factors.ein
expect 0 rewrite factors.ein --apply factor@2
prints_part 'S : f32 = A*(A+3)'
printf 'input A[m=4,k=6], B[k,n=5]\nC[i,j] = A[i,k]*B[k,j]\n' > all.ein
printf '%s\nP[i,j] = sum[k=3](A[i,k]*B[k,j]); Q[i,j] = sum[k=3](A[i,k+3]*B[k+3,j])\n%s\n%s\n' \
  'input A[m=4,k=6], B[k,n=5]' 'C[i,j] = P[i,j] + Q[i,j]' 'output C' > parts.ein
expect 0 rewrite all.ein --equal parts.ein
prints 'parts.ein computes what all.ein does, up to the order of sums and products'
expect 0 rewrite all.ein --equal parts.ein --json
prints '{"equal": true}'
sed 's/A\[i,k+3\]/A[i,k+2]/' parts.ein > wrong.ein
expect 1 rewrite all.ein --equal wrong.ein
says "'C' is not proved equal: at [0..3, 0..4] line 2 and line 3 of the other"
expect 2 rewrite all.ein --equal parts.ein --list
expect 3 rewrite all.ein --equal missing.ein
expect 2 rewrite rw.ein --apply nothing@2
expect 2 rewrite rw.ein --apply relax@2
expect 2 rewrite rw.ein --apply inline
expect 2 rewrite rw.ein
# Values of rand are the same for every kernel, number of threads and places, and every fabric.
printf '%s\n' 'R[i=37,j=11] = rand(5,i,j)' 'S[i=37] = sum[j=11](floor(rand(i,j)*1024))' \
  'output R, S' > rand.ein
expect 0 run rand.ein -q -o R=R0.npy -o S=S0.npy
for how in '-j 1' '-j 2 --kernels portable' '--memory 64K' '-p 2 --fabric threads' \
  '-p 3 --fabric serial' '-p 5 --fabric copying' '-p 8 --decomp sqrt' '-p 16'; do
  expect 0 run rand.ein -q $how -o R=R1.npy -o S=S1.npy
  ok cmp -s R0.npy R1.npy
  ok cmp -s S0.npy S1.npy
done
expect 0 search rw.ein -p 2 --evaluations 40 --seed 3 --out found --json
sed 's/"search_seconds.*//' .out > one
prints_part '{"start": {"seconds": '
ok [ -s found/front.svg ]
ok [ -s found/start.ein ]
awk -F'[:,]' '/"program": "/ {n++; for (c = 1; c <= 4; c++) v[n, c] = $(2 * c) + 0}
  END {for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) if (i != j) {
         all = 1
         for (c = 1; c <= 4; c++) all = all && v[i, c] <= v[j, c]
         if (all) exit 1}
       exit n < 2}' .out || fail "a member of the front is no better than another"
ok [ -s found/start.schedule ]
expect 0 search rw.ein -p 2 --evaluations 40 --seed 3 --out found --json -j 1
sed 's/"search_seconds.*//' .out > two
ok cmp -s one two
for m in found/m*.ein; do
  expect 0 plan $m -p 2 --schedule ${m%.ein}.schedule
done
expect 1 search rw.ein -p 2 --evaluations 20 --memory 8
says 'are enough'
expect 2 search rw.ein -p 2 --evaluations 20 --inputs dealt
says 'inputs are dealt out in bytes alone'
n=$(ls found/m*.ein | wc -l)  # what a larger front left there goes
: > found/m$n.ein; : > found/m$n.schedule
expect 0 search rw.ein -p 2 --evaluations 40 --seed 3 --out found
ok [ ! -e found/m$n.ein ]
ok [ ! -e found/m$n.schedule ]

# Normal forms: two spellings of one batch, the names they had, and what is not said.
printf 'input A[4,5], B[5,6], C[5,6]\nX[i,k] = A[i,j]*B[j,k]\nY[i,k] = A[i,j]*C[j,k]\n%s\n' \
  'output X, Y' > one.ein
printf 'input U[5,n], V[5,n], W[4,5]\nQ[a,c] = U[b,c]*W[a,b]\nP[a,c] = V[b,c]*W[a,b]\n%s\n' \
  'output P, Q' > other.ein
expect 0 canon one.ein
prints 'input A0[5,6] : f64
input A1[4,5] : f64
input A2[5,6] : f64
Y0[a=4,b=6] : f64 = sum[c=5](A0[c,b]*A1[a,c])
Y1[a=4,b=6] : f64 = sum[c=5](A2[c,b]*A1[a,c])
output Y0, Y1'
cp .out form.txt
expect 0 canon other.ein --sizes n=6
ok cmp -s .out form.txt
expect 0 canon other.ein --sizes n=7
cmp -s .out form.txt && fail 'canon: another extent has the same form'
expect 0 canon one.ein --map
prints_part ', group 0: line 2; indices i, k, j'
prints_part '# A1: A'
# Sizes that nothing says stay open, under names of the form's own.
expect 0 canon other.ein
prints 'input A0[4,5] : f64
input A1[5,N0] : f64
input A2[5,N0] : f64
Y0[a=4,b=N0] : f64 = sum[c=5](A0[a,c]*A1[c,b])
Y1[a=4,b=N0] : f64 = sum[c=5](A0[a,c]*A2[c,b])
output Y0, Y1'
cp .out open.ein
expect 0 canon open.ein
ok cmp -s .out open.ein
expect 0 canon other.ein --map
prints_part '# N0: n'
printf 'input X[n]\nY[i] = X[2*i]\n' > half.ein
expect 1 canon half.ein
expect 0 canon half.ein --sizes n=8
# A program that is longer than what is read at once.
{ printf 'input A[2]\n'; i=0; while [ $i -lt 3000 ]; do echo '# a line that says nothing at all'
  i=$((i + 1)); done; echo 'Y[i] = A[i]'; } > long.ein
expect 0 canon long.ein
prints_part 'Y0[a=2] : f64 = A0[a]'
expect 2 canon
expect 2 canon ij
expect 2 canon one.ein -o X.npy
expect 2 plan ij --shapes 2x2 --map
# The same status wherever a number of places or threads is wrong.
for n in 0 -1 x 1048577 1.5 ''; do
  for command in 'ij A.npy' 'plan ij --shapes 2x3' 'run P.ein'; do
    # shellcheck disable=SC2086
    expect 2 $command -p "$n"
    says "-p takes a number of places from 1 to 1048576, not '$n'"
    one_line
    # shellcheck disable=SC2086
    [ "$n" = 1048577 ] || expect 2 $command -j "$n"
  done
done
for option in --decomp --cost --parts --keep --pin --machine --svg; do
  expect 2 bench ij --shapes 2x3 $option x
  says "$option does not apply here"
done
expect 2 bench ij --shapes 2x3 -p 2
says 'only -p 1 is'
expect 2 plan ij --shapes 2x3 --fabric threads
says 'serial or sim'
expect 2 ij A.npy --fabric mpi
expect 2 ij A.npy --kernels opencl
expect 2 ij A.npy --nonsense
expect 2 ij A.npy -z
expect 2 ij A.npy -o
says 'needs a value'
expect 2 ij A.npy --json=1
says 'takes no value'
expect 2 ij A.npy --dtype
expect 2 ij A.npy --dtype f65
expect 2 ij A.npy --dtype f32 --dtype f64
says 'given twice'
expect 2 ij A.npy --verify
says 'does not apply'
expect 2 ij A.npy --shapes 2x3
for j in 0 x -1 1025 99999999999999999999; do expect 2 ij A.npy -j $j; done
expect 2 ij A.npy --path nonsense
expect 2 'ij,j' A.npy x.npy --path '(0,7)'
expect 2 ij A.npy --goal speed
for seconds in 0 -1 nan 1s ''; do expect 2 ij A.npy --budget "$seconds"; done
expect 2 ij A.npy --seed -3
# A seed gives other random data, and other random searches, the same each time.
grid='ab,cda,efc,ghe,ig,jkb,lmjd,nolf,pqnh,rpi,stk,uvsm,wxuo,'
grid=$grid'yzwq,Ayr,BCt,DEBv,FGDx,HIFz,JHA,KC,LKE,MLG,NMI,NJ->'
shapes=$(printf '%s' "$grid" | sed 's/->//; s/[a-zA-Z]/2x/g; s/x,/,/g; s/x$//')
for seed in 1 2 3 4 5 6 7 8 1; do
  "$bin" plan "$grid" --shapes "$shapes" --path random --seed $seed --json |
    tr '{' '\n' | grep '"path": \[\[' > path.$seed
  [ $seed -eq 1 ] || continue
  cp path.1 first.1
done
ran='plan --path random --seed'
ok same path.1 first.1
ok [ "$(cat path.[1-8] | sort -u | wc -l)" -gt 1 ]
for seed in 1 2 1; do
  "$bin" bench ij,jk --shapes 20x50,50x30 --dtype f32 --verify -j 1 --seed $seed --seconds 0.02 \
    --json |
    tr ',' '\n' | grep '"max_error"' > error.$seed
  [ -e error.first ] || cp error.1 error.first
done
ran='bench --seed'
ok same error.1 error.first
ok [ "$(cat error.1)" != "$(cat error.2)" ]
for bytes in 0 -1 x 1T 5KB '' 99999999999G; do expect 2 ij A.npy --memory "$bytes"; done
expect 2 info --memory 1M

# ---- memory budgets

expect 0 ij A.npy --memory 10M
prints "[[1 2 3]$nl [4 5 6]]"
expect 1 ij A.npy --memory 1000
says 'the least that works is'
least=${err##* }
expect 0 ij A.npy --memory "$least"
expect 1 ij A.npy --memory $((least - 1))
cat > F.ein <<'END'
input X[n,k] : f64
param a = 2
T[i,j] = sum[k](X[i,k] * X[j,k])
Y[i] = sum[j](exp(-a*T[i,j]))
END
expect 0 plan F.ein --shapes 900x40 --memory 1M --kernels portable
prints_part 'slices: i = 900 by'
expect 0 plan F.ein --shapes 900x40 --memory 1M --kernels portable --json
prints_part '"loops": [{"index": "i", "extent": 900, "block":'
expect 1 plan F.ein --shapes 900x40 --memory 1K
says 'the least that works is'
expect 0 run F.ein X=A.npy --memory 1M --set a=0
prints '[2 2]'
# Inputs of another dtype are converted as they are read, results are written mapped: with 24 MB for
# data, 32 MB are read as 64 MB and 64 MB are written. What cannot be mapped goes through a file
# without a name, and counts where there is none.
vector_file() {  # vector_file DTYPE ELEMENTS FILE: zeros, of four bytes
  printf '\223NUMPY\001\000\166\000%-117s\n' \
    "{'descr': '$1', 'fortran_order': False, 'shape': ($2,), }" > "$3"
  head -c $((4 * $2)) /dev/zero >> "$3"
}
vector_file '<f4' 8388608 V.npy
vector_file '>f4' 8388608 W.npy
vector_file '<i4' 8388608 I.npy
vector_file '>f4' 1000 w.npy
cat > V.ein <<'END'
input X[n] : f64
Y[i] = X[i] + 1
S = sum[i](X[i]*X[i] + 1)
output Y, S
END
# With neither sanitizers nor OpenBLAS, which waits for memory without end.
if ${CC:-cc} -std=c99 -O0 -o bare "$here/../tools/einsum.c" -lm -pthread 2> /dev/null &&
  (ulimit -d 24000 && ./bare info -j 1) > /dev/null 2>&1; then
  limited() { (ulimit -d 24000; ./bare "$@"); }
  for data in V W I -; do
    checks=$((checks + 1))
    ran="einsum run V.ein X=$data"
    rm -f S.npy
    if [ $data = - ]; then from=-; else from=$data.npy; fi
    cat W.npy | limited run V.ein X=$from -j 1 --memory 4M -o Y=Y.npy -o S=S.npy
    [ "$("$bin" -- '->' S.npy)" = 8388608 ] || fail "--memory 4M does not hold $from in 24 MB"
  done
  # Out of memory is the system's fault, whoever asked for it: the command, or the library.
  cat > outer.ein <<'END'
input x[n=3000] : f32
T[i,j] = exp(x[i]*x[j])
S[i] = sum[j](T[i,j])
Y[j] = sum[i](T[i,j]/S[i])
output Y
END
  vector_file '<f4' 3000 x3000.npy
  for where in '-j 1' '-p 2 --fabric copying'; do
    want=3
    ran="einsum run outer.ein x=x3000.npy $where, in 24 MB"
    # shellcheck disable=SC2086
    limited run outer.ein x=x3000.npy $where -o Y=none.npy > .out 2> .err
    settle $?
    says 'out of memory'
    ok absent none.npy
  done
fi
rm -f V.npy Y.npy
ran="einsum run V.ein X=W.npy --memory 4M, TMPDIR missing"
want=1
TMPDIR=$dir/missing "$bin" run V.ein X=W.npy --memory 4M > .out 2> .err
settle $?
says 'inputs that are read or converted, not mapped, take 33554432 bytes'
rm -f W.npy I.npy
expect 0 run V.ein X=w.npy --memory 400K -o S=S.npy
expect 1 run V.ein X=w.npy --memory 3K
says 'the least that works is'
least=${err##* }
cat > G.ein <<'END'
input X[n] : f64
S = sum[i](X[i]*X[i])
grad S wrt X as G
output S, G
END
expect 0 run G.ein X=w.npy --memory 400K -o G=G.npy
case $(head -c 30 G.npy | tr -d '\000') in *'<f8'*) ;; *) fail 'the gradient is not f64' ;; esac
expect 0 run V.ein X=w.npy --memory "$least" -o S=S.npy
expect 1 run V.ein X=w.npy --memory $((least - 1))
expect 0 bench ij,jk,kl --sizes i=300,j=300,k=300,l=300 --memory 500K --kernels portable --verify
prints_part '(right: allowed'

# ---- outputs: whole or not at all

expect 0 'ij->ji' A.npy -o T.npy
prints ''
expect 0 ij T.npy
prints "[[1 4]$nl [2 5]$nl [3 6]]"
"$bin" ij A.npy -o - > piped.npy
expect 0 ij F.npy -oA2.npy
ok same A2.npy piped.npy
expect 0 'ij->ji' A2.npy -o A2.npy  # onto its own input
expect 0 'ij->ji' A2.npy --path=naive -o A2.npy
expect 0 ij A2.npy
prints "[[1 2 3]$nl [4 5 6]]"
expect 0 ij piped.npy
prints "[[1 2 3]$nl [4 5 6]]"
expect 2 ij A.npy -o one.npy -o two.npy
ok absent one.npy
expect 3 ij A.npy -o no/such/dir.npy
says 'no/such/dir.npy'
one_line
expect 3 ij A.npy -o x.npy/y.npy
mkdir sub
expect 3 ij A.npy -o sub
says 'directory'
expect 3 ij A.npy -o ''
cp A.npy kept.npy
expect 1 'ij,jk' A.npy A.npy -o kept.npy
ok same A.npy kept.npy
# bfloat16: 2 bytes without a meaning, which a program gives
npy V.npy '<V2' False '3,' '\200\077\040\300\000\077'
npy W.npy '>V2' False '3,' '\077\200\300\040\077\000'
echo 'input V[3] : bf16; Y[i] : f32 = 2*V[i]' > bf16.ein
for v in V W; do
  expect 0 run bf16.ein V=$v.npy
  prints '[ 2 -5  1]'
  echo 'input V[3]; Y[i] = V[i]' > some.ein
  expect 0 run some.ein V=$v.npy --dtype bf16 -o Y=V2.npy
  ok same V.npy V2.npy
  expect 1 run some.ein V=$v.npy
  says "descr '<V2'"
  says 'input X[i,j] : bf16'
done
echo 'input V[3] : f32; Y[i] = V[i]' > bf16.ein
expect 1 run bf16.ein V=V.npy
says ' : bf16'
expect 1 i V.npy
says ' : bf16'
expect 1 plan i V.npy
says ' : bf16'
expect 0 i x.npy --dtype bf16 -o V2.npy
npy V.npy '<V2' False '3,' '\200\077\200\077\000\100'
ok same V.npy V2.npy
# integers that do not fit
npy I.npy '<i4' False '2, 2' '\000\000\000\100\001\000\000\000\000\000\000\100\377\377\377\377'
expect 0 'ij->i' I.npy --check-overflow
prints '[1073741825 1073741823]'
expect 0 'ij->j' I.npy
prints '[-2147483648           0]'
expect 1 'ij->j' I.npy --check-overflow -o none.npy
says "an integer does not fit its dtype: the exact value of 'out[0]', 2147483648, does not fit i32"
ok absent none.npy
echo 'input I[2,2] : i32; Y = prod(I[i,j])' > check.ein
expect 1 run check.ein I=I.npy --check-overflow
says "'Y', -1152921504606846976, does not fit i32"
expect 0 run check.ein I=I.npy
for option in '-p 2' '--memory 1M' --deterministic '--fabric serial'; do
  expect 2 run check.ein I=I.npy --check-overflow $option
  says 'does not go with'
done
expect 2 'ij->j' I.npy --check-overflow --path greedy
says 'in one pass'
expect 2 plan check.ein --check-overflow
# unquoted, the shell leaves "ij,jk-"
expect 1 ij,jk- A.npy A.npy
says "$nl  ij,jk-$nl       ^"
says "quote it, 'ij,jk->ik'"
expect 1 plan ij,jk- --shapes 2x3,3x4
says "quote it, 'ij,jk->ik'"
expect 1 'ij,jk->-k' A.npy A.npy
ok test "${err#*quote it}" = "$err"
if [ "$(id -u)" != 0 ]; then
  chmod a-w sub
  expect 3 ij A.npy -o sub/Y.npy
  chmod u+w sub
fi
if [ -c /dev/full ]; then
  expect 3 ij A.npy -o /dev/full
  says 'No space'
  "$bin" ij A.npy > /dev/full 2> .err
  ok [ $? -eq 3 ]
  "$bin" plan ij --shapes 2x3 > /dev/full 2> .err
  ok [ $? -eq 3 ]
fi

# ---- hostile files

expect 3 ij missing.npy
says 'missing.npy: '
one_line
expect 3 ij .
one_line
bad() {
  expect 1 ij "$1"
  says "$1: "
  one_line
}
: > zero.npy && bad zero.npy
printf 'PK\003\004' > zip.npy && bad zip.npy
printf 'hello, world\n' > text.npy && bad text.npy
head -c 40 A.npy > cut.npy && bad cut.npy
head -c 100 A.npy > cut2.npy && bad cut2.npy
head -c 170 A.npy > cut3.npy && bad cut3.npy
printf '\223NUMPY\002\000\377\377\377\377' > longhead.npy && bad longhead.npy
printf '\223NUMPY\011\000\000\000' > version.npy && bad version.npy
npy object.npy '|O' False '2, 3' '' && bad object.npy
npy huge.npy '<f8' False '99999999999999999999, 2' '' && bad huge.npy
npy over.npy '<f8' False '4294967296, 4294967296' '' && bad over.npy
npy negative.npy '<f8' False '-1, 2' '' && bad negative.npy
npy claims.npy '<f8' False '1048576, 1048576' 'x' && bad claims.npy
npy junk.npy '<f8' Maybe '2, 3' "$(f8 1 2 3 4 5 6)" && bad junk.npy
name="new${nl}line$(printf '\033')[31m.npy"
expect 3 ij "$name"
one_line
case $err in *"$(printf '\033')"*) fail 'an escape sequence reaches the terminal' ;; esac

# ---- programs

cat > P.ein << 'END'
# a product and a bias
input A[i,j], x[j], b[i]
Y[i] = A[i,j]*x[j] + b[i]
END
expect 0 run P.ein A=A.npy x=x.npy b=b.npy
prints '[19 41]'
expect_in P.ein 0 run - A=F.npy x=x.npy b=b.npy
prints '[19 41]'
expect_in x.npy 0 run P.ein A=A.npy x=- b=b.npy
prints '[19 41]'
expect 2 run - A=- x=x.npy b=b.npy
expect 0 run P.ein A=A.npy x=x.npy b=b.npy -o Y=Y.npy
expect 0 i Y.npy
prints '[19 41]'
expect 2 run P.ein A=A.npy x=x.npy
says "input 'b'"
expect 2 run P.ein A=A.npy x=x.npy b=b.npy c=b.npy
says "no input 'c'"
expect 2 run P.ein A=A.npy A=A.npy x=x.npy b=b.npy
says 'twice'
expect 2 run P.ein A.npy
expect 2 run P.txt A=A.npy
says '.ein'
expect 2 run
expect 3 run missing.ein
expect 3 run P.ein A=missing.npy x=x.npy b=b.npy
one_line
expect 1 run P.ein A=A.npy x=b.npy b=b.npy
says 'P.ein:'
expect 2 run P.ein A=A.npy x=x.npy b=b.npy --set q=1
says "no param 'q'"
expect 2 run P.ein A=A.npy x=x.npy b=b.npy -o Z=Z.npy
says "no output 'Z'"
expect 2 run P.ein A=A.npy x=x.npy b=b.npy -o Y=1.npy -o Y=2.npy
expect 2 run P.ein A=A.npy x=x.npy b=b.npy -o Z.npy
ok absent Z.npy

cat > Q.ein << 'END'
param a = 2, c
input A[i,j] : f64
input B[i,j] : f32
Y[i] = a*sum[j](A[i,j]) + c
M[i,j] = max(B[i,j], 2)
N[] = sum(A[i,j])
output Y, M, N
END
expect 0 run Q.ein A=A.npy B=A.npy --set c=1
prints "Y = [13 31]${nl}M =${nl}[[2 2 3]$nl [4 5 6]]${nl}N = 21"
expect 0 run Q.ein A=A.npy B=A.npy --set c=-1e0 --set a=1
prints "Y = [ 5 14]${nl}M =${nl}[[2 2 3]$nl [4 5 6]]${nl}N = 21"
# Figures of the run take the place of results, which go to files alone.
expect 0 run Q.ein A=A.npy B=A.npy --set c=-1e0 --set a=1 --json -o M=M.npy
case $out in
  '{"fabric": null, "p": 1, "places": null, "threads": '*'}') ;;
  *) fail "no figures: $out" ;;
esac
prints_part '"seconds": '
ok [ "$(wc -l < .out)" -eq 1 ]
expect 0 --json ij M.npy
prints_part '"dtype": "f32"'
expect 2 run Q.ein A=A.npy B=A.npy --set c=1 --json -o M=-
says 'two outputs go to the same file'
expect 2 run Q.ein A=A.npy B=A.npy
says "param 'c' has no value"
# What a param's dtype does not hold is refused, on one place, on several and within a budget.
cat > K.ein << 'END'
param k : i32
param u = 1 : u8
param r = 2
input A[i,j] : f64
Y[i] = k*u*r*sum[j](A[i,j])
END
expect 0 run K.ein A=A.npy --set k=-2
for value in k=0.5 k=1e300 k=inf k=nan k=2147483648 u=-1 u=256; do
  for how in '-q' '-p 2' '--memory 1M'; do
    case $value in u=*) more='--set k=1' ;; *) more= ;; esac
    expect 1 run K.ein A=A.npy --set $value $more $how
    says 'which does not hold'
  done
done
expect 2 run Q.ein A=A.npy B=A.npy --set c=one
expect 2 run Q.ein A=A.npy B=A.npy --set c=1 --set c=2
expect 2 run Q.ein A=A.npy B=A.npy --set c
expect 1 run Q.ein A=A.npy B=A.npy --set c=1+2j
npy C.npy '<c16' False '1, 1' "$(f8 1 2)"
expect 1 run Q.ein A=A.npy B=C.npy --set c=1
says 'holds c128'
expect 1 run Q.ein A=A.npy B=i1.npy --set c=1  # same kind, but 2x2
expect 0 run Q.ein A=A.npy B=A.npy --set c=1 -o Y=o1.npy -o N=o2.npy
prints ''
expect 0 -- '->' o2.npy
prints 21
expect 2 run Q.ein A=A.npy B=A.npy --set c=1 -o Y=s.npy -o N=s.npy
says 'same file'
expect 2 run Q.ein A=A.npy B=A.npy --set c=1 -o Y=s.npy -o N=sub/../s.npy
ok absent s.npy
expect 3 run Q.ein A=A.npy B=A.npy --set c=1 -o Y=s.npy -o N=no/dir/t.npy
ok absent s.npy
if [ -c /dev/full ]; then
  cp A.npy old.npy
  expect 3 run Q.ein A=A.npy B=A.npy --set c=1 -o Y=s.npy -o M=old.npy -o N=/dev/full
  ok absent s.npy
  ok same A.npy old.npy
fi

# Programs that catch misreadings (the grammar's section 4), from end to end.
program() {
  printf '%s\n' "$2" > m.ein
  expect "$1" run m.ein A=A.npy x=x.npy b=b.npy
}
head='input A[2,3], x[3], b[2];'
program 1 "$head Y[i] = A[i,j]*(x[j] + b[i])"
says "'j'"
says 'hint: '
program 1 "$head Y[i] = exp(A[i,j])"
program 0 "$head Z[i] = sum[j](A[i,j]-x[j])^2"
prints '[  4 121]'
program 0 "$head Z[i] = sum[j]((A[i,j]-x[j])^2)"
prints '[ 2 41]'
program 0 "$head C[i] = b[i]; C[i+2] = x[i]"
prints '[10 20  1  1  2]'
printf 'S = -2^2 + 2^-1 + 2^3^2 \\\n  - 8/2*4  # end\n' > m.ein
expect 0 run m.ein
prints 492.5

# Errors name file, line and column, one after another, twenty at most.
printf 'input A[2,3]\nY[i] = A[i,j])\nZ[i] = B[i]\n' > e.ein
expect 1 run e.ein A=A.npy
says 'einsum: error: e.ein:2:'
says '^'
i=0
printf 'input A[2,3]\n' > many.ein
while [ $i -lt 25 ]; do printf 'Y%d[i] = B%d[i]\n' $i $i >> many.ein; i=$((i + 1)); done
expect 1 run many.ein A=A.npy
n=0
while IFS= read -r line; do
  case $line in 'einsum: error: many.ein:'*) n=$((n + 1)) ;; esac
done < .err
ok [ $n -eq 20 ]

# Hostile programs.
printf 'Y = 1\000\n' > h.ein
expect 1 run h.ein
printf 'Y = \377\376\n' > h.ein
expect 1 run h.ein
printf 'Y = "\033[2J"\n' > h.ein
expect 1 run h.ein
case $err in *"$(printf '\033')"*) fail 'an escape sequence reaches the terminal' ;; esac
{ printf 'Y = '; printf '%05000d' 0 | tr 0 '('; printf '1\n'; } > h.ein
expect 1 run h.ein
says 'h.ein:1:'
{ printf 'Y = '; printf '%0300000d' 0 | tr 0 -; printf '1\n'; } > h.ein
ran='a long row of signs'
"$bin" run h.ein > .out 2> .err
ok [ $? -le 1 ]
head -c 17000000 /dev/zero | tr '\000' ' ' > h.ein
expect 1 run h.ein
: > h.ein
ran='an empty program'
"$bin" run h.ein > .out 2> .err
ok [ $? -le 1 ]
mkdir d.ein
expect 3 run d.ein

# ---- plan

expect 0 plan 'ij,jk,kl->il' --shapes 64x32,32x16,16x8
prints_part "  Complete contraction:  ij,jk,kl->il
         Naive scaling:  4
     Optimized scaling:  3
      Naive FLOP count:  7.864e+5
  Optimized FLOP count:  4.096e+4
   Theoretical speedup:  1.920e+1
  Largest intermediate:  5.120e+2 elements
--------------------------------------------------------------------------------
scaling      kernel                current                             remaining
--------------------------------------------------------------------------------
   3 "
prints_part '              kl,jk->lj                             ij,lj->il
   3 '
prints_part '              lj,ij->il                                il->il
path (1,2) (0,1);'
same_plan=$out
expect 0 plan 'ij,jk,kl->il' --sizes i=64,j=32 --sizes k=16,l=8
prints "$same_plan"
expect 0 plan 'ij,jk,kl' --shapes 64x32,32x16,16x8 --path '(0,1) (0,1)'
prints_part 'path (0,1) (0,1);'
expect 0 plan 'ij,j' A.npy x.npy
prints_part 'ij,j->i'
expect 0 plan '...i,i...' --shapes 2x3,3x2 --path none
expect 0 plan ',' --shapes ,
expect 0 plan ',' --shapes 0d,0d
expect 0 plan '' --shapes ''
expect 0 plan 'ij,jk' --shapes 0x3,3x0
expect 0 plan 'ij,jk' --shapes 2x3,3x2 --json
case $out in '{"p": '*'"path": ['*'"statements": ['*'}') ;; *) fail "no such object: $out" ;; esac
ran='plan --explain'
"$bin" plan 'ij,jk' --shapes 2x3,3x2 --explain > .out 2> .err
ok [ -s .err ]
ok [ -s .out ]
ran='plan --svg'
expect 0 plan P.ein --sizes i=2,j=3 -p 2 --svg plan.svg
ok [ "$(head -c 4 plan.svg)" = '<svg' ]
ok [ "$(tail -n 1 plan.svg)" = '</svg>' ]
ok grep -q 'place 1' plan.svg
ok grep -q 'simulated: .*; busy .*%, idle .*%' plan.svg
expect 3 plan P.ein --sizes i=2,j=3 -p 2 --svg no/such/folder.svg
ok absent no
expect 1 plan P.ein --sizes i=2,j=3 -p 2 --parts 'Y[q=2]' --svg none.svg
ok absent none.svg
expect 0 plan P.ein --sizes i=2,j=3 -p 2 --svg -
case $out in '<svg'*'</svg>') ;; *) fail "no picture alone: $out" ;; esac
expect 2 plan P.ein --sizes i=2,j=3 -p 2 --svg - --json
says 'both go to standard output'
expect 0 plan P.ein --sizes i=2,j=3 -p 2 --svg /dev/null
ok [ -c /dev/null ]
if [ -c /dev/full ]; then
  ran='plan --svg /dev/full'
  "$bin" plan P.ein --sizes i=2,j=3 -p 2 --svg /dev/full > .out 2> .err
  ok [ $? -eq 3 ]
  ok [ -c /dev/full ]
fi
printf 'param a = 1\n' > Empty.ein  # nothing to sort, nothing to draw
expect 0 plan Empty.ein --svg plan.svg
expect 0 plan Empty.ein -p 2 --svg plan.svg
ok [ "$(tail -n 1 plan.svg)" = '</svg>' ]
expect 0 plan P.ein --sizes i=2,j=3 -p 2 --svg plan.svg
ln -s plan.svg link.svg
expect 0 plan P.ein --sizes i=2,j=3 -p 2 --svg link.svg
ok [ -L link.svg ]
# The program as written: what it is made of, in a picture.
printf '%s\n' 'input A[i=4,j=3], B[k=5,j], U[m=7] : f32' 'C[i,j] = concat[i](A[i,j], B[i,j])' \
  'D[i] = sum[j](C[i,j]*C[i,j])' 'R[i] = reverse[i](D[i])' 'O[i=9] = i' 'X[i] = exp(D[i])' \
  'output R, O' > Teg.ein
expect 0 plan Teg.ein --svg teg.svg --view teg
prints 'inputs 3, other tensors 5, operators 2, selectors 3, generators 1
observed: R, O
pruned: U, X'
ok [ "$(head -c 4 teg.svg)" = '<svg' ]
ok [ "$(tail -n 1 teg.svg)" = '</svg>' ]
for text in 'A\[4,3\] : f32' 'B\[5,3\] : f32' 'U\[7\] : f32' 'C\[9,3\] : f32' 'D\[9\] : f32' \
  'R\[9\] : f32' 'O\[9\] : i64' 'X\[9\] : f32' 'D: sum\[j\]' 'O: generator' 'X: element-wise' \
  'sequence point' 'piece 2 of 2' 'to C\[4,0\]' 'reads by stride -1 along i'; do
  ok [ "$(grep -c ">$text<" teg.svg)" -eq 1 ]
done
ok [ "$(grep -c '<polygon' teg.svg)" -eq 3 ]
ok [ "$(grep -c '>output<' teg.svg)" -eq 2 ]
ok [ "$(grep -c 'pruned<' teg.svg)" -eq 3 ]  # an input, a tensor, and what would define it
ok [ "$(grep -c 'opacity="0.5">' teg.svg)" -eq 3 ]
expect 0 plan Teg.ein --svg teg.svg --view teg --json
prints '{"inputs": 3, "tensors": 5, "operators": 2, "selectors": 3, "generators": 1, '\
'"observed": ["R", "O"], "pruned": ["U", "X"]}'
expect 0 plan Teg.ein --svg - --view teg
case $out in '<svg'*'</svg>') ;; *) fail "no picture alone: $out" ;; esac
cp teg.svg same.svg
{ printf '\357\273\277'; cat Teg.ein; } > Mark.ein  # the mark stays first where all is observed
expect 0 plan Mark.ein --svg teg.svg --view teg
ok cmp -s teg.svg same.svg
expect 0 plan Teg.ein --svg plan.svg
expect 0 plan Teg.ein --svg same.svg --view plan
ok cmp -s plan.svg same.svg
expect 0 plan Empty.ein --svg teg.svg --view teg
ok grep -q '>sequence point<' teg.svg
expect 2 plan Teg.ein --svg none.svg --view graph
says "--view 'graph'"
says 'plan or teg'
expect 2 plan Teg.ein --view teg
says '--svg FILE'
expect 2 plan Teg.ein --svg none.svg --view teg -p 2
says '-p does not apply: --view teg draws the program as written'
expect 2 plan ij,jk --shapes 2x3,3x4 --svg none.svg --view teg
says "--view teg draws programs, and 'ij,jk' is none"
expect 2 plan Teg.ein --svg - --view teg --json
says 'both go to standard output'
expect 2 run Teg.ein --svg none.svg --view teg
ok absent none.svg
# A long chain is drawn as one statement.
i=1
{
  echo 'input X_0[i=8,j=8], W[j,k=8] : f64'
  while [ $i -le 200 ]; do
    echo "X_$i[i,k] = X_$((i - 1))[i,j]*W[j,k]"
    i=$((i + 1))
  done
  echo 'output X_200'
} > L.ein
expect 0 plan L.ein -p 4 --svg long.svg
ok grep -q '100.0% X_\*\[i,k\] | j' long.svg
ok grep -q '>200 times<' long.svg
ok grep -q '>X_\*\[i,k\] | j<' long.svg
ok grep -q '>output X_200<' long.svg
ok grep -q '>X_\* of one before' long.svg
ok grep -q '>to one after<' long.svg
ok [ "$(grep -c '>W<' long.svg)" -eq 1 ]
ok [ "$(grep -c hsl long.svg)" -eq 0 ]  # which is not SVG 1.1
ran='--explain after a run'
"$bin" 'ij,j' A.npy x.npy --explain > .out 2> .err
ok grep -q 'measured: ' .err
expect 1 plan 'ij,jk' --shapes 2x3,2x3
expect 1 plan 'ij,jk' --shapes 2x3
expect 1 plan 'i(' --sizes i=3
expect 2 plan
expect 2 plan 'ij,jk'
expect 2 plan 'ij,jk' --sizes i=3,j=2
says "index 'k'"
expect 2 plan 'ij' --sizes i=3,j=2,q=2
says "no index 'q'"
expect 2 plan 'ij' --sizes i=3,j=2,i=3
expect 2 plan 'ij' --sizes i=3,j
expect 2 plan 'ij' --sizes i=3,j=-1
expect 2 plan 'ij' --sizes i=3,j=99999999999999999999
expect 2 plan '...j' --sizes j=3
for shape in x 3x 3xx4 -3 3,4x 1e3 99999999999999999999; do
  expect 2 plan i,ij --shapes "$shape,3" && says 'not a shape'
done
expect 2 plan i --shapes 3 --sizes i=3
expect 2 plan i x.npy --shapes 3
expect 2 plan i --shapes 3 --set a=1
expect 1 plan ij --shapes 9223372036854775807x9223372036854775807
expect 0 plan P.ein --sizes i=2,j=3
prints_part 'Y'
expect 0 plan P.ein --shapes 2x3,3,2
expect 0 plan P.ein A=A.npy x=x.npy b=b.npy --json
case $out in '{"p": '*'"statements": ['*'}') ;; *) fail "no such object: $out" ;; esac
expect_in P.ein 0 plan - --sizes i=2,j=3
expect 1 plan P.ein
says 'P.ein:'
expect 2 plan P.ein --shapes 2x3,3
expect 2 plan P.ein A=A.npy --shapes 2x3,3,2
expect 1 plan P.ein --shapes 2x3,4,2

# ---- plan: decomposition

cat > D.ein << 'END'
input A[i=8,j=8], B[j,k=8] : f64
C[i,k] = A[i,j]*B[j,k]
E[i,k] = exp(C[i,k])
END
expect 0 plan D.ein -p 8 --cost paper
prints_part 'i/4 k/2 | j'
prints_part 'C          i/4 k/2 | j       8   384    0'
prints_part '      all                         16   448    0'
prints_part 'total 448 scalars under paper for p = 8; method eindecomp (proved optimal'
prints_part '(proved optimal over vectors of p tasks, in this model)'
prints_part 'simulated seconds are not.'
prints_part 'places idle 0.0%; 16 tasks, 0 messages, 0 bytes moved, peak '
prints_part 'tasks: kernel calls'
cat > long.ein << 'END'
input A[i=2,j=512], B[j,k=2] : f64
C[i,k] = A[i,j]*B[j,k]
E[i,k] = exp(C[i,k])
END
expect 0 plan long.ein -p 8 --cost paper
prints_part 'C          i k | j/8         8  2048   28       0          224         7     8.031'
prints_part 'all                         12  2052   28      16          248        10     12.03'
expect 0 plan D.ein -p 8 --cost paper -q
ok [ "$(wc -l < .out)" -eq 6 ]
# The totals of the paper come out as they are.
printf 'input A[i=8,j=8], B[j,k=8] : f64\nC[i,k] = A[i,j]*B[j,k]\n' > mm8.ein
printf 'input A[i=64,j=64], B[j,k=64] : f64\nC[i,k] = A[i,j]*B[j,k]\n' > mm64.ein
cat > abc.ein << 'END'
input A[i=8,j=8], B[j,k=8], C[k,l=8] : f64
T[i,k] = A[i,j]*B[j,k]
Y[i,l] = T[i,k]*C[k,l]
END
for name in square skewed; do
  if [ $name = square ]; then s='16 16 16 16 16'; else s='64 8 64 64 512'; fi
  set -- $s
  cat > $name.ein << END
input A[i=$1,j=$2], B[j,k=$3], C[i,l=$4], D[l,m=$5], E[m,k] : f64
P[i,k] = A[i,j]*B[j,k]
Q[l,k] = D[l,m]*E[m,k]
R[i,k] = C[i,l]*Q[l,k]
Y[i,k] = P[i,k] + R[i,k]
output Y
END
done
while read -r file places total; do
  expect 0 plan $file.ein -p $places --cost paper
  prints_part "total $total scalars under paper for p = $places; method eindecomp (proved optimal"
done << 'END'
mm8 8 320
mm8 16 448
mm64 8 20480
abc 4 512
abc 8 640
abc 16 896
square 4 3584
square 8 5120
square 16 6656
skewed 4 109056
skewed 8 138240
skewed 16 180224
END
expect 0 plan D.ein -p 8 --cost bytes -q
prints_part 'join  agg  messages  time, us  idle'
expect 0 plan D.ein -p 8 --decomp none --cost seconds -q
prints_part 'seconds  bytes moved  messages'
prints_part 'places idle 87.5%'
expect 0 plan D.ein -p 8 --decomp none --cost paper
prints_part '--cost seconds looks at time'
ok [ "$(grep -c proved .out)" -eq 0 ]
expect 0 plan D.ein -p 8 --decomp none --cost paper --json
prints_part '"proved": false, "proved_of": "model", "family": "method", '
printf 'X[i=4] = mod(i, 3)\nY = exp(sum[i](X[i]))\n' > N.ein
expect 0 plan N.ein -p 2
prints_part '2     Y.1 '
prints_part 'parts of the statement of T'
"$bin" plan D.ein -p 8 --explain > .out 2> .err
ok grep -q 'E\[i=8,k=8\] .*= exp(C\[i,k\])' .err
expect 0 plan D.ein -p 8 --cost seconds --json
prints_part '"family": "divisors", '
expect 0 plan D.ein -p 8 --cost paper --json --parts 'C[i=4,k=2],E[i=8]'
prints_part '"proved": true, "proved_of": "model", "family": "paper", '
prints_part '{"p": 8, "deterministic": false, "cost_model": "paper", '
prints_part '"method": "eindecomp", "total": '
prints_part '"indices": {"i": 8, "k": 8, "j": 8}, "parts": {"i": 4, "k": 2, "j": 1}, "order": '
prints_part '"join": 384, "agg": 0, "repart": 0, "tasks": 8, '
prints_part '"cost": 384, "bytes": 0, "messages": 0, "start": 0, "idle": '
prints_part '"bytes": 256, "messages": 8, "start": '
prints_part '"messages": 8, "bytes": 256, "peak_bytes": '
prints_part '"parts": {"i": 8, "k": 1}'
expect 0 plan D.ein -p 6 --cost bytes --pin 'A[i=6]' --keep j,E.k
prints_part 'bytes under bytes for p = 6'
expect 0 plan D.ein -p 4 --cost seconds --decomp sqrt
prints_part 'method sqrt'
expect 0 plan D.ein -p 1 --decomp none --cost paper-code
prints_part 'total 192 scalars'
printf 'flops 1e9  # per place\n\nlatency = 1e-3\nmemory: 1000\n' > machine
expect 0 plan D.ein -p 8 --machine machine --cost seconds
# Rates no two of which are alike: two tasks of 4 operations each, 4 additions each, then one
# partial result of 8 bytes: 0.5 + 4, 0.5 + 4, 10 + 8 + 1. A place holds half of X and of Y, and Z.
printf 'input X[i=8] : f64\nY[i] = exp(X[i])\nZ = sum[i](Y[i])\n' > folded.ein
printf 'flops 1\nmemory_bw 1e12\nlatency 10\nbandwidth 1\noverhead 0.5\nmemory 104\n' > machine
expect 0 plan folded.ein -p 2 --machine machine --cost seconds --decomp given \
  --parts 'Y[i=2],Z[i=2]' --json
prints_part '"method": "given", "total": 28, '
prints_part '"flops": 16, '
prints_part '"machine": {"name": "machine", "flops": 1, "memory_bw": 1000000000000, '
prints_part '"latency": 10, "bandwidth": 1, "overhead": 0.5, "memory": 104, "node": 0, '
prints_part '"inputs": "held"'
prints_part '"peak_bytes": 72, '
prints_part '{"seconds": 28, "tasks": 4, "messages": 1, "bytes": 8, "peak_bytes": 72, "idle": '
expect 0 plan folded.ein -p 2 --machine machine --cost seconds --decomp given --parts 'Y[i=2]'
prints_part 'total 55 seconds'  # 4.5, then half of Y (10 + 32), then 8 additions and 0.5 + 0.5
expect 0 plan D.ein -p 8 --cost paper --json --parts 'C[i=4,k=2],E[i=8]'
total=0
terms=$(printf '%s' "$out" | tr ',' '\n' | grep -E '^ "(join|agg|repart)": ' | cut -d: -f2)
for term in $terms; do
  total=$((total + term))
done
prints_part "\"total\": $total, "
# One place: 2*60 + 2*90 operations; T.1 of 3x5 takes two lines.
expect 0 plan 'ij,jk,kl->il' --sizes i=3,j=4,k=5,l=6 --path '(0,1) (0,1)' --json
prints_part '"total": 300, "flops": 300, "naive_flops": 1080, "largest": 18, "peak_bytes": 128, '
# Three operations for each of the 10 elements that are read, whatever there are.
printf 'input X[i=1000] : f64\nY[i=10] = exp(X[i])*2+1\noutput Y\n' > some.ein
expect 0 plan some.ein --json
prints_part '"total": 30, "flops": 30, "naive_flops": 30, '
prints_part '"flops": 30, "traffic": 160, '
expect 0 plan some.ein -p 2 --json
prints_part '"flops": 30, '
# In two nodes of a place each the partial result goes through their links too, 2 seconds a byte.
printf 'flops 1\nmemory_bw 1e12\nlatency 10\nbandwidth 1\noverhead 0.5\nnode 1\n' > machine
printf 'node_latency 20\nnode_bandwidth 0.5\n' >> machine
expect 0 plan folded.ein -p 2 --machine machine --cost bytes --decomp given \
  --parts 'Y[i=2],Z[i=2]' --json
prints_part '"node": 1, "node_latency": 20, "node_bandwidth": 0.5}'
prints_part '{"seconds": 46, '  # 4.5 + 4.5, 20 + 16, and 1
for number in 0 -1 1.5 1e7; do
  printf 'node %s\n' $number > machine
  expect 1 plan D.ein -p 8 --machine machine
done
printf 'memory 10\n' > machine
expect 1 plan D.ein -p 8 --machine machine
says 'within 10 bytes'
printf 'flops 1e9\nspeed 3\n' > machine
expect 1 plan D.ein -p 8 --machine machine
says "machine:2: a machine has no 'speed'"
for number in nonsense nan inf -1 0 1e-320 1e31 1+2j; do
  printf 'memory_bw 1e9\nflops %s\n' $number > machine
  expect 1 plan D.ein -p 8 --machine machine --json
  says "machine:2: flops is not a positive number: '$number'"
done
printf 'latency 1e-31\n' > machine
expect 1 plan D.ein -p 8 --machine machine --svg none.svg
ok absent none.svg
printf 'flops 1e9 per place\n' > machine
expect 1 plan D.ein -p 8 --machine machine
says 'more than a name and a value'
printf 'flops 1e9\n\000latency 1\n' > machine
expect 1 plan D.ein -p 8 --machine machine
says 'NUL byte'
# At the ends of what is allowed every number is finite, and pictures end.
printf 'flops 1\nmemory_bw 1\nlatency 1e30\nbandwidth 1\noverhead 1e30\n' > machine
expect 0 plan D.ein -p 8 --machine machine --json --svg far.svg
case $out in *nan* | *inf*) fail "no finite number: $out" ;; esac
ok [ "$(grep -c -i 'nan\|[^a-z]inf' far.svg)" -eq 0 ]
printf 'flops 1e30\nmemory_bw 1e30\nlatency 1e-30\nbandwidth 1e30\noverhead 1e-30\n' > machine
expect 0 plan D.ein -p 8 --machine machine --json --svg far.svg
case $out in *nan* | *inf*) fail "no finite number: $out" ;; esac
expect 3 plan D.ein -p 8 --machine no-such-file
for value in 1e-320 1e31 nan -1 '1e9 2e9'; do
  printf 'flops %s\n' "$value" > machine
  expect 1 plan D.ein -p 8 --machine machine --svg none.svg
  ok absent none.svg
done
printf 'flops 1e9\0\n' > machine
expect 1 plan D.ein -p 8 --machine machine
says 'NUL'
for value in 1e-30 1e30; do
  for field in flops memory_bw latency bandwidth overhead; do
    printf '%s %s\n' "$field" "$value" > machine
    expect 0 plan D.ein -p 8 --machine machine --cost seconds --json
    case $out in *inf*|*nan*) fail "a number is not finite" ;; esac
  done
done
# Which machine is assumed, and where inputs lie.
expect 0 plan D.ein -p 8 -q
prints_part 'simulated (machine: defaults): '
expect 0 plan D.ein -p 2 --machine threads --cost seconds -q
prints_part 'simulated (machine: threads, by table): '
expect 0 plan D.ein -p 2 --machine measured --cost seconds --json
prints_part '"machine": {"name": "measured threads", "flops": '
expect 1 plan D.ein -p 2 --machine threads --kernels portable
says 'no rates are known'
expect 0 plan D.ein -p 2 --parts 'C[i=2],E[i=2]' --json
prints_part '"inputs": "held", "peak_bytes": 1280,'
expect 0 plan D.ein -p 2 --parts 'C[i=2],E[i=2]' --inputs outside --json
prints_part '"inputs": "outside", "peak_bytes": 512,'
expect 0 plan 'ij,jk->ik' --sizes i=64,j=64,k=64 -p 8 --cost bytes --inputs dealt --json
prints_part '"inputs": "dealt"'
prints_part '"total": 98304, '
expect 2 plan 'ij,jk->ik' --sizes i=64,j=64,k=64 -p 8 --inputs dealt
says 'dealt out under the model of bytes alone'
expect 2 plan D.ein -p 2 --inputs x
expect 2 plan D.ein -p 0
expect 2 plan D.ein -p 2000000
expect 2 plan D.ein -p x
expect 2 plan D.ein -p 4 --cost x
expect 1 plan D.ein -p 4 --decomp x
says "no method 'x'"
expect 1 plan D.ein -p 4 --parts 'C[q=2]'
says "statement 'C' has no index 'q'"
expect 1 plan D.ein -p 4 --parts 'C[i=2'
expect 1 plan D.ein -p 4 --parts 'C[i=2]' --keep i
says "statement 'C': index 'i' must not be cut"
expect 1 plan D.ein -p 4 --pin 'Z[i=2]'
expect 1 plan D.ein -p 4 --pin 'A[q=2]'
says "no statement has index 'q' alone at an axis of 'A'"
expect 1 plan D.ein -p 16 --pin 'A[i=9]'
says "index 'i' of extent 8 cannot have 9 pieces"
expect 1 plan D.ein -p 4 --pin 'A[i=2,j=4]'
says "with index 'j' its pieces"
# Pins of all inputs and outputs of such names that have the axis.
expect 0 plan D.ein -p 4 --pin 'A[j=4]' --pin 'B[j=4]' --cost bytes --json
pinned=$out
expect 0 plan D.ein -p 4 --pin '*[j=4]' --cost bytes --json
prints "$pinned"
expect 0 plan D.ein -p 4 --pin '*A*[1=4]' --pin 'B**[0=4]' --cost bytes --json
prints "$pinned"
expect 1 plan D.ein -p 4 --pin 'C*[i=2]'  # neither input nor output
says 'no input or output of such a name has these axes'
expect 1 plan D.ein -p 4 --pin 'A*[q=2]'
expect 0 plan D.ein -p 4 --pin 'E*[i=2,k=2]'
prints_part 'i/2 k/2'
# Seconds are the default; the effort of the search can be chosen.
expect 0 plan D.ein -p 8 --json
prints_part '"cost_model": "seconds"'
expect 0 plan D.ein -p 8 --decomp sqrt --cost bytes --json
prints_part '"proved": false'
expect 0 plan D.ein -p 8 --cost bytes --max-vectors 8 --max-table 1e6 --beam 4
expect 2 plan D.ein -p 8 --max-vectors 0
says '--max-vectors takes a whole number from 1'
expect 2 plan D.ein -p 8 --max-table x
expect 2 plan D.ein -p 8 --beam 1.5
expect 2 plan D.ein -p 8 --max-work 0
expect 1 plan D.ein -p 8 --cost bytes --max-work 8
says 'what statements exchange over 8 places, by '
expect 1 plan D.ein -p 8 --cost paper --max-work 8
says 'statements over 8 places take too long to simulate'
# A short text and a million places: an answer or an error, in seconds.
echo 'input X0[i=4096,j=4096], W[j,k=4096] : f32' > Long.ein
for i in $(seq 1 100); do echo "X$i[i,k] = X$((i - 1))[i,j]*W[j,k]"; done >> Long.ein
[ "${TEST_FEWER:-1}" -gt 1 ] && costs=paper || costs='paper bytes seconds'
for cost in $costs; do
  expect 1 plan Long.ein -p 1048576 --cost $cost
  says 'take too long to simulate'
done
expect 0 plan Long.ein -p 1048576 --cost paper --decomp none -q
expect 0 plan D.ein -p 8 --decomp none --inputs outside --json
less=${out##*'"peak_bytes": '}
expect 0 plan D.ein -p 8 --decomp none --json
more=${out##*'"peak_bytes": '}
ok [ "${more%%,*}" -gt "${less%%,*}" ]
expect 2 plan D.ein -p 8 --inputs inside
says 'held, outside or dealt'
# Which numbers of tasks are looked at: p only, all divisors of p.
cat > S.ein << 'END'
input X[s=2,a=8], W[a,f=2] : f64
Y[s,f] = X[s,a]*W[a,f]
Z[s,f] = exp(Y[s,f])
END
expect 0 plan S.ein -p 4 --keep a --cost paper --json
prints_part '"tasks": 4,'
ok [ "$(printf '%s' "$out" | grep -c '"tasks": 2')" -eq 0 ]
expect 0 plan S.ein -p 4 --keep a --cost seconds --strict --json
prints_part '"parts": {"s": 2, "f": 2, "a": 1}'
prints_part '"tasks": 4,'
expect 0 plan S.ein -p 4 --keep a --cost paper --fewer --json
prints_part '"tasks": 1,'
expect 0 plan S.ein -p 4 --keep a --strict --decomp linear
expect 2 plan S.ein -p 4 --strict --fewer
says 'contradict each other'
one_line
expect 2 plan S.ein -p 4 --strict --decomp sqrt
says '--strict says nothing to --decomp sqrt'
expect 2 plan S.ein -p 4 --fewer=1
says '--fewer takes no value'
expect 1 plan S.ein -p 1 --parts 'Y[s=2]'
# A budget per place.
expect 0 plan D.ein -p 8 --memory 1K
peak=$(printf '%s\n' "$out" | sed -n 's/.*peak \([0-9]*\) bytes.*/\1/p')
ok [ "$peak" -le 1024 ]
expect 0 plan D.ein -p 8 --memory 1K --cost seconds --json
expect 1 plan D.ein -p 8 --memory 10 --svg none.svg
says 'no schedule found keeps every place within 10 bytes; '
ok absent none.svg
# Where no decomposition fits, statements go in steps.
expect 0 plan D.ein -p 8 --memory 300
prints_part "No decomposition fits the memory of places: statements go in steps."
expect 0 plan D.ein -p 8 --memory 300 --json
prints_part '"memory": 300, "commands": "machine '
expect 0 plan D.ein -p 8 --memory 300 --svg fit.svg
cp .out fit.want
ok [ "$(tail -n 1 fit.svg)" = '</svg>' ]
ok grep -q 'under a schedule' fit.svg
expect 0 run D.ein -p 8 --memory 300 --fabric sim --svg fit.svg
cmp -s .out fit.want || fail "a simulated run of steps differs from its plan"
printf 'memory 20\n' > machine
expect 1 plan D.ein -p 8 --memory 1K --machine machine
says 'within 20 bytes'
expect 2 plan D.ein -p 8 --memory x
expect 1 plan ij,jk --sizes i=8,j=8,k=8 -p 4 --memory 100
says 'within 100 bytes'

# An expression: the steps of its path are statements.
expect 0 plan ij,jk,kl-\>il --sizes i=80,j=4,k=60,l=2 -p 4
prints_part 't0 '
prints_part 'y '
expect 0 plan ij,jk,kl-\>il --sizes i=8,j=4,k=6,l=2 -p 4 --path '(0,1) (0,1)' --json --cost bytes \
  --parts 't0[i=2],y[i=4]' --pin 'x0[i=2]' --keep j
prints_part '"path": [[0, 1], [0, 1]], "statements": [{"out": "t0", "from": [], '
prints_part '"indices": {"k": 6, "i": 8, "j": 4}, "parts": {"k": 1, "i": 2, "j": 1}'
prints_part '{"out": "y", '
expect 0 plan ij -p 4 --sizes i=3,j=3
expect 0 plan '' --shapes '' -p 2
expect 0 plan ...j,jk --shapes 1x5x4,4x3 -p 4 --svg expr.svg
ok grep -q '>x1<' expr.svg
expect 1 plan ij,jk --shapes 2x3,2x3 -p 2
expect 1 plan ij,jk --sizes i=2,j=3,k=4 -p 2 --parts 'z[i=2]'
says "'z'"
expect 1 plan ij,jk --sizes i=2,j=3,k=4 -p 2 --parts 'y[q=2]'
says "statement 'y' has no index 'q'"
expect 2 plan ij,jk --sizes i=2,j=3,k=4 -p 2 --path none --set a=1
expect 2 plan ij -p 4

# ---- run: over places

cat > R.ein << 'END'
input A[i=6,j=5], B[j,k=4] : f64
C[i,k] = A[i,j]*B[j,k]
E[i] = max[k](C[i,k])
output C, E
END
cat > G.ein << 'END'
A[i=6,j=5] : f64 = mod(3*i + 2*j, 7) - 3
B[j=5,k=4] : f64 = mod(j + 4*k, 5) - 2
output A, B
END
expect 0 run G.ein -o A=RA.npy -o B=RB.npy
expect 0 run R.ein A=RA.npy B=RB.npy
cp .out R.want
for fabric in serial threads copying; do
  expect 0 run R.ein A=RA.npy B=RB.npy -p 6 --fabric $fabric --cost bytes
  cmp -s .out R.want || fail "run --fabric $fabric differs"
done
expect 0 run R.ein A=RA.npy B=RB.npy -p 3 --decomp sqrt
expect 0 run R.ein A=RA.npy B=RB.npy -p 6 --fabric copying --cost bytes --pin 'A[i=3]' -j 1
cmp -s .out R.want || fail "run --pin differs"
# Folds that places share, with their results scattered: whole numbers, so the same result.
cat > sc.ein << 'END'
input X[s=16,a=8] : i64
W[a=8,f=64] : i64 = mod(3*a + 5*f, 7) - 3
V[f=64,a=8] : i64 = mod(a + 4*f, 5) - 2
H[s,f] = sum[a](X[s,a]*W[a,f])
J[s,f] = max(H[s,f], 0)
K[s,a] = sum[f](J[s,f]*V[f,a])
Y[s,a] = X[s,a] + K[s,a]
output Y
END
printf 'X[s=16,a=8] : i64 = mod(7*s + a, 9) - 4\noutput X\n' > sg.ein
printf 'latency 1e-12\noverhead 1e-12\nbandwidth 1e8\n' > quick
expect 0 run sg.ein -o X=SX.npy
expect 0 run sc.ein X=SX.npy
cp .out sc.want
for how in "-j 1" "-j 2"; do
  expect 0 run sc.ein X=SX.npy -p 4 --fabric copying --pin 'X[s=4]' --parts 'J[f=4],Y[s=4]' \
    --machine quick $how
  cmp -s .out sc.want || fail "run $how of scattered results differs"
done
expect 0 plan sc.ein -p 4 --pin 'X[s=4]' --parts 'J[f=4],Y[s=4]' --machine quick
prints_part 'K_p1'
expect 0 plan sc.ein -p 4 --pin 'X[s=4]' --parts 'J[f=4],Y[s=4]' --machine quick --json
prints_part '"tensor": "K_p1"'
for how in --no-scatter '--cost paper'; do
  expect 0 plan sc.ein -p 4 --pin 'X[s=4]' --parts 'J[f=4],Y[s=4]' --machine quick $how
  ok [ "$(printf '%s' "$out" | grep -c K_p1)" -eq 0 ]
done
# Machines, distributions and schedules, in a file or behind the statements.
printf 'machine x=2, y=p/x\nplace A xy->xy\n' > place
expect 0 plan R.ein --shapes 6x5,5x4 -p 6 --cost bytes --json --pin 'A[0=2,1=3]'
pinned=$out
expect 0 plan R.ein --shapes 6x5,5x4 -p 6 --cost bytes --json --schedule place
prints "$pinned"
for fabric in serial threads copying; do
  expect 0 run R.ein A=RA.npy B=RB.npy -p 6 --fabric $fabric --cost bytes --schedule place
  cmp -s .out R.want || fail "run --schedule differs"
done
expect 1 plan R.ein --shapes 6x5,5x4 -p 5 --schedule place
says 'place:1:16: a whole number from 1 to 1048576 is needed here, not 2.5'
printf 'machine x=2, y=3\nplace A xy->x*\nplce B xy->xy\nplace Q xy->xy\nplace B xy->xx\n' > bad
expect 1 plan R.ein --shapes 6x5,5x4 -p 6 --schedule bad
says "bad:3:1: a command of a schedule expected, not 'plce'"
says "bad:4:7: no tensor that is needed is called 'Q'"
says "bad:5:14: 'x' stands twice right of the arrow"
printf 'machine x=2, y=3\nplace A xy->x(12' > bad
expect 1 plan R.ein --shapes 6x5,5x4 -p 6 --schedule bad
says "bad:2:14: this '(' is never closed$nl  place A xy->x(12$nl               ^"
ok [ "${err##* }" = '^' ]
printf 'machine x=2, y=3\nplace A xy->x*\n' > bad
expect 1 plan R.ein --shapes 6x5,5x4 -p 6 --schedule bad
says "where 'A' is placed is no partition that a decomposition can have: it is replicated"
cat > cannon << 'END'
machine gx=2, gy=2
place A, B, C xy->xy
on C
distribute([i, j], [io, jo], [ii, ji], [gx, gy])
divide(k, ko, ki, gx)
reorder(ko, ii, ji, ki)
rotate(ko, [io, jo], kos)
communicate([A, B], kos)
END
printf 'input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n' > mm.ein
echo 'A[i=8,k=8] : f64 = mod(3*i+k, 7) - 3; B[k=8,j=8] : f64 = mod(k+4*j, 5) - 2' > G.ein
expect 0 run G.ein -o A=MA.npy -o B=MB.npy
expect 0 run mm.ein A=MA.npy B=MB.npy
cp .out mm.want
for fabric in serial threads copying; do
  expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 -j 2 --fabric $fabric --schedule cannon
  cmp -s .out mm.want || fail "a schedule under $fabric differs"
done
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --fabric copying --schedule cannon --json
prints_part '"messages": 8, "bytes": 1024'
expect 1 run mm.ein A=MA.npy B=MB.npy -p 4 --schedule cannon --deterministic
says "statement 'C' cannot be run by a schedule: it is deterministic, and its fold would be cut"
printf 'machine g=4\nplace A, C xy->x; place B xy->y\ndivide(i, io, ii, g)\n' > rows
printf 'divide(j, jo, ji, g); reorder(io, jo, ii, ji)\ndistribute(io)\n' >> rows
printf 'rotate(jo, [io], jos); communicate(B, jos)\n' >> rows
expect 0 run mm.ein A=MA.npy B=MB.npy --deterministic
cp .out mm.want
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --fabric copying --schedule rows --deterministic
cmp -s .out mm.want || fail "a schedule changes the bits of --deterministic"
# Parts that are computed first: where they are told to, with the bits of --deterministic.
printf 'input A[m=8,k=8], B[k,n=8] : f64\nC[i,j] = sum[k](exp(A[i,k]/9) * B[k,j])\n' > ex.ein
cat > first << 'END'
machine g=4
precompute(exp(A[i,k] / 9),   # of A
           [i, k], [x, y], W)
on W
distribute([x], [xo], [xi], [g])
on C
distribute([j], [jo], [ji], [g])
END
expect 0 run ex.ein A=MA.npy B=MB.npy --deterministic
cp .out ex.want
expect 0 run ex.ein A=MA.npy B=MB.npy -p 4 --fabric copying --schedule first --deterministic
cmp -s .out ex.want || fail "what is computed first changes the bits of --deterministic"
expect 0 plan ex.ein -p 4 --schedule first --schedule-out again
ok grep -qx 'precompute(exp(A\[i,k\] / 9), \[i, k\], \[x, y\], W)' again
planned=$out
expect 0 plan ex.ein -p 4 --schedule again
prints "$planned"
ok [ "$(printf '%s\n' "$out" | grep -c ' W ')" -ge 1 ]
cat ex.ein again > exc.ein
expect 0 plan exc.ein -p 4
expect 0 run exc.ein A=MA.npy B=MB.npy -p 4 --fabric copying --json
head -n 4 first > alone  # loops are searched for, and written
expect 0 plan ex.ein -p 4 --cost bytes --schedule alone --schedule-out again
ok grep -q '^on W$' again
expect 0 run ex.ein A=MA.npy B=MB.npy -p 4 --fabric copying --schedule again --deterministic
cmp -s .out ex.want || fail "a plan of what is computed first changes bits"
expect 0 run ex.ein A=MA.npy B=MB.npy -p 4 --fabric copying --schedule alone
sed 's/9)/8)/' first > bad
expect 1 plan ex.ein -p 4 --schedule bad
says "bad:2:12: this does not occur in the statement of 'C'"
# A schedule in the names of the normal form, with parameters, beside the decomposition.
echo 'X[i=64,k=8] : f64 = mod(3*i+k, 7) - 3' | "$bin" run - -o X=RX.npy
printf 'input A[m=40,k=30], B[k,n=50] : f64\nT[i,j] = A[i,k] * B[k,j]\n' > nf.ein
printf 'Z[io] = max[j](T[io,j] + io)\noutput Z\n' >> nf.ein
cat > nf << 'END'
param s = 5, 10   # steps
param g = p, 1/0
machine gx=g
on Y0
distribute([a], [io], [ii], [gx])
split(c, co, cw, s); reorder(co, ii)
on Y1
distribute([a], [io], [ii], [gx]); communicate(A2, io)
END
expect 0 canon nf.ein
prints_part 'Y0[a=40,b=50] : f64 = sum[c=30](A0[a,c]*A1[c,b])'
expect 0 tune nf.ein -p 2 --schedule nf --store nf.store --budget 0.02
prints_part 'program: '
expect 0 tune nf.ein -p 2 --schedule nf --store nf.store --budget 0.02 --json
prints_part '"setting": '
expect 0 tune nf.ein -p 2 --fabric threads --schedule nf --store nf.store --budget 0.02
# The record is written here: which is faster is not known.
echo 'einsum store 1' > nf.none
expect 0 canon nf.ein
key=$(printf '%s\n' "$out" | sed 's/$/; /' | tr -d '\n')
{
  echo 'einsum store 1'
  printf -- '%s\tschedule over 2 places, serial, 1 threads: %s# 0 1 2 2 4\t-\t-\tauto\t' \
    "$("$bin" info --store nf.none --json | sed 's/.*"machine": "\([^"]*\)", "records".*/\1/')" \
    "$key"
  printf 'machine gx=p; on Y0; distribute([a], [io], [ii], [gx]); split(c, co, cw, 5); '
  printf 'reorder(co, ii); \t100\t200\n'
} > nf.own
expect 0 plan nf.ein -p 2 --store nf.own
prints_part 'io_@gx co*6 | j ii cw'
expect 0 plan nf.ein -p 2 --store nf.own --decomp sqrt
ok [ "$(printf '%s\n' "$out" | grep -c 'io_@gx')" -eq 0 ]
expect 0 plan nf.ein -p 3 --store nf.own
ok [ "$(printf '%s\n' "$out" | grep -c 'io_@gx')" -eq 0 ]
# One task of next to nothing is 2 to 3 times as fast as 64, with sanitizers, too: that is kept, and
# found for other names in another order.
printf 'OA[i=64,j=1] = i + 1\nOB[i=1,j=1] = i + 3\n' > og.ein
expect 0 run og.ein -o OA=OA.npy -o OB=OB.npy
printf 'input A[m=64,k=1], B[k,n=1] : i64\nC[io,j] = A[io,k] * B[k,j]\n' > one.ein
printf 'input Y[k=1,n=1], X[m=64,k] : i64\nZ[p,q] = X[p,r] * Y[r,q]\n' > other.ein
printf 'param g = 1, p\nmachine gx=g; distribute([a], [io], [ii], [gx])\n' > one
expect 0 tune one.ein -p 64 --fabric copying --schedule one --store one.store --budget 0.3
prints_part 'the schedule with g=1 is kept'
expect 0 run other.ein Y=OB.npy X=OA.npy -p 64 --fabric copying --store one.store --json
prints_part '"places": [{"tasks": 1, "received_bytes": 0, "sent_bytes": 0}, {"tasks": 0,'
expect 0 run other.ein Y=OB.npy X=OA.npy
cp .out one.want
expect 0 run other.ein Y=OB.npy X=OA.npy -p 64 --fabric copying --store one.store
cmp -s .out one.want || fail "a schedule of the store changes a result"
printf 'divide(i, io, ii, 2)\n' > nf
expect 1 tune nf.ein -p 2 --schedule nf --store nf.store --budget 0.02
says 'of which statement'
expect 2 tune nf.ein --schedule nf --store nf.store
# In steps, for want of memory, and as the schedule that is written.
expect 0 run mm.ein A=MA.npy B=MB.npy
cp .out mm.want
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --memory 500 --fabric copying
cmp -s .out mm.want || fail "steps change a result"
expect 0 plan mm.ein --sizes m=8,k=8,n=8 -p 4 --memory 500 --schedule-out steps
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --memory 500 --schedule steps --fabric copying
cmp -s .out mm.want || fail "a schedule of steps changes a result"
expect 1 run mm.ein A=MA.npy B=MB.npy -p 4 --memory 200 --schedule steps
says 'under the schedule a place has '
expect 2 run mm.ein A=MA.npy B=MB.npy -p 4 --schedule cannon --decomp sqrt
says '--decomp does not apply'
# A plan that cuts nothing is not cut when it is read again.
expect 0 plan mm.ein --sizes m=8,k=8,n=8 -p 4 --decomp none --schedule-out uncut
expect 0 plan mm.ein --sizes m=8,k=8,n=8 -p 4 --schedule uncut
prints_part '1 tasks, 0 messages, 0 bytes moved'
# What is said of a statement that there is not is no further mistake.
printf 'machine g=2\non D\nreorder(a, b)\ndistribute(i)\non C\nreorder(z, j)\n' > lost
expect 1 plan mm.ein --sizes m=8,k=8,n=8 -p 2 --schedule lost
says "lost:6:9: the statement of 'C' has no loop 'z'"
ok [ "$(grep -c 'einsum: error' .err)" = 2 ]
# What a plan predicts of a schedule is what the executor takes on a clock.
for name in cannon pumma summa johnson solomonik cosma ttv inner ttm mttkrp; do
  case $name in
    cannon | pumma | summa | johnson | solomonik | cosma) printf '%s\n' 'input A[m,k], B[k,n]' \
      'C[i,j] = A[i,k] * B[k,j]' ;;
    ttv) echo 'input B[i,j,k], c[k]'; echo 'A[i,j] = B[i,j,k] * c[k]' ;;
    inner) echo 'input B[i,j,k], C[i,j,k]'; echo 'a = sum[i,j,k](B[i,j,k] * C[i,j,k])' ;;
    ttm) echo 'input B[i,j,k], C[k,l]'; echo 'A[i,j,l] = B[i,j,k] * C[k,l]' ;;
    mttkrp) echo 'input B[i,j,k], C[j,l], D[k,l]'; echo 'A[i,l] = B[i,j,k] * C[j,l] * D[k,l]' ;;
  esac > example.ein
  case $name in
    ttm | mttkrp) sizes=i=12,j=12,k=12,l=9 ;;
    ttv | inner) sizes=i=12,j=12,k=12 ;;
    *) sizes=m=12,k=12,n=12 ;;
  esac
  for p in 4 6 8; do
    sched=$here/../examples/schedules/$name.sched
    expect 0 plan example.ein --sizes $sizes -p $p --schedule "$sched"
    cp .out steps.want
    expect 0 run example.ein --sizes $sizes -p $p --fabric sim --schedule "$sched"
    cmp -s .out steps.want || fail "a simulated run of $name differs from its plan"
  done
done
expect 0 plan mm.ein --schedule cannon -p 4 --deterministic
prints_part "no time: statement 'C' cannot be run by a schedule: it is deterministic, and its fold"
expect 0 plan mm.ein --schedule cannon -p 4 --deterministic --json
prints_part '"seconds": null, "each": [{"messages": 4, "bytes": 512, "seconds": null}'
expect 1 run mm.ein --sizes m=8,k=8,n=8 -p 4 --deterministic --schedule cannon --fabric sim
says "mm.ein: statement 'C' cannot be run by a schedule: it is deterministic, and its fold"
expect 0 run mm.ein --sizes m=8,k=8,n=8 -p 4 --fabric sim --schedule cannon
prints_part '8 tasks, 8 messages, 1024 bytes moved'
expect 0 run mm.ein --sizes m=8,k=8,n=8 -p 4 --fabric sim --schedule cannon --svg st.svg --json
prints_part '{"fabric": "sim", "p": 4, "places": [{"tasks": 2, "received_bytes": 256, '
prints_part '"seconds": null, "tasks": 8, "messages": 8, "bytes": 1024, '
ok [ "$(grep -c '<title>C [01]: ' st.svg)" = 8 ]
ok [ "$(grep -c '<title>A [01]: ' st.svg)" = 4 ]
ok grep -q '>simulated' st.svg
expect 0 run mm.ein --sizes m=8,k=8,n=8 -p 4 --memory 500 --fabric sim
prints_part 'simulated (machine: defaults): '
printf 'input A[m=8,k=8]\nC[i] = mean[k](A[i,k])\n' > va.ein
printf 'machine g=2; divide(k,ko,ki,2); reorder(ko,i); distribute(ko)\n' > va
expect 0 run va.ein A=MA.npy
cp .out va.want
expect 0 run va.ein A=MA.npy -p 2 --fabric copying --schedule va --json
prints_part '"messages": 1, "bytes": 64'
expect 0 run va.ein A=MA.npy -p 2 --fabric copying --schedule va
cmp -s .out va.want || fail "a mean that a schedule cuts differs"
# Time lines: of a plan, simulated, and of a run, measured.
for fabric in threads copying; do
  expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 -j 2 --fabric $fabric --schedule cannon --svg st.svg
  ok [ "$(tail -n 1 st.svg)" = '</svg>' ]
  ok [ "$(grep -c '<title>C [01]: ' st.svg)" -ge 8 ]
  ok grep -q "measured, fabric $fabric" st.svg
done
ok [ "$(grep -c '<title>operands [01]: ' st.svg)" = 6 ]
expect 0 plan mm.ein --schedule cannon -p 4 --svg st.svg
ok [ "$(grep -c '<title>C [01]: ' st.svg)" = 8 ]
ok [ "$(grep -c '<title>A [01]: ' st.svg)" = 4 ]
expect 2 plan mm.ein --schedule cannon -p 4 --svg - --json
expect 0 plan mm.ein --schedule cannon -p 4
prints_part '2     C          io@gx jo@gy kos*2 | ii ji ki      2      8         8   1024    2'
expect 0 plan mm.ein --schedule cannon -p 4 --json
prints_part '"extent": 2, "level": 0}, {"name": "'
prints_part '"steps": 2, "tasks": 8, "messages": 8, "bytes": 1024, "fan": 2, "peak_bytes": '
prints_part '"each": [{"messages": 4, "bytes": 512, "seconds": '
planned=$out
"$python" -c 'import json' 2> /dev/null && ok "$python" -m json.tool .out .json
cat mm.ein cannon > mc.ein
expect 0 plan mc.ein -p 4 --json
prints "$planned"
expect 2 plan mc.ein -p 4 --schedule cannon
says 'has a schedule of its own'
expect 2 plan mc.ein -p 4 --deterministic
says 'does not go with --deterministic'
expect 2 plan mc.ein -p 4 --cost bytes
says '--cost does not apply'
echo 'D[i] = C[i,i]' >> mc.ein
expect 1 plan mc.ein -p 4
says "mc.ein:11:1: a command of a schedule expected, not 'D'"
expect 3 plan mm.ein --schedule none -p 4
# The kernels of a step.
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --schedule cannon --json
prints_part '"kernels": ["cpu-'
(cat cannon; echo 'substitute([ii, ji, ki], portable)') > plain
expect 0 run mm.ein A=MA.npy B=MB.npy -p 4 --schedule plain --json
prints_part '"kernels": ["contract-'
# A plan as a schedule.
expect 0 plan R.ein --shapes 6x5,5x4 -p 6 --cost bytes --pin 'A[0=2,1=3]' --json
moved=$(sed -n 's/.*"simulated": .*"bytes": \([0-9]*\),.*/\1/p' .out)
expect 0 plan R.ein --shapes 6x5,5x4 -p 6 --cost bytes --pin 'A[0=2,1=3]' --schedule-out as.sched
expect 0 run R.ein A=RA.npy B=RB.npy -p 6 --fabric copying --schedule as.sched --json
prints_part "\"bytes\": $moved,"
expect 0 run R.ein A=RA.npy B=RB.npy -p 6 --fabric copying --schedule as.sched
cmp -s .out R.want || fail "a plan as a schedule differs"
expect 0 plan R.ein --shapes 6x5,5x4 -p 6 --schedule as.sched --schedule-out again.sched
grep -v '^#' as.sched > as.plain
ok cmp -s as.plain again.sched
printf 'input A[i=32,k=64], B[k,j=32]\nY[i,j] = exp(sum[k](A[i,k]*B[k,j]) / 4)\n' > sent.ein
expect 0 plan sent.ein -p 4 --cost bytes --pin 'A[k=4]' --pin 'B[k=4]'
ok grep -q '_p1 ' .out  # results are scattered
expect 0 plan sent.ein -p 4 --cost bytes --pin 'A[k=4]' --pin 'B[k=4]' --schedule-out sent.sched
ok grep -q '^rfactor(k, k_1, ' sent.sched
expect 0 plan sent.ein -p 4 --schedule sent.sched --schedule-out again.sched
grep -v '^#' sent.sched > sent.plain
ok cmp -s sent.plain again.sched
printf 'input X[m=8]\nY[2*i] = X[i]; Y[2*i+1] = -X[i]\n' > two.ein
expect 0 plan two.ein -p 2 --decomp given --parts 'Y[i=2]' --schedule-out two.sched
expect 0 plan two.ein -p 2 --schedule two.sched --schedule-out again.sched
grep -v '^#' two.sched > two.plain
ok cmp -s two.plain again.sched
ok grep -q '^on Y 2$' two.sched
printf 'machine g=2\nmachine h=2, l=1\non Y 1\ndivide(i, io, ii, 2)\ndistribute(io)\n' > two
expect 0 plan two.ein -p 2 --schedule two --json
prints_part '"machines": [[{"name": "g", "extent": 2, "level": 0}], [{"name": "h", "ex'
echo 'on Y' > two
expect 1 plan two.ein -p 2 --schedule two
says "'Y' has 2 statements"
expect 2 run mm.ein A=MA.npy B=MB.npy -p 4 --schedule-out x.sched
expect 0 run R.ein A=RA.npy B=RB.npy --fabric threads -j 2 --parts 'C[i=2],E[k=2]'
for fabric in serial threads copying; do
  expect 0 run R.ein A=RA.npy B=RB.npy -p 6 -j 2 --fabric $fabric --cost bytes --svg run.svg
  cmp -s .out R.want || fail "run --svg differs"
  ok [ "$(head -c 4 run.svg)" = '<svg' ]
  ok [ "$(tail -n 1 run.svg)" = '</svg>' ]
  ok grep -q "measured, fabric $fabric: .*; busy .*%, idle .*%" run.svg
  ok grep -q 'place 5' run.svg
  ok grep -q '>C\[i,k\] | j' run.svg
  ok [ "$(grep -c 'thread 1' run.svg)" -eq "$([ $fabric = threads ] && echo 1 || echo 0)" ]
  ok [ "$(grep -c '<title>' run.svg)" -ge 12 ]
  rm run.svg
done
"$bin" run R.ein A=RA.npy B=RB.npy -p 2 --explain > .out 2> .err
ok cmp -s .out R.want
ok grep -q '^2     C .* 2  .*%$' .err
ok grep -q '^serial, 2 places: ' .err
expect 0 run R.ein A=RA.npy B=RB.npy -p 2 --svg run.svg -o C=RC.npy
prints ''
ok [ -s run.svg ]
rm run.svg RC.npy
expect 0 run R.ein A=RA.npy B=RB.npy -p 2 --svg -
case $out in '<svg'*'</svg>') ;; *) fail "no picture alone: $out" ;; esac
expect 2 run R.ein A=RA.npy B=RB.npy -p 2 --svg same -o C=same
says 'two outputs go to the same file same'
# No output is written under a name that can be foreseen, and none is lost to another one.
echo precious > victim
ln -s victim run.svg.part
expect 0 run R.ein A=RA.npy B=RB.npy -p 2 --svg run.svg -o C=RC.npy
ok [ "$(cat victim)" = precious ]
ok [ -L run.svg.part ]
rm run.svg.part
expect 0 run R.ein A=RA.npy B=RB.npy -p 2 --svg run.svg -o C=run.svg.part
ok [ "$(head -c 4 run.svg)" = '<svg' ]
expect 0 ij run.svg.part
rm run.svg run.svg.part
for same in /dev/stdout /dev/fd/1 .out; do
  if [ -e $same ]; then
    expect 2 run R.ein A=RA.npy B=RB.npy -o C=- -o E=$same
    says 'two outputs go to the same file'
    expect 2 run R.ein A=RA.npy B=RB.npy -o E=$same -o C=-
    expect 2 run R.ein A=RA.npy B=RB.npy -p 2 -o E=$same --svg -
    expect 2 run R.ein A=RA.npy B=RB.npy -p 2 --svg $same  # and the results are printed
    says 'it is standard output'
    expect 2 ij,jk RA.npy RB.npy -p 2 --svg $same
    expect 2 plan R.ein -p 2 --svg $same
    expect 2 plan ij,jk RA.npy RB.npy -p 2 --svg $same
  fi
done
for none in /dev/null; do
  [ ! -c $none ] || expect 0 run R.ein A=RA.npy B=RB.npy -p 2 -o C=$none -o E=$none --svg $none
done
if [ -e /dev/fd/3 ] 3> three; then  # the open file goes on where it stands
  printf before > three
  "$bin" run R.ein A=RA.npy B=RB.npy -o E=/dev/fd/3 -o C=RC.npy 3>> three
  ok [ "$(head -c 6 three)" = before ]
  tail -c +7 three > RE.npy
  expect 0 i RE.npy
fi
# A run that fails leaves what was there, and nothing on standard output.
echo old > RC.npy
expect 1 run R.ein A=RA.npy B=RB.npy -p 4 --memory 40 -o C=RC.npy -o E=-
ok [ "$(cat RC.npy)" = old ]
rm RC.npy
if [ -c /dev/full ]; then
  ran='results printed to a full disk, with a picture'
  "$bin" run R.ein A=RA.npy B=RB.npy -p 2 --svg full.svg > /dev/full 2> .err
  ok [ $? -eq 3 ]
  ok absent full.svg
fi
expect 3 run R.ein A=RA.npy B=RB.npy -p 2 --svg no/such/folder.svg -o C=RC.npy
expect 1 run R.ein A=RA.npy B=RB.npy -p 2 --svg run.svg --parts 'C[q=2]' -o C=RC.npy
ok absent run.svg
ok absent RC.npy
expect 2 run R.ein A=RA.npy B=RB.npy --fabric mpi  # built without
says 'make MPI=yes'
expect 2 run R.ein A=RA.npy B=RB.npy --fabric ring
says 'serial, threads, copying, mpi or sim'
expect 2 run R.ein A=RA.npy B=RB.npy -p 0
expect 1 run R.ein A=RA.npy B=RB.npy -p 2 --parts 'C[q=2]'

# --fabric sim: nothing is read or computed.
expect 0 run R.ein -p 4 --fabric sim --cost bytes --decomp sqrt
prints_part 'line  statement  tasks  start, us  end, us  idle  messages  bytes moved'
prints_part 'simulated (machine: defaults): '
expect 0 run R.ein A=RA.npy B=RB.npy -p 4 --fabric sim --json
prints_part '{"fabric": "sim", "p": 4, "places": [{"tasks": '
prints_part ', "busy": '
prints_part '"seconds": null, "tasks": '
expect 0 plan R.ein -p 4 --fabric sim
same_plan=$out
expect 0 plan R.ein -p 4
prints "$same_plan"
expect 0 plan ij --shapes 2x3 --fabric sim
prints_part 'for p = 1; method'
expect 0 ij,jk RA.npy RB.npy --fabric sim -p 2
prints_part 'y  '
expect 0 ij,jk --sizes i=6,j=5,k=4 --fabric sim -p 2 --svg sim.svg --json
ok grep -q '>simulated: ' sim.svg
prints_part '"kernels": [], "machine": {"name": "defaults"'
rm sim.svg
expect 1 run P.ein -p 2 --fabric sim
says 'P.ein:'
expect 0 run P.ein -p 2 --fabric sim --shapes 2x3,3,2
expect 2 run R.ein -p 4 --fabric sim -o C=RC.npy
says 'computes nothing'
ok absent RC.npy
expect 2 run R.ein -p 4 --fabric sim --svg - --json
expect 2 run P.ein --shapes 2x3,3,2
says '--shapes goes with --fabric sim only'
expect 2 ij A.npy --sizes i=2,j=3
says '--sizes does not apply here'
expect 2 bench ij --shapes 2x3 --fabric sim
ran='the machine that is assumed'
"$bin" plan R.ein -p 4 --explain > .out 2> .err
ok grep -q '^machine (defaults): of a place 1e+11 flop/s, memory 1e+11 B/s, 2e-06 s a task; a' .err
ok grep -q 'message 2e-06 s and 1e+10 B/s$' .err
"$bin" run R.ein A=RA.npy B=RB.npy -p 2 --machine threads --explain > .out 2> .err
ok grep -q '^machine (threads, by table): ' .err
for how in 'plan R.ein' 'run R.ein A=RA.npy B=RB.npy' 'ij RA.npy'; do
  # shellcheck disable=SC2086
  "$bin" $how --explain > .out 2> .err
  ok grep -q '^machine: peak per core: ' .err
done
"$bin" plan R.ein --explain --kernels portable > .out 2> .err
ok grep -q '^machine: nothing is assumed' .err

expect 0 run R.ein A=RA.npy B=RB.npy -p 4 --memory 1K
cmp -s .out R.want || fail "run --memory differs"
expect 1 run R.ein A=RA.npy B=RB.npy -p 4 --memory 40 -o C=RC.npy
says 'within 40 bytes'
ok absent RC.npy
expect 1 ij,jk RA.npy RB.npy -p 4 --memory 40 -o y.npy
says 'within 40 bytes'
ok absent y.npy

# ---- expressions over places: as in one piece

expect 0 run R.ein A=RA.npy B=RB.npy -o C=RC.npy
unsigned_zeros() { sed 's/-0/ 0/g' .out; }  # sums may begin with another term
while read -r expr files; do
  # shellcheck disable=SC2086
  expect 0 "$expr" $files
  unsigned_zeros > whole
  for how in '-p 6' '-p 4 --fabric threads --cost bytes' '-p 3 --fabric copying' \
    '--fabric threads -j 2 --decomp sqrt'; do
    # shellcheck disable=SC2086
    expect 0 "$expr" $files $how
    unsigned_zeros | cmp -s - whole || fail 'differs over places'
  done
done << 'END'
ij,jk RA.npy RB.npy
ij,jk->ki RA.npy RB.npy
ij->ji RA.npy
ij-> RA.npy
ij,kj->ik RA.npy RA.npy
ij,jk,ik-> RA.npy RB.npy RC.npy
ij,jk,lk->il RA.npy RB.npy RC.npy --path (1,2),(0,1)
ij,jk,lk->il RA.npy RB.npy RC.npy --path none
...j,jk->...k RA.npy RB.npy
ij,kl->lijk RA.npy RB.npy
...j,jk RA.npy RB.npy --dtype f32
END
expect 0 ij,jk RA.npy RB.npy -p 3 --svg run.svg -o y.npy
ok [ -s run.svg ]
rm run.svg y.npy
expect 2 ij,jk RA.npy RB.npy -p 3 --svg y.npy -o y.npy
says 'same file'
expect 1 ij,jk RA.npy RB.npy -p 3 --parts 'y[i=2' --svg run.svg -o y.npy
ok absent run.svg
ok absent y.npy
expect 2 ij,jk RA.npy RB.npy -p 0
expect 2 ij,jk RA.npy RB.npy -p x

# ---- bench

for dtype in bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128; do
  expect 0 bench 'ij,jk->ik' --sizes i=5,j=9,k=7 --dtype $dtype --verify --json --seconds 0.02
  prints_part '"correct": true'
  prints_part '"roofline_fraction": '
done
expect 0 bench 'ij,jk,kl' --shapes 40x50,50x60,60x30 --verify -j 2 --seed 7 --seconds 0.02
prints_part 'right'
prints_part 'GFLOP/s'
prints_part 'kernels: cpu'
# the product of two operands once for each k, j and a; then one multiply-add for each point
expect 0 bench 'ijk,ja,ka->ia' --sizes i=8,j=9,k=10,a=6 --path none --json --seconds 0.02
prints_part '"flops": 9180,'
expect 0 bench ',' --shapes , --verify --seconds 0.02
expect 0 bench 'ii->' --shapes 4x4 --verify --seconds 0.02
expect 0 bench '...i,...j' --shapes 2x1x3,4x1 --verify --seconds 0.02
expect 0 bench 'ij->j' --shapes 0x3 --verify --seconds 0.02
expect 2 bench 'ij,jk'
expect 2 bench P.ein --sizes i=2
expect 2 bench
expect 2 bench 'ij,jk' --shapes 2x3,3x2 --seconds 0
says "--seconds takes seconds, not '0'"
expect 1 bench 'ij,jk' --shapes 2x3,2x3

# ---- against NumPy

python=${PYTHON:-python3}
if "$python" -c 'import numpy' 2> /dev/null; then
  cat > cross.py << 'END'
import subprocess, sys
import numpy as np
rng = np.random.default_rng(1)
cases = ["ij,jk->ik", "ij,jk", "ii", "ii->i", "ij->ji", "i,j->ij", "ij,ij->", "ijk,ikl,l->j",
         "...ij,...jk->...ik", "ab,ac->", "ac,b->abc", "ij,jk,kl,lm->im", "ba", "i...->..."]
failed = 0
for expr in cases:
    for dtype in "f8 f4 i4 i1 u1 ? c16 c8 i8 i2 >f8 >i4".split():
        names, arrays = [], []
        for k, term in enumerate(expr.split("->")[0].split(",")):
            dots = "..." in term
            letters = term.replace("...", "")
            shape = [2 + ord(c) % 4 for c in letters]
            if dots:
                shape[term.index("."):term.index(".")] = [2, 3]
            a = (rng.standard_normal(shape) * 3).astype(np.dtype(dtype).newbyteorder("="))
            a = np.asfortranarray(a) if k % 2 else a
            a = a.astype(dtype)
            names.append("in%d.npy" % k)
            np.save(names[-1], a)
            arrays.append(a.astype(a.dtype.newbyteorder("=")))
        r = subprocess.run([sys.argv[1], expr, *names, "-o", "out.npy", "-j", "2"])
        want = np.einsum(expr, *arrays, optimize=False)
        got = np.load("out.npy") if r.returncode == 0 else None
        exact = np.dtype(dtype).kind in "iub"
        if got is None or got.dtype != want.dtype or got.shape != want.shape or not (
                np.array_equal(got, want) if exact else
                np.allclose(got, want, rtol=1e-4 if want.dtype.itemsize < 8 or want.dtype == "c8"
                            else 1e-12, atol=1e-4 if want.dtype in ("f4", "c8") else 1e-12)):
            print("test_command.sh: differs from NumPy:", expr, dtype)
            failed = 1
        for text in [subprocess.run([sys.argv[1], "--json", expr, *names], capture_output=True)]:
            import json
            data = json.loads(text.stdout)
            if want.dtype.kind == "f" and not np.array_equal(
                    np.array(data["data"], want.dtype), got):
                print("test_command.sh: text is not exact:", expr, dtype)
                failed = 1
# Over places every step computes in what all operands promote to, as in one piece.
mixed = [("ij,kj,kl->il", ["i4", "i4", "f8"], [100000, 100000, 0.5], []),
         ("ij,kj,kl->il", ["f4", "f4", "f8"], [1e30, 1e30, 1e-30], []),
         ("ij,jk->ik", ["f4", "f4"], [1e30, 1e30], ["--dtype", "f64"]),
         ("ij,jk->ik", ["?", "i1"], [1, 100], [])]
for expr, dtypes, values, more in mixed:
    names = []
    for k, term in enumerate(expr.split("->")[0].split(",")):
        names.append("in%d.npy" % k)
        np.save(names[-1], np.full([3 + ord(c) % 3 for c in term], values[k], dtypes[k]))
    for places in [[], ["-p", "3"], ["-p", "3", "--fabric", "copying"]]:
        r = subprocess.run([sys.argv[1], expr, *names, *more, *places, "-o", "out.npy"])
        got = np.load("out.npy") if r.returncode == 0 else None
        if not places:
            want = got
        elif got is None or got.dtype != want.dtype or not np.allclose(got, want, rtol=1e-12):
            print("test_command.sh: over places not as in one piece:", expr, dtypes, places)
            failed = 1
sys.exit(failed)
END
  ran='NumPy'
  ok "$python" cross.py "$bin"
else
  echo 'test_command.sh: no NumPy, so not compared with it'
fi

# ---- --variant: tasks that have it run it, an unknown one is answered with those there are
cat > vary.ein <<'END'
X[i=200,j=300] = i + 2*j
Y[j,i] = X[i,j]
Z[i] = sum(X[i,j])
output Y
output Z
END
for variant in 'cpu:copy stream' 'copy stream'; do
  expect 0 plan vary.ein --variant "$variant" --json
  prints_part '"cpu-copy stream"'
  expect 0 run vary.ein --variant "$variant" -q
done
expect 0 plan vary.ein --variant 'cpu:gett direct' --json
prints_part '"cpu-gett direct"'
expect 2 plan vary.ein --variant 'copy streams'
says "no task of this plan has a variant 'copy streams'"
says "'cpu:copy', 'cpu:copy stream'"
expect 2 run vary.ein --variant cpu:portable:block
expect 2 plan vary.ein --variant copy -p 2
says 'does not go with'
expect 2 plan vary.ein --ungrouped --memory 1M
says 'does not go with'
expect 0 plan vary.ein --ungrouped
ok sh -c "'$bin' plan ij,jk --sizes i=90,j=300,k=70 --constant x1 --variant 'gett direct' \
  --explain 2>&1 | grep -q 'keeps what is packed of constant inputs'"
expect 1 plan ij,jk --sizes i=90,j=300,k=70 --constant x1,x2
says "constant: 'x2' is no input"
expect 2 plan ij,jk --sizes i=90,j=300,k=70 --constant x1 --memory 1M
says 'does not go with'
expect 2 plan ij,jk --sizes i=9,j=9,k=9 --variant x
says "'portable:block'"
expect 0 plan ij,jk --sizes i=9,j=9,k=9 --variant portable:block --json
prints_part '"contract-block"'

# ---- --deterministic: the same output for any number of places and threads, and within a budget

cat > order.ein <<'END'
X[i=200003] = sin(0.37 * i * i)
A[a=30,k=700] = cos(a + 0.7 * k)
C[a,b=30] = sum[k](A[a,k] * cos(b - 0.3 * k))
Y = sum[i](X[i])
Z = mean[i](exp(X[i]))
V = var[i](X[i])
L = logsumexp[i](X[i])
output Y, Z, V, L, C
END
expect 0 run order.ein --deterministic --dtype f32
first=$out
for places in 1 2 3 4 7; do
  for fabric in serial threads copying; do
    expect 0 run order.ein --deterministic --dtype f32 -p $places --fabric $fabric \
      -j $((places % 3 + 1))
    ok [ "$out" = "$first" ]
  done
done
expect 0 run order.ein --deterministic --dtype f32 --memory 2400K -j 2
ok [ "$out" = "$first" ]
expect 0 run order.ein --deterministic -o C=C.npy
expect 0 --deterministic 'ij,kj,kl->il' C.npy C.npy C.npy --full
first=$out
for places in 1 2 3; do
  expect 0 --deterministic 'ij,kj,kl->il' C.npy C.npy C.npy --full -p $places --fabric copying
  ok [ "$out" = "$first" ]
done
for path in '(1,2) (0,1)' '(2) (0,1,2)' none; do  # the steps asked for, none of them split again
  expect 0 --deterministic 'ij,kj,kl->il' C.npy C.npy C.npy --full --path "$path"
  first=$out
  for places in 2 3; do
    expect 0 --deterministic 'ij,kj,kl->il' C.npy C.npy C.npy --full --path "$path" -p $places
    ok [ "$out" = "$first" ]
  done
done
expect 0 plan order.ein --deterministic --json
prints_part '"deterministic": true'
expect 0 plan order.ein --deterministic --json -p 3
prints_part '"deterministic": true'
expect 0 plan order.ein --json
prints_part '"deterministic": false'
expect 0 plan ij,jk --sizes i=3,j=4,k=5 --deterministic
prints_part 'Deterministic:  the same bits'
cat > wide.ein <<'END'
X[i=3,k=20003] = sin(0.37 * i * k)
output X
END
expect 0 run wide.ein -o X=X.npy
for call in 'ij->i X' 'ij->j X' 'ij-> X' 'ij,kj->ik X X' 'ij,ij->i X X' \
            'ij,kj,kl,ml->im X X X X'; do
  ran="plan and run --deterministic: $call"
  # shellcheck disable=SC2086
  set -- $call
  expr=$1
  shift
  shapes=$(echo "$*" | sed 's/X/3x20003/g; s/ /,/g')
  "$bin" plan "$expr" --shapes "$shapes" --deterministic --explain > .out 2> planned
  "$bin" plan "$expr" --shapes "$shapes" --deterministic --json > .json
  "$bin" "$expr" $(echo "$*" | sed 's/X/X.npy/g') --deterministic --explain 2>&1 > .out |
    grep -v -e measured -e '^pool: ' > taken
  ok same planned taken
  grep ' flops, ' taken > steps
  ok [ "$(grep -o '"kernels": ' .json | grep -c .)" = "$(grep -c -v '^path' steps)" ]
done
expect 1 plan ij,jk --sizes i=3,j=4,k=5 --deterministic --budget 1
says 'may differ each time'
expect 1 plan order.ein --deterministic -p 2 --parts 'V[i=2]'
says "index 'i' must not be cut"
case $("$bin" info) in
  *openblas*)
    expect 1 plan ij,jk --sizes i=3,j=4,k=5 --deterministic --kernels openblas
    says "'openblas' do not add in a fixed order"
    expect 0 plan ij,jk --sizes i=3,j=4,k=5 --deterministic --kernels portable,openblas
    ;;
esac

# ---- a GPU: where there is none the command says so; under a stub, if CUDA_STUB names one, it runs

case $("$bin" info) in
  *'cuda: no device: '*)
    expect 3 'ij->i' A.npy --kernels cuda
    says 'kernels cuda: no device: '
    expect 3 bench ij,jk --sizes i=3,j=4,k=5 --kernels portable,cuda
    ;;
esac
if [ -f "${CUDA_STUB:-}" ]; then
  mkdir -p stub
  cp "$CUDA_STUB" stub/libcuda.so.1
  ln -s libcuda.so.1 stub/libnvrtc.so.13
  ln -s libcuda.so.1 stub/libcublas.so.13
  library_path=${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH="$PWD/stub${library_path:+:$library_path}"
  expect 0 info
  prints_part 'cuda: a stub on the CPU, sm_90'
  expect 0 bench ij,jk --sizes i=33,j=34,k=35 --kernels cuda --verify --seconds 0.01 --json
  prints_part '"kernels": "cuda"'
  expect 0 plan ij,jk --sizes i=33,j=34,k=35 --kernels cuda --json
  prints_part 'cuda'
  printf 'input X[i=9] : c128\nT[i] = X[i]*X[i]\nY[i] = tan(T[i])\n' > tan.ein
  # places of one process share two devices
  mkdir trace
  printf 'X[i=17,j=6] = i*3 - j*j\noutput X : f64\n' > ints.ein
  {
    echo 'input X[n,f] : f64'
    echo 'D[i,j] = sum[k]((X[i,k] - X[j,k])^2)'
    echo 'M[f,j] = X[i,f] * D[i,j]'
    echo 'G[f,g] = M[f,j] * X[j,g]'
    echo 'output D, G'
  } > devices.ein
  expect 0 run ints.ein -o X=ints.npy
  expect 0 run devices.ein X=ints.npy -o D=D1.npy -o G=G1.npy
  for fabric in copying threads serial; do
    STUB_DEVICES=2 STUB_TRACE=trace expect 0 run devices.ein X=ints.npy -p 5 --decomp sqrt \
      --fabric $fabric --kernels cuda -o D=D2.npy -o G=G2.npy
    ok cmp -s D1.npy D2.npy
    ok cmp -s G1.npy G2.npy
    ok [ -e trace/ran0 ] && ok [ -e trace/ran1 ]
    rm -f trace/*
  done
  # what copies goes from one device to the other where both say that they can
  for peers in 0 1; do
    [ $peers = 1 ] || export STUB_NO_PEERS=1
    STUB_DEVICES=2 "$bin" run devices.ein X=ints.npy -p 2 --decomp sqrt --fabric copying \
      --kernels cuda -o D=D2.npy -o G=G2.npy --explain > .out 2> .err || fail "$(cat .err)"
    ok cmp -s D1.npy D2.npy
    ok cmp -s G1.npy G2.npy
    direct=$(sed -n 's/^devices: .* \([0-9]*\) from one device to another$/\1/p' .err)
    ok [ "$direct" "$([ $peers = 1 ] && echo -gt || echo -eq)" 0 ]
    unset STUB_NO_PEERS
  done
  expect 3 plan tan.ein --kernels cuda
  says "the kernels 'cuda' cannot run the statement of 'Y'"
  expect 0 plan tan.ein --kernels cuda,cpu
  expect 0 plan ij,jk --sizes i=33,j=34,k=35 --kernels cuda --memory 1G
  expect 0 calibrate --kernels cuda --budget 0.02 -o gpu.txt -q
  [ "$(grep -c '^away [0-9 ]*$\|^machine a stub on the CPU, sm_90$' gpu.txt)" = 2 ] ||
    fail 'rates of the device are missing'
  expect 0 plan ij,jk --sizes i=33,j=34,k=35 --kernels cuda --rates gpu.txt
  expect 0 tune ij,jk --sizes i=33,j=34,k=35 --kernels cuda --store gpu.store --budget 0.05 -q
  grep -q '^a stub on the CPU, sm_90' gpu.store || fail 'what was tuned is of no device'
  mkdir kept
  expect 0 'ij->i' A.npy --kernels cuda --kernel-cache kept
  first=$out
  [ "$(ls kept | grep -c '^sm_90-nvrtc13.0-[0-9a-f]*$')" = 1 ] || fail 'one kernel is to be kept'
  CC=false expect 0 'ij->i' A.npy --kernels cuda --kernel-cache kept
  [ "$out" = "$first" ] || fail 'a kept kernel gives something else'
  for k in kept/*; do printf spoilt > "$k"; done
  CC=false expect 3 'ij->i' A.npy --kernels cuda --kernel-cache kept
  expect 0 'ij->i' A.npy --kernels cuda --kernel-cache kept
  CC=false EINSUM_KERNEL_CACHE=kept expect 0 'ij->i' A.npy --kernels cuda
  expect 0 'ij->i' A.npy --kernels cuda --kernel-cache no/such/folder
  export STUB_NO_DEVICE=1
  expect 3 bench ij,jk --sizes i=3,j=4,k=5 --kernels cuda
  says 'there is no device 0: there are 0'
  unset STUB_NO_DEVICE
  export LD_LIBRARY_PATH="$library_path"
fi

# ---- a plan can be carried elsewhere: planned again from its JSON alone, it moves the same bytes

if "$python" -c 'import json' 2> /dev/null; then
  cat > carry.py << 'END'
import json, subprocess, sys
failed = 0
def plan(*words):
    r = subprocess.run([sys.argv[1], "plan", *words, "--json"], capture_output=True, text=True)
    return json.loads(r.stdout)
for words in [["D.ein", "-p", "8"], ["R.ein", "-p", "6", "--cost", "bytes"],
              ["D.ein", "-p", "4", "--parts", "C[i=2,j=2]", "--parts", "E[k=4]",
               "--pin", "A[j=4]"], ["S.ein", "-p", "4", "--strict"]]:
    a = plan(*words)
    with open("carried.ein", "w") as f:
        f.write(a["program"])
    again = ["carried.ein", "-p", str(a["p"]), "--decomp", "given", "--cost", a["cost_model"]]
    for s in a["statements"]:
        assert list(s["indices"]) == s["free"] + s["reduced"]
        cut = ["%s=%d" % x for x in s["parts"].items()]
        again += ["--parts", "%s[%s]" % (s["out"], ",".join(cut))]
    for name, t in a["tensors"].items():
        if t["pin"]:
            cut = ["%d=%d" % x for x in enumerate(t["pin"]["parts"])]
            again += ["--pin", "%s[%s]" % (name, ",".join(cut))]
    b = plan(*again)
    moved = [sum(t["bytes"] for t in x["transfers"]) + sum(s["partials"] for s in x["statements"])
             for x in (a, b)]
    for t in a["transfers"]:
        made = t["from"] is None or a["statements"][t["from"]]["out"] == t["tensor"]
        assert made and a["statements"][t["statement"]]["operands"][t["operand"]] == t["tensor"]
    if moved[0] != a["simulated"]["bytes"] or moved[1] != b["simulated"]["bytes"]:
        print("test_command.sh: transfers are not the bytes moved:", words, moved)
        failed = 1
    if a["tensors"] != b["tensors"] or [s["parts"] for s in a["statements"]] != \
            [s["parts"] for s in b["statements"]] or a["simulated"]["tasks"] != \
            b["simulated"]["tasks"]:
        print("test_command.sh: planned again from JSON, it is not the same:", words)
        failed = 1
sys.exit(failed)
END
  ran='a plan from its JSON'
  ok "$python" carry.py "$bin"
  ran='what a plan computes from its JSON'
  ok "$python" "$here/carried.py" "$bin"
  cat > kinds.ein <<'END'
input X[n] : i32
input Z[n] : c64
A = argmax[i](X[i])
M = mean[i](X[i])
Q[i,j] : i64 = X[i]*X[j]
W[i] = Z[i]/Z[0]
V[39-i] = X[i]
output A, M, Q, W, V
END
  ran='keys and types of JSON'
  ok "$python" "$here/schema.py" "$bin"
else
  echo 'test_command.sh: no Python, so no plan is carried elsewhere'
fi

# ---- error bounds, stores when the writer is killed

if "$python" -c 'import xml.dom.minidom, fractions' 2> /dev/null; then
  ran=accuracy.py
  ok "$python" "$here/accuracy.py" "$bin"
  ran=store_kill.py
  ok "$python" "$here/store_kill.py" "$bin" 40 > .out
else
  echo 'test_command.sh: no Python, so no error bounds'
fi

# ---- nothing is left behind

ran='temporary files'
for f in .npy-*.tmp sub/.npy-*.tmp; do [ ! -e "$f" ] || fail "$f is left"; done

if [ $failures -gt 0 ]; then
  echo "test_command.sh: $failures of $checks checks failed"
  exit 1
fi
echo "test_command.sh: all $checks checks passed"
