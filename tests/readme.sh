#!/bin/sh
# Compiles and runs the C programs of README.md and compares what they and the commands print with
# what README.md says. Usage: tests/readme.sh CC BUILD
#   ```c        a program; the text of a following ```output block is what it prints; without one,
#               a comment at the end of its printf line
#   ```console  lines "$ command", then what it prints; nothing there: it only has to succeed
#   ```sh       commands, all of them one script, run beside copies of the examples; each succeeds
set -u
cc=$1
build=$2
dir=$build/readme
rm -rf "$dir"
mkdir -p "$dir"
awk -v dir="$dir" '
  /^```/ && !inside { kind = substr($0, 4); inside = 1
    if (kind == "c") { n++; file = dir "/" n ".c" }
    else if (kind == "output") file = dir "/" n ".want"
    else if (kind == "console") file = dir "/console"
    else if (kind == "sh") file = dir "/script"
    else if (kind == "") file = "/dev/null"
    else { print "readme: no test runs blocks of kind " kind; unknown = 1 }
    next }
  /^```/ { inside = 0; next }
  inside { print > file }
  END { exit unknown || inside }' README.md || exit 1
failed=0
programs=0
for f in "$dir"/*.c; do
  programs=$((programs + 1))
  base=${f%.c}
  [ -f "$base.want" ] || sed -n 's,.*printf(.*);  // ,,p' "$f" > "$base.want"
  if ! $cc -I. -O1 -o "$base" "$f" -lm -pthread || ! "$base" > "$base.got" ||
    ! diff -u "$base.want" "$base.got"; then
    echo "readme: program $(basename "$base") of README.md is wrong"
    failed=1
  fi
done
commands=0
command=
check() {
  [ -n "$command" ] || return 0
  commands=$((commands + 1))
  if ! sh -c "$command" > "$dir/got" 2>&1; then
    cat "$dir/got"
    echo "readme: fails: $command"
    failed=1
  elif [ -s "$dir/want" ] && ! diff -u "$dir/want" "$dir/got"; then
    echo "readme: prints something else: $command"
    failed=1
  fi
}
: > "$dir/want"
while IFS= read -r line; do
  case $line in
    '$ '*)
      check
      command=${line#??}
      : > "$dir/want"
      ;;
    *) printf '%s\n' "$line" >> "$dir/want" ;;
  esac
done < "$dir/console"
check
lines=$(grep -c . "$dir/script")
mkdir -p "$dir/user/bin"
cp -r examples "$dir/user"
ln -sf "$(cd "$build" && pwd)/einsum" "$dir/user/bin/einsum"
if ! (cd "$dir/user" && PATH=$PWD/bin:$PATH sh -eu ../script) > "$dir/script.out" 2>&1; then
  cat "$dir/script.out"
  echo "readme: a command of its sh blocks fails"
  failed=1
fi
[ $failed -eq 0 ] && echo "readme: $programs programs, $commands commands, $lines lines of sh"
exit $failed
