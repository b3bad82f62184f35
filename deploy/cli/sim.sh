# Simulates jobs under random faults, in one thread and simulated time. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # bin: set by ./lockstep

# run_sim --sim [--seeds=N | --seed=K] [--scenario=NAME] [--least_faults=N]: ends with the program's exit code.
run_sim() {
  local argument
  for argument in "${@:2}"; do
    case $argument in
      --seeds=* | --seed=* | --scenario=* | --least_faults=*) ;;
      *) die 64 "test --sim: unknown option '$argument'. Remedy: ./lockstep test --sim [--seeds=N | --seed=K] [--scenario=NAME] [--least_faults=N]" ;;
    esac
  done
  build_targets //tests/sim:simulate
  exec "$bin/tests/sim/simulate" "${@:2}"
}
