# Installs and builds what the benchmark compares us with. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

peers_dir=$cache/peers
tensorflow_python=$cache/tensorflow/bin/python3
torch_python=$cache/torch/bin/python3

# build_peer NAME FLAGS...: for this machine's processor, at the highest optimization. Not by Bazel: what
# these programs are made from is no part of a build of Lockstep.
build_peer() {
  local name=$1 source=$root/tests/bench/peers
  shift
  [ ! -e "$peers_dir/$name" ] || [ -n "$(find "$source" -newer "$peers_dir/$name")" ] || return 0
  run_job "building $name" "$cache/peers.log" true g++ -std=c++20 -O3 -march=native -pthread -I"$root" \
    "$source/$name.cc" "$source/steps.cc" -o "$peers_dir/$name" "$@" || {
    tail -n 15 "$cache/peers.log" >&2
    die 70 "$name does not build. Remedy: see the lines above; the whole log is $cache/peers.log"
  }
}

# peer_venv NAME REQUIREMENTS: without a package index its rows stay without a peer.
peer_venv() {
  make_venv "$cache/$1" "$root/$2" ||
    say "pip cannot install $2: the rows of $1 stay without a peer. Remedy: see the lines above; pip needs a package index"
}

# Gloo, Open MPI, ZeroMQ, TensorFlow and PyTorch.
ensure_peers() {
  mkdir -p "$peers_dir"
  build_peer gloo_step -lgloo
  # shellcheck disable=SC2046  # several flags
  build_peer mpi_step $(pkg-config --cflags --libs ompi-c)
  build_peer zeromq_step -lzmq
  peer_venv tensorflow tests/oracle/requirements.txt
  peer_venv torch tests/bench/torch_requirements.txt
}

# run_bench [--peers] [FLAGS OF THE BENCHMARK]
run_bench() {
  local argument peers='' arguments=()
  for argument; do if [ "$argument" = --peers ]; then peers=1; else arguments+=("$argument"); fi; done
  ensure_packages build ${peers:+bench}
  [ -z "$peers" ] || ensure_peers
  build_targets "${daemons[@]}" //deploy/cli:up //tests/bench:bench
  exec "$bin/tests/bench/bench" --root="$root" --commit="$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)" \
    --peers_dir="$peers_dir" --tensorflow="$tensorflow_python" --torch="$torch_python" "${arguments[@]}"
}
