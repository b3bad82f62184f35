#!/usr/bin/env bash
# task.sh JOB [FLAGS OF THE CHIEF]: one task of lockstep.sbatch, a ps, a worker or the chief. Starts it
# again when that may help (docs/operations.md, "Exit codes"), unless Slurm ends the job.
set -uo pipefail

readonly MAX_FAILURES=5 WITHIN=60  # in so many seconds, as `lockstep up` has them

roles=(ps worker chief)
role=${roles[SLURM_LOCALID]} index=$SLURM_NODEID
task=$role-$index
[ "$role" != chief ] || task=chief
log=$LOCKSTEP_RUN/logs/$task.log
exec >>"$log" 2>&1

# set_chief_flags JOB [FLAGS]: the user's --fresh, --restore or --restore=DIR applies until training has
# begun, over all restarts. Then, and without them, the chief gets --resume.
set_chief_flags() {
  local flag start=()
  flags=(--job="$1")
  for flag in "${@:2}"; do
    case $flag in
      --fresh | --restore | --restore=*) start+=("$flag") ;;
      *) flags+=("$flag") ;;
    esac
  done
  ((${#start[@]} > 0)) && ! grep -q ' chief: training begins at step ' "$log" || start=(--resume)
  flags+=("${start[@]}")
}

# Slurm signals every process of the job, this one and the task.
is_ending=''
trap 'is_ending=1' TERM

# Ends this task for good. srun kills all others after the first one that fails (--kill-on-bad-exit).
give_up() {
  # Ps and workers end before the chief has saved.
  [ -z "$is_ending" ] || [ "$role" = chief ] || exit 0
  # The first one is the reason: the file is not overwritten.
  [ -n "$is_ending" ] || [ "$1" = 0 ] || (set -C && echo "$1 $task" >"$LOCKSTEP_RUN/exit_code") 2>/dev/null
  # A task that is started again now would wait for a chief.
  [ "$role$1" != chief0 ] || : >"$LOCKSTEP_RUN/done"
  exit "$1"
}

# set_flags TEXT: divided by spaces, but for those in single or double quotes. Within quotes nothing is
# special; outside, a backslash quotes the next character.
set_flags() {
  mapfile -t flags < <(xargs -r printf '%s\n' <<<"$1")
  wait $! && return
  echo "flags of $task: expected quotes in pairs, got: $1"
  give_up 64
}
flags=()
case $role in
  ps) set_flags "${LOCKSTEP_PS_FLAGS:-}" ;;
  worker) set_flags "${LOCKSTEP_WORKER_FLAGS:-}" ;;
esac

ends=()  # when the task has ended, in the last minute
while true; do
  [ "$role" != chief ] || set_chief_flags "$@"
  "$LOCKSTEP_BIN/$role/$role" --cluster="$LOCKSTEP_RUN/cluster.json" --task_index="$index" \
    --tls_ca="$LOCKSTEP_RUN/tls/ca.pem" --tls_cert="$LOCKSTEP_RUN/tls/$task.pem" "${flags[@]}" &
  pid=$!
  [ -z "$is_ending" ] || kill -TERM "$pid"  # the signal came before the task
  # A signal ends the wait, not yet the task.
  while kill -0 "$pid" 2>/dev/null; do wait "$pid"; done
  wait "$pid"  # the shell still knows the code of a task that was waited for
  code=$?
  [ ! -e "$LOCKSTEP_RUN/done" ] || exit 0
  ends+=("$SECONDS")
  while ((SECONDS - ends[0] >= WITHIN)); do ends=("${ends[@]:1}"); done
  ((code >= 128 && code != 130 && ${#ends[@]} <= MAX_FAILURES)) || give_up "$code"
  [ -n "$is_ending" ] || sleep 1  # the task may have had the signal first
  [ -z "$is_ending" ] || give_up "$code"
done
