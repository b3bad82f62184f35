# Builds with Bazel. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

bin=$root/bazel-bin
daemons=(//ps:ps //worker:worker //chief:chief)
tools=(//worker:predict //deploy/cli:up //deploy/cli:demo //deploy/cli:status //deploy/cli:stop
  //deploy/cli:token //deploy/cli:certificates)

# One command at a time uses Bazel in this tree: it stops the server, for which another one may wait,
# and replaces programs and logs. The lock is released after the last of them has been read, and before a
# program begins that would inherit it.
has_build_lock=
lock_builds() {
  [ -z "$has_build_lock" ] || return 0
  local file
  for file in "$cache" "$cache"/build.lock "$cache"/*.log "$cache"/built; do
    [ ! -e "$file" ] || [ -w "$file" ] ||
      die 73 "$file: this user cannot write it: it belongs to $(stat -c %U "$file"), who has built here before. Remedy: a tree of your own, or chown -R $(id -un) $root/.cache, as root"
  done
  exec 9>"$cache/build.lock"
  flock --nonblock 9 || {
    say "another command builds here: waiting for its end"
    run_job "waiting" /dev/null true flock 9
  }
  has_build_lock=1
}
unlock_builds() {
  exec 9>&-
  has_build_lock=
}

# A Bazel server that we started is stopped again: nothing stays behind, and training gets its memory.
# It is known by its environment, also while it starts and does not listen yet.
stop_own_server() {
  local -a pids
  local wait
  for wait in {1..50}; do
    mapfile -t pids < <(grep -lzxFs -- "LOCKSTEP_RUN=$$" /proc/[0-9]*/environ | tr -dc '0-9\n')
    ((${#pids[@]} > 0)) || break
    kill "$([ "$wait" -lt 30 ] && echo -TERM || echo -KILL)" "${pids[@]}" 2>/dev/null || true
    sleep 0.1
  done
}
at_exit+=(stop_own_server)

bazel_command() {
  local startup=(--max_idle_secs=60)
  # Without a home Bazel has no place of its own.
  [ -w "${HOME:-/nowhere}" ] || startup+=("--output_user_root=${TMPDIR:-/var/tmp}/lockstep-bazel-$(id -u)")
  (cd "$root" && LOCKSTEP_RUN=$$ exec bazel "${startup[@]}" "$@" 9>&-)
}

# "[12 / 120] Compiling a.cc; 9s linux-sandbox ... (2 actions running)" -> "12 of 120  Compiling a.cc"
bazel_progress() {
  tail -c 4000 "$1" | grep -aE '^\[[0-9,]+ / [0-9,]+\]' | tail -n 1 |
    sed -E 's|^\[([0-9,]+) / ([0-9,]+)\] *|\1 of \2  |; s/(;| \.\.\.| \[) ?.*//'
}

# Lines of a Bazel log that a reader needs: no progress, no chatter.
bazel_output() {
  grep -avE -e '^(\[[0-9,]+ / [0-9,]+\]|INFO:|Loading:|Analyzing:|DEBUG:|Starting local Bazel server|    currently loading)' \
    -e '^(WARNING: Running Bazel server needs|  WARNING: .*Test execution time|There were tests whose specified size)' "$1"
}

# logged_bazel COMMAND ARGS...: writes what bazel_progress reads.
logged_bazel() {
  bazel_command "$1" --jobs="$(nproc)" --curses=no --color=no --show_progress_rate_limit=0.5 --nosandbox_debug "${@:2}"
}

# run_bazel LABEL LOG COMMAND ARGS...
run_bazel() {
  lock_builds
  run_job "$1" "$2" bazel_progress logged_bazel "${@:3}"
}

# Where below bazel-bin or bazel-testlogs what belongs to LABEL is.
path_of() { local label=${1#//}; echo "${label/://}"; }
binary_of() { echo "$bin/$(path_of "$1")"; }

# The labels of the tests that need a GPU.
gpu_tests() {
  bazel_command query --noshow_progress 'attr(tags, "\bgpu\b", tests(//tests/...))' 2>"$cache/query.log"
}

# What the binaries are made of, and how they and the CUDA compiler looked after the last build: when
# nothing has changed there is nothing to do, and Bazel need not start. Jobs in this tree write
# checkpoints beside the examples.
fingerprint() {
  local target
  stat -L -c '%n %y %s' "$(cuda_home)/bin/nvcc" 2>/dev/null || echo no CUDA
  for target in "${daemons[@]}" "${tools[@]}"; do stat -L -c '%n %y %s' "$(binary_of "$target")" 2>/dev/null || echo absent; done
}
up_to_date() {
  [ -f "$cache/built" ] && [ "$(fingerprint)" = "$(cat "$cache/built")" ] &&
    [ -z "$(find "$root"/{WORKSPACE,BUILD.bazel,.bazelrc,proto,common,ps,worker,chief,deploy/BUILD.bazel,deploy/cli,deploy/data} "$root"/*.bazelrc -newer "$cache/built" -print -quit 2>/dev/null)" ]
}

# build_under_lock TARGET...: ends the script when it fails, and leaves the lock to the caller.
build_under_lock() {
  local status=0
  run_bazel "building" "$cache/build.log" build --config=unity "$@" || status=$?
  stop_own_server
  ((status == 0)) || {
    bazel_output "$cache/build.log" >&2
    die 70 "the build failed. Remedy: see the lines above; the whole log is $cache/build.log"
  }
}

# build_targets TARGET...: ends the script when it fails.
build_targets() {
  build_under_lock "$@"
  unlock_builds
}

build_all() {
  ! up_to_date || return 0
  lock_builds
  if up_to_date; then # another command has built it meanwhile
    unlock_builds
    return
  fi
  local started
  started=$(date --iso-8601=ns)
  build_under_lock "${daemons[@]}" "${tools[@]}"
  # Before the lock is released: a command that waits for it looks for this.
  fingerprint >"$cache/built"
  touch -d "$started" "$cache/built"
  unlock_builds
}

# run_build [--cuda]
run_build() {
  local argument target cuda=''
  for argument; do
    case $argument in
      --cuda) cuda=1 ;;
      *) die 64 "build: unknown option '$argument'. Remedy: ./lockstep build [--cuda]" ;;
    esac
  done
  if [ -n "$cuda" ] && cuda_home_is_named; then
    check_cuda_home
    cuda=''
  fi
  ensure_packages build ${cuda:+cuda}
  [ -z "$cuda" ] || ensure_cuda
  build_all
  for target in "${daemons[@]}" "${tools[@]}"; do binary_of "$target"; done
}
