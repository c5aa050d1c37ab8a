#!/bin/sh
# The last line of make test, or of WHAT. Usage: STEPS="names" tests/summary.sh LOG-FOLDER SECONDS
set -u
log=$1
passed=0
skipped=
failed=
for name in $STEPS; do
  status=none
  [ -f "$log/$name.status" ] && read -r status < "$log/$name.status"
  case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped="$skipped $name" ;;
    none)
      echo "FAIL  $name: a file it needs is missing or does not compile, see above"
      failed="$failed $name"
      ;;
    *) failed="$failed $name" ;;
  esac
done
count() { echo $#; }
if [ -n "$failed" ]; then
  df -Pm "$log" "${TMPDIR:-/tmp}" | awk 'NR > 1 && $4 < 500 && !told[$6]++ {
    print "FAIL  only " $4 " MB are free on the disk of " $6 ": failures may come from this" }'
fi
echo "${WHAT:-make test}: $passed passed," \
  "$(count $skipped) skipped${skipped:+ ($(echo $skipped))}," \
  "$(count $failed) failed${failed:+ ($(echo $failed))}, $(($(date +%s) - $2)) s"
[ -z "$failed" ] && [ "$passed" -gt 0 ]
