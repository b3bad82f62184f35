# Trains while processes are killed, stopped and cut off at random. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # bin: set by ./lockstep

# run_chaos [--seconds=N | --faults=N] [--seed=N] [--copies] [--hosts | --token]
# [--ledger [--backup]] [--kill_every=N] [--json=FILE]: ends with the program's exit code.
run_chaos() {
  build_targets "${daemons[@]}" //tests/chaos:chaos
  exec "$bin/tests/chaos/chaos" "$@"
}
