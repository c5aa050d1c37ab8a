#!/bin/sh
# One step of make test: runs a command, prints one line, keeps the output.
# Usage: tests/step.sh LOG-FOLDER NAME COMMAND..    (or: .. NAME skip REASON)
# A command that exits with 77 skips its step; its last line says why. One that takes longer than
# STEP_SECONDS is ended and has failed: a deadlock must not stop the whole run. Sanitizers' leak
# checks and the emulator are known to hang by themselves now and then: their steps get a second
# try, and the line says so; the same tests also run without them, and get none. Always succeeds, so
# that the other steps run too; tests/summary.sh judges.
set -u
log=$1
name=$2
shift 2
limit=${STEP_SECONDS:-1200}
tries=1
case $name in san-* | tsan-* | fuzz-* | test-arm) tries=2 ;; esac
said=
mkdir -p "$log"
out=$log/$name.txt

# Runs a command with the limit; it gets no process group of this one, hence the trap.
attempt() {
  if command -v timeout > /dev/null 2>&1; then set -- timeout -k 10 "$limit" "$@"; fi
  start=$(date +%s)
  "$@" > "$out" 2>&1 &
  pid=$!
  trap 'kill $pid 2> /dev/null; exit 1' INT TERM
  wait $pid
  status=$?
  seconds=$(($(date +%s) - start))
}

if [ "$1" = skip ]; then
  echo "$2" > "$out"
  status=77
else
  attempt "$@"
  while [ "$seconds" -ge "$limit" ] && [ "$status" -ne 0 ]; do
    said="$said, ended after $limit s"
    cp "$out" "$log/$name.hung.txt"
    tries=$((tries - 1))
    [ $tries -gt 0 ] || break
    attempt "$@"
  done
fi
case $status in
  0)
    printf 'ok    %-16s %3d s  %s%s\n' "$name" "$seconds" "$(tail -n 1 "$out" | cut -c 1-60)" \
      "${said:+ (second try; the first:${said#,})}"
    ;;
  77) printf 'skip  %-16s        %s\n' "$name" "$(tail -n 1 "$out" | cut -c 1-60)" ;;
  *)
    printf 'FAIL  %-16s %3d s  exit status %d%s, output in %s:\n' "$name" "$seconds" "$status" \
      "$said" "$out"
    tail -n 25 "$out" | sed 's/^/      | /'
    ;;
esac
echo "$status" > "$log/$name.status"
exit 0
