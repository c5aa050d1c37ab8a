#!/bin/sh
# make demo: four programs on two small data sets, by the command alone.
# Usage: examples/demo.sh PATH-OF-EINSUM
set -eu
einsum=$1
data=examples/data

milliseconds() {  # since the epoch, where date knows nanoseconds; else whole seconds
  case $(date +%N) in
    *[!0-9]*) echo $(($(date +%s) * 1000)) ;;
    *) echo $(($(date +%s%N) / 1000000)) ;;
  esac
}

show() {  # show TITLE PROGRAM ARGUMENTS..
  echo
  echo "== $1"
  sed 's/^/    /' "$2"
  shift
  echo "\$ einsum run $*"
  start=$(milliseconds)
  "$einsum" run "$@"
  echo "($(($(milliseconds) - start)) ms, with starting the command and reading the files)"
}

echo "Fisher's irises: 150 flowers, 4 measurements, 3 kinds. See $data/README.md."
show "how the measurements vary together" examples/covariance.ein X=$data/iris.npy
show "how far the flowers are apart" examples/distances.ein X=$data/iris.npy
show "the kind of a flower (row) and of its nearest neighbour (column)" \
  examples/nearest.ein X=$data/iris.npy L=$data/iris_label.npy

echo
echo "Handwritten digits: 100 images of 8 by 8 pixels."
show "the first one (I), and its edges (E)" examples/edges.ein X=$data/digits.npy

echo
echo "== a single expression needs no file: all images added up"
echo "\$ einsum 'kyx->yx' $data/digits.npy"
"$einsum" 'kyx->yx' $data/digits.npy
