# Checks what no test sees: the format of the sources, and clang's analysis of which lock guards what.
# Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

check_format() {
  (cd "$root" && git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format-14 --dry-run --Werror) ||
    { say "format: failed. Remedy: clang-format-14 -i FILE"; return 1; }
  say "format: passed"
}

# analyze FILE COMMAND: COMMAND is how the build compiles FILE; clang does it again, without output.
# Its warnings about anything but locks are left to gcc, whose code this is.
analyze() {
  local -a words kept=()
  local argument skip=''
  eval "words=($2)"
  for argument in "${words[@]:1}"; do
    case $skip$argument in
      skip*) skip='' ;;
      -MF | -o) skip=skip ;;
      -MD | -Werror | -frandom-seed=* | -Wno-free-nonheap-object) ;;
      *) kept+=("$argument") ;;
    esac
  done
  clang++-14 "${kept[@]}" -fsyntax-only -Wno-everything -Werror=thread-safety
}
export -f analyze

# Product files that name a lock, or whose own header or another of their folder does.
files_with_locks() {
  local folder
  git -C "$root" grep -lE 'Mutex|GUARDED_BY|LOCKS_' -- chief common deploy ps worker | xargs -n1 dirname | sort -u |
    while read -r folder; do git -C "$root" ls-files "$folder/*.cc" | grep -E "^$folder/[^/]+$"; done
}

check_locks() {
  # shellcheck source=deploy/cli/compile_commands.sh
  source "$root/deploy/cli/compile_commands.sh"
  write_compile_commands >/dev/null
  # A line each: file, tab, command.
  sed -nE 's/.*"file":"([^"]*)","command":"(.*)"\},?$/\1\t\2/p' "$root/compile_commands.json" |
    sed 's/\\"/"/g; s/\\\\/\\/g' >"$cache/commands.tsv"
  say "locks: reading $(files_with_locks | wc -l) files with clang"
  files_with_locks | awk -F'\t' 'NR == FNR { wanted[$1]; next } $1 in wanted { print $1; print $2 }' - "$cache/commands.tsv" |
    (cd "$root" && xargs -d '\n' -n2 -P"$(nproc)" bash -c 'analyze "$@"' analyze) ||
    { say "locks: failed. Remedy: see the lines above"; return 1; }
  say "locks: passed"
}

run_check() {
  local failed=0
  check_format || failed=1
  check_locks || failed=1
  ((failed == 0)) || exit 1
}
