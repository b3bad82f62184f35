# Looks for inputs that end our readers. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

fuzz_flags=(--config=unity --config=fuzz --platform_suffix=-fuzz --symlink_prefix=/)

# fuzz_target PROGRAM NAME SECONDS: prints one line; what the fuzzer has found before is where it begins.
fuzz_target() {
  local program=$1 name=$2 seconds=$3 leaks=1 status=0 found=$cache/fuzz/$2 log=$cache/fuzz/$2.log
  mkdir -p "$found"
  # Between two inputs gRPC's threads still work for the first one: what they have in hand at that moment is
  # taken for a leak now and then. The corpora, which ./lockstep check asan_all replays, are checked at the end.
  case $name in *_methods | job_control) leaks=0 ;; esac
  ASAN_OPTIONS=allocator_may_return_null=1 "$program" --target="$name" -max_total_time="$seconds" -timeout=10 \
    -detect_leaks="$leaks" -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$cache/fuzz/$name-" \
    "$found" "$root/tests/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
  if ((status == 0)); then
    say "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
    return
  fi
  say "fuzz: $name: found $(sed -n 's/.*Test unit written to //p' "$log"). Remedy: read $log, mend the reader, and add the file to tests/fuzz/corpus/$name"
  return 1
}

# run_fuzz [TARGET] [--seconds=N]: of each target, or this one, 30 seconds or as many as given.
run_fuzz() {
  local argument seconds=30 wanted='' program name passed=0 failed=0
  for argument; do
    case $argument in
      --seconds=[1-9]*) seconds=${argument#*=} ;;
      -*) die 64 "fuzz: unknown option '$argument'. Remedy: ./lockstep fuzz [TARGET] [--seconds=N]" ;;
      *) wanted=$argument ;;
    esac
  done
  [ -z "$wanted" ] || [ -d "$root/tests/fuzz/corpus/$wanted" ] ||
    die 64 "fuzz: unknown target '$wanted'. Remedy: use one of $(ls "$root/tests/fuzz/corpus" | tr '\n' ' ')"
  run_bazel fuzz "$cache/fuzz.log" build "${fuzz_flags[@]}" //tests/fuzz:fuzz || {
    stop_own_server
    bazel_output "$cache/fuzz.log" >&2
    die 70 "the fuzzer does not build. Remedy: see the lines above; the whole log is $cache/fuzz.log"
  }
  program=$(bazel_command info "${fuzz_flags[@]}" bazel-bin 2>/dev/null)/tests/fuzz/fuzz
  stop_own_server
  unlock_builds
  for name in $(ls "$root/tests/fuzz/corpus"); do
    [ -z "$wanted" ] || [ "$wanted" = "$name" ] || continue
    if fuzz_target "$program" "$name" "$seconds"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
