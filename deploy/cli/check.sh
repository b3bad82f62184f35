# Checks what `./lockstep test` does not see. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

checks=(format locks tidy build asan tsan asan_all tsan_all fuzz sim chaos kills)

check_format() {
  (cd "$root" && git ls-files '*.h' '*.cc' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run --Werror) ||
    { say "Remedy: clang-format-14 -i FILE"; return 1; }
}

# alone COMMAND...: what would end the script fails this command, and the other checks go on. In a process
# group of its own, which a signal ends at once: a shell that waits for a subshell hears of none before.
alone() {
  local status=0
  set -m
  (trap_signals && "$@") </dev/null &
  job=$!
  set +m
  job_signals=(TERM TERM) # it ends its own job, and then itself
  wait "$job" || status=$?
  job=
  job_signals=(INT KILL)
  return "$status"
}

# Reads the product with clang: each library as the one translation unit that --config=unity makes of
# it, which takes a quarter of the time. Generated headers and these units are built first, no more.
product=(//chief/... //common/... //deploy/... //ps/... //worker/...)
write_units() {
  # shellcheck source=deploy/cli/compile_commands.sh
  source "$root/deploy/cli/compile_commands.sh"
  build_targets --output_groups=compilation_prerequisites_INTERNAL_ "${product[@]}"
  read_commands "$(printf ' + %s' "${product[@]}" | cut -c4-)" --config=unity >"$cache/units.tsv"
  sed -i '/^[^\t]*\.S\t/d' "$cache/units.tsv" # holds what nvcc has compiled: no language of clang's
}
list_units() {
  [ -z "${units:-}" ] || return 0
  alone write_units || return 1
  [ -s "$cache/units.tsv" ] || { say "bazel lists no translation units"; return 1; }
  units=$(wc -l <"$cache/units.tsv")
}

# Of those that list_units has found the ones that have a lock, or include, in turn, what has one.
# The others, most of them, cannot be at fault.
units_with_locks() {
  (cd "$root" && { git ls-files -co --exclude-standard '*.h' '*.cc' && cut -f1 "$cache/units.tsv"; } | sort -u |
    xargs grep -sHoE '^#include "[^"]+|Mutex|ABSL_[A-Z_]*(GUARDED|LOCK)' || true) | # 1: one has neither
    awk '
      function has_lock(file, paths, i, n) {
        if (file in known) return known[file]
        known[file] = 0
        n = split(includes[file], paths, " ")
        for (i = 1; i <= n; ++i) if (has_lock(paths[i])) known[file] = 1
        return known[file]
      }
      NR != FNR { if (has_lock(substr($0, 1, index($0, "\t") - 1))) print; next }
      {
        file = substr($0, 1, index($0, ":") - 1)
        if (sub(/.*:#include "/, "")) includes[file] = includes[file] " " $0
        else known[file] = 1
      }' - "$cache/units.tsv"
}

# each_unit CHECK: of the standard input.
each_unit() {
  tr '\t' '\n' | (cd "$root" && xargs -d '\n' -n2 -P"$(nproc)" bash -c 'analyze "$@"' analyze "$1")
}

# clang_options COMMAND: sets `kept` to what clang needs of the words with which gcc compiles a file.
clang_options() {
  local -a words
  local argument skip=
  eval "words=($1)"
  kept=()
  for argument in "${words[@]:1}"; do
    case $skip$argument in
      skip*) skip= ;;
      -MF | -o | -include) skip=skip ;; # what gcc has precompiled is not clang's
      -MD | -Werror | -Winvalid-pch | -frandom-seed=* | -Wno-free-nonheap-object) ;;
      *) kept+=("$argument") ;;
    esac
  done
}

# What nearly every unit includes is read once, which saves a third of the time. Macros of single
# libraries mean nothing there.
read_common_headers() {
  local -a kept options=()
  local argument skip=
  clang_options "$(head -n 1 "$cache/units.tsv" | cut -f2)"
  for argument in "${kept[@]}"; do
    case $skip$argument in
      skip*) skip= ;;
      -c) skip=skip ;;
      -DHWY_* | -DSPDLOG_*) ;;
      *) options+=("$argument") ;;
    esac
  done
  export common_headers=$cache/common.pch
  (cd "$root" && clang++-14 "${options[@]}" -Wno-everything \
    -x c++-header bazel-bin/common/bazel/library_headers.h -o "$common_headers")
}

# analyze CHECK FILE COMMAND: COMMAND is how gcc compiles FILE; clang reads it again, without output.
# What its compiler warns of beside locks is left to gcc, whose code this is.
analyze() {
  local -a kept
  local output status=0
  clang_options "$3"
  case $1 in
    locks)
      kept+=(-fsyntax-only -Wno-everything -Werror=thread-safety)
      output=$(clang++-14 -include-pch "$common_headers" "${kept[@]}" 2>&1) || status=$?
      # Units with options of their own, and some on which clang 14 crashes, cannot use what was read.
      ((status == 0)) || { status=0 && output=$(clang++-14 "${kept[@]}" 2>&1) || status=$?; }
      ;;
    tidy) output=$(clang-tidy-14 --quiet "$2" -- "${kept[@]}" -Wno-everything 2>&1) || status=$? ;;
  esac
  ((status == 0)) || {
    printf '%s\n%s: %s: clang ended with %d\n' "$output" "$1" "$2" "$status" >&2
    return 1
  }
}
export -f analyze clang_options

# Which lock guards what.
check_locks() {
  list_units && read_common_headers && units_with_locks >"$cache/units_with_locks.tsv" || return 1
  [ -s "$cache/units_with_locks.tsv" ] || { say "locks: no translation unit has a lock"; return 1; }
  say "locks: reading $(wc -l <"$cache/units_with_locks.tsv") of $units translation units: the others have no lock"
  each_unit locks <"$cache/units_with_locks.tsv"
}

# .clang-tidy
check_tidy() {
  list_units || return 1
  say "tidy: reading $units translation units"
  each_unit tidy <"$cache/units.tsv"
}

# bazel_check BUILD COMMAND ARGS...: in a folder of its own, so that the next one of this name finds what
# it left.
bazel_check() {
  local build=$1 status=0
  shift
  run_bazel "$build" "$cache/check-$build.log" "$@" --platform_suffix="-$build" --symlink_prefix=/ --keep_going || status=$?
  stop_own_server
  ((status == 0)) || bazel_output "$cache/check-$build.log" >&2
  unlock_builds
  return "$status"
}

# Without --config=unity: each file is its own translation unit, with all includes that it needs.
check_build() { bazel_check build build //...; }

# The packages with threads, or with memory that is not a container's.
core=(//tests/conformance/... //tests/unit/common/{base,client,rpc,shm,tensor,transport,update}/...
  //tests/unit/ps/... //tests/unit/worker/{cache,collective,data,device,local_sync,peer,service,step,strategy,tower}/...)
sanitize() { bazel_check "$1" test --config=unity --config="$1" --build_tests_only --test_summary=terse "${@:2}"; }
check_asan() { sanitize asan "${core[@]}"; }
check_tsan() { sanitize tsan "${core[@]}"; }
# Every test but those that .bazelrc leaves out for the sanitizer, and says why.
check_asan_all() { sanitize asan //tests/...; }
check_tsan_all() { sanitize tsan //tests/...; }

# Each target for 30 seconds.
check_fuzz() {
  # shellcheck source=deploy/cli/fuzz.sh
  source "$root/deploy/cli/fuzz.sh"
  alone run_fuzz
}

# Simulated jobs of all scenarios, with enough faults to find something.
check_sim() {
  # shellcheck source=deploy/cli/sim.sh
  source "$root/deploy/cli/sim.sh"
  alone run_sim --sim --seeds=20000 --least_faults=200000
}

# Real processes under 200 faults: without copies of shards, with them and a token, with links between
# hosts, and what steps have counted. Then goodput under kills, where
# 0.9 is enough: other work on the machine may cost more in a minute than the kills.
check_chaos() {
  # shellcheck source=deploy/cli/chaos.sh
  source "$root/deploy/cli/chaos.sh"
  alone run_chaos --faults=60 && alone run_chaos --faults=60 --copies --token &&
    alone run_chaos --faults=40 --copies --hosts &&
    alone run_chaos --faults=40 --copies --ledger --backup &&
    alone run_chaos --copies --ledger --backup --kill_every=30 --seconds=120 --least_goodput=0.9
}

# Kills while a job saves: 500 at random moments of a process that saves, as many of whole clusters,
# and at each operation of a start with its first saves. Prints how many, and what was found.
check_kills() {
  local status=0 log=$cache/check-kills.log
  # The moments are the same in each run, and what they meet is not.
  run_bazel kills "$log" test --config=unity --test_arg='[.kills]' --test_timeout=3600 --test_output=all --keep_going \
    --nocache_test_results //tests/unit/chief/checkpoint:failing_disk_test //tests/integration:failing_disk_test ||
    status=$?
  stop_own_server
  ((status == 0)) || bazel_output "$log" >&2
  sed -nE 's/^ +([0-9]+ kills, .*)/\1/p' "$log" | grep . || status=1
  unlock_builds
  return "$status"
}

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
