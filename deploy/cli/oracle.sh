# Compares our classes with TensorFlow. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache, bin, python: set by ./lockstep

tensorflow_python=$cache/tensorflow/bin/python3

# TensorFlow in a virtual environment of its own.
ensure_tensorflow() {
  make_venv "$cache/tensorflow" "$root/tests/oracle/requirements.txt" ||
    die 138 "pip cannot install tests/oracle/requirements.txt. Remedy: see the lines above; or replay what is recorded: ./lockstep test --oracle tests/oracle/scripts"
}

# record_scripts FOLDER SEED: asks TensorFlow.
record_scripts() {
  local folder=$1 seed=$2 status=0
  say "recording scripts from TensorFlow with seed $seed"
  rm -rf "$folder"
  local program
  for program in record record_adamw; do
    ((status == 0)) || break
    PYTHONDONTWRITEBYTECODE=1 run_job "recording" "$cache/record.log" true \
      "$tensorflow_python" "$root/tests/oracle/$program.py" "$folder" --seed "$seed" || status=$?
  done
  ((status == 0)) || {
    tail -n 15 "$cache/record.log" >&2
    die 70 "recording failed. Remedy: see the lines above; the whole log is $cache/record.log"
  }
}

# Each prints what differs and closes with "N passed, N failed".
replay_in_process() {
  build_targets //tests/oracle:replay
  "$bin/tests/oracle/replay" "$1"
}
replay_through_wire() {
  make_python
  [ -n "$python" ] || die 138 "there is no Python with gRPC. Remedy: see the lines above"
  build_targets //ps:ps
  PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/oracle/replay_through_wire.py" "$root" "$bin/ps/ps" "$1"
}
train_with_both() {
  build_targets "${daemons[@]}" //deploy/cli:up
  PYTHONDONTWRITEBYTECODE=1 "$tensorflow_python" "$root/tests/oracle/end_to_end.py" "$root" "$bin"
}

# Fresh scripts through our classes and through a running ps, then whole trainings; the last line
# adds up the three.
compare_with_tensorflow() {
  local folder=$cache/scripts seed=$1 status=0
  ensure_tensorflow
  record_scripts "$folder" "$seed"
  {
    replay_in_process "$folder" || status=1
    replay_through_wire "$folder" || status=1
    train_with_both || status=1
    exit "$status"
  } | tee "$cache/oracle.log" || status=$?
  awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
    END { printf "%d passed, %d failed\n", passed, failed }' "$cache/oracle.log"
  return "$status"
}

# run_oracle --oracle [FOLDER [--through=wire]] [--seed=N]
run_oracle() {
  local folder='' seed='' replay=replay_in_process argument
  for argument; do
    case $argument in
      --oracle) ;;
      --oracle=*) folder=${argument#*=} ;;
      --seed=*) seed=${argument#*=} ;;
      --through=wire) replay=replay_through_wire ;;
      -*) die 64 "test --oracle: unknown option '$argument'. Remedy: ./lockstep test --oracle [FOLDER [--through=wire]] [--seed=N]" ;;
      *) folder=$argument ;;
    esac
  done
  if [ -n "$folder" ]; then
    "$replay" "$folder"
  else
    compare_with_tensorflow "${seed:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
  fi
}
