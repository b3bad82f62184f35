# Runs the tests and adds up their cases. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

# count_cases LABEL STATUS: prints "passed failed" of one test, from the line with which each test
# binary closes its log. A test that did not get so far, or that failed after it, counts as one failed.
count_cases() {
  local label=$1 status=$2 log
  local -a logs
  mapfile -t logs < <(find -L "$root/bazel-testlogs/$(path_of "$label")" -name test.log 2>/dev/null)
  for log in "${logs[@]}"; do grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1; done |
    awk -v ok="$([ "$status" = PASSED ] && echo 1)" '
      { passed += $1; failed += $3 }
      END {
        if (!ok && failed == 0) failed = 1
        if (ok && NR == 0) passed = 1
        print passed + 0, failed + 0
      }'
}

# print_count LOG STATUS: reads Bazel's summary ("//a:b_test  (cached) PASSED in 0.1s") and prints the
# closing line. STATUS is Bazel's: where it failed without a summary, that counts as one failed.
print_count() {
  sed -nE 's/^(\/\/[^ ]+) +(\(cached\) )?(PASSED|FLAKY|FAILED TO BUILD|FAILED|TIMEOUT|NO STATUS|INCOMPLETE).*/\1 \3/p' "$1" |
    while read -r label status; do
      case $status in
        PASSED | FLAKY*) count_cases "$label" PASSED ;;
        # Its log, if any, is of an earlier run.
        "FAILED TO BUILD" | "NO STATUS") echo 0 1 ;;
        *) count_cases "$label" FAILED ;;
      esac
    done | awk -v status="$2" '
      { passed += $1; failed += $2 }
      END {
        if (status != 0 && failed == 0) failed = 1
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0
      }'
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

# count_left_out: says how many cases wait for a machine with a GPU. Their programs are built.
count_left_out() {
  local label cases total=0
  for label in $(gpu_tests); do
    # Its last line is a count, as of every test.
    cases=$("$(binary_of "$label")" --list-test-names-only 2>/dev/null | sed '$d' | wc -l)
    total=$((total + cases))
  done
  ((total == 0)) || echo "$total cases not run: they need a GPU"
}

# Python packages for the tests in which programs of others read our files and call our services.
python_home=$cache/python
python_packages=$root/tests/interop/requirements.txt

# build_beside_pip ARGS...: pip mostly waits for the network. What does not build, the tests will show.
build_beside_pip() {
  install_venv "$python_home" "$python_packages" >"$cache/pip.log" 2>&1 &
  logged_bazel build "$@" || true
  wait
}

# Sets `python` to a Python with these packages. Without the network there is none: `python` stays
# empty, and those tests fail.
python=
make_python() {
  if make_venv "$python_home" "$python_packages"; then
    python=$python_home/bin/python3
  else
    say "pip cannot install tests/interop/requirements.txt: the tests that need it will fail. Remedy: see the lines above; pip needs a package index"
  fi
}

# run_tests [BAZEL OPTIONS AND TARGETS], or --oracle or --sim and what run_oracle or run_sim takes
run_tests() {
  if [[ ${1:-} == --sim ]]; then
    # shellcheck source=deploy/cli/sim.sh
    source "$root/deploy/cli/sim.sh"
    run_sim "$@"
  fi
  if [[ ${1:-} == --oracle* ]]; then
    # shellcheck source=deploy/cli/oracle.sh
    source "$root/deploy/cli/oracle.sh"
    run_oracle "$@"
    return
  fi
  local argument has_target='' status=0 count=0 filter='' left_out=''
  for argument; do [[ $argument == -* ]] || has_target=1; done
  has_gpu || filter=-gpu
  # Tests of processes mostly wait: half as many tests and compilers again as there are cores run at a
  # time. Tests that measure pauses take the place of two (the tag cpu:2). Jobs wait for such a place.
  set -- --jobs=$(($(nproc) * 10)) --local_cpu_resources=$((($(nproc) * 3 + 1) / 2)) "$@"
  set -- --config=unity --keep_going --test_tag_filters="$filter" "$@"
  local given=--test_env=LOCKSTEP_PYTHON=$python_home/bin/python3
  lock_builds
  if [ -z "$has_target" ] && ! has_venv "$python_home" "$python_packages"; then
    run_job "building" "$cache/build.log" bazel_progress build_beside_pip "$given" "$@" //common/...
  fi
  make_python
  [ -n "$has_target" ] || set -- "$@" //...
  run_bazel "testing" "$cache/test.log" test ${python:+"$given"} --test_summary=short "$@" || status=$?
  if [ -z "$has_target" ] && [ -n "$filter" ]; then left_out=$(count_left_out); fi
  stop_own_server
  bazel_output "$cache/test.log"
  [ -z "$left_out" ] || echo "$left_out"
  print_count "$cache/test.log" "$status" || count=1
  unlock_builds
  # Bazel's 4: there is no test among the targets.
  ((status == 0 && count == 0)) || exit 1
}
