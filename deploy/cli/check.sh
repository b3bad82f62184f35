# Checks what no test sees: the format of the sources, and clang's analysis of which lock guards what.
# Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

checks=(format locks)

check_format() {
  (cd "$root" && git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format-14 --dry-run --Werror) ||
    { say "Remedy: clang-format-14 -i FILE"; return 1; }
}

# Reads the product with clang: each library as the one translation unit that --config=unity makes of
# it, which takes a quarter of the time. Generated headers and these units are built first, no more.
product=(//chief/... //common/... //deploy/... //ps/... //worker/...)
each_unit() {
  # shellcheck source=deploy/cli/compile_commands.sh
  source "$root/deploy/cli/compile_commands.sh"
  if [ -z "${units:-}" ]; then
    build_targets --output_groups=compilation_prerequisites_INTERNAL_ "${product[@]}"
    read_commands "$(printf ' + %s' "${product[@]}" | cut -c4-)" --config=unity >"$cache/units.tsv"
    units=$(wc -l <"$cache/units.tsv")
  fi
  say "$1: reading $units translation units"
  tr '\t' '\n' <"$cache/units.tsv" |
    (cd "$root" && xargs -d '\n' -n2 -P"$(nproc)" bash -c 'analyze "$@"' analyze "$1")
}

# analyze CHECK FILE COMMAND: COMMAND is how gcc compiles FILE; clang reads it again, without output.
# Its warnings about anything else are left to gcc, whose code this is.
analyze() {
  local -a words kept=()
  local argument skip='' output status=0
  eval "words=($3)"
  for argument in "${words[@]:1}"; do
    case $skip$argument in
      skip*) skip='' ;;
      -MF | -o) skip=skip ;;
      -MD | -Werror | -frandom-seed=* | -Wno-free-nonheap-object) ;;
      *) kept+=("$argument") ;;
    esac
  done
  output=$(clang++-14 "${kept[@]}" -fsyntax-only -Wno-everything -Werror=thread-safety 2>&1) || status=$?
  ((status == 0)) || {
    printf '%s\n%s: %s: clang ended with %d\n' "$output" "$1" "$2" "$status" >&2
    return 1
  }
}
export -f analyze

check_locks() { each_unit locks; }

# run_check [CHECK...]: these, or all of them.
run_check() {
  local check passed=0 failed=0
  for check; do
    [[ " ${checks[*]} " == *" $check "* ]] ||
      die 64 "check: unknown check '$check'. Remedy: ./lockstep check [${checks[*]}]"
  done
  [ $# -gt 0 ] || set -- "${checks[@]}"
  for check; do
    if "check_$check"; then
      say "$check: passed"
      passed=$((passed + 1))
    else
      say "$check: failed. Remedy: see the lines above"
      failed=$((failed + 1))
    fi
  done
  echo "$passed passed, $failed failed"
  ((failed == 0)) || exit 1
}
