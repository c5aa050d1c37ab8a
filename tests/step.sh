#!/bin/sh
# One step of make test: runs a command, prints one line, keeps the output.
# Usage: tests/step.sh LOG-FOLDER NAME COMMAND..    (or: .. NAME skip REASON)
# A command that exits with 77 skips its step; its last line says why. One that takes longer than
# STEP_SECONDS is ended and has failed: a deadlock must not stop the whole run. Always succeeds, so
# that the other steps run too; tests/summary.sh judges.
set -u
log=$1
name=$2
shift 2
limit=${STEP_SECONDS:-1500}
ended=
mkdir -p "$log"
out=$log/$name.txt
if [ "$1" = skip ]; then
  echo "$2" > "$out"
  status=77
else
  start=$(date +%s)
  if command -v timeout > /dev/null 2>&1; then set -- timeout -k 10 "$limit" "$@"; fi
  "$@" > "$out" 2>&1 &
  pid=$!
  trap 'kill $pid 2> /dev/null; exit 1' INT TERM  # the limit has a process group of its own
  wait $pid
  status=$?
  seconds=$(($(date +%s) - start))
  if [ "$seconds" -ge "$limit" ]; then ended=", ended after $limit s"; fi
fi
case $status in
  0) printf 'ok    %-16s %3d s  %s\n' "$name" "$seconds" "$(tail -n 1 "$out" | cut -c 1-60)" ;;
  77) printf 'skip  %-16s        %s\n' "$name" "$(tail -n 1 "$out" | cut -c 1-60)" ;;
  *)
    printf 'FAIL  %-16s %3d s  exit status %d%s, output in %s:\n' "$name" "$seconds" "$status" \
      "$ended" "$out"
    tail -n 25 "$out" | sed 's/^/      | /'
    ;;
esac
echo "$status" > "$log/$name.status"
exit 0
