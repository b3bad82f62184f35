# Runs one long command (apt-get, bazel) with a progress line, and ends it, with all that it
# started, when the user interrupts. Sourced by ./lockstep.
# shellcheck shell=bash

job=                   # process group of the running command
job_signals=(INT KILL) # what a first signal becomes for it, and a second one
as_root=()             # prefix for commands that need root: empty or (sudo -n)
at_exit=()             # functions to call before the script ends early

kill_job() { "${as_root[@]}" kill "-$1" -- "-$job" 2>/dev/null || true; }

# on_signal CODE: a second signal no longer waits.
on_signal() {
  trap 'kill_job "${job_signals[1]}"' INT TERM HUP
  clear_progress
  if [ -n "$job" ]; then
    kill_job "${job_signals[0]}"
    # A signal ends the wait, not the job.
    while kill -0 "$job" 2>/dev/null; do wait "$job" || true; done
  fi
  local function
  for function in "${at_exit[@]}"; do "$function" || true; done
  exit "$1"
}

trap_signals() {
  trap 'on_signal 130' INT
  trap 'on_signal 143' TERM HUP
}

say() { printf 'lockstep: %s\n' "$*" >&2; }

# die CODE TEXT
die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

clear_progress() { [ ! -t 2 ] || printf '\r\033[K' >&2; }

# show_progress LABEL TEXT: rewrites one line on a terminal; elsewhere a plain line now and then.
progress_next=0
show_progress() {
  [ -n "$2" ] || return 0
  if [ -t 2 ]; then
    local line="$1: $2"
    printf '\r\033[K%s' "${line:0:$((${COLUMNS:-80} - 1))}" >&2
  elif ((SECONDS >= progress_next)); then
    printf 'lockstep: %s: %s\n' "$1" "$2" >&2
    progress_next=$((SECONDS + 15))
  fi
}

# run_job LABEL LOG PROGRESS COMMAND...: output goes to LOG; PROGRESS is a
# function that prints where the command is. Returns the command's exit status. The command
# gets a process group of its own: as an ordinary background job it would ignore SIGINT.
run_job() {
  local label=$1 log=$2 progress=$3 status=0
  shift 3
  progress_next=$((SECONDS + 5))
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  job=$!
  set +m
  while kill -0 "$job" 2>/dev/null; do
    show_progress "$label" "$("$progress" "$log" 2>/dev/null || true)"
    sleep 0.2
  done
  wait "$job" || status=$?
  job=
  clear_progress
  return "$status"
}
