# Packs programs, GPU tests and examples into one archive for machines on which nothing is built.
# Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, bin, cache, daemons, tools: set by ./lockstep

most_bundle_bytes=$((40 << 20))

# Those that PROGRAM... load. The C library's are the machine's own, and so is its driver.
libraries_of() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util))\.so'
}

# copy_examples FOLDER: with their data, without what jobs in this tree have saved beside them.
copy_examples() {
  tar -C "$root/deploy" --exclude=checkpoints -c examples data | tar -C "$1/deploy" -x
}

# stage FOLDER TARGET...: where the programs and their data are in this tree, they are in FOLDER.
stage() {
  local folder=$1 target path library
  local -a programs=()
  shift
  mkdir -p "$folder/deploy" "$folder/lib"
  for target; do
    path=$(path_of "$target")
    if [ -d "$bin/$path.runfiles/lockstep" ]; then cp -rLn "$bin/$path.runfiles/lockstep/." "$folder/"; fi
    mkdir -p "$(dirname "$folder/$path")"
    cp -Lf "$bin/$path" "$folder/$path"
  done
  mapfile -t programs < <(find "$folder" -type f -perm -u+x -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print)
  chmod u+w "${programs[@]}"
  strip "${programs[@]}"
  for library in $(libraries_of "${programs[@]}"); do cp -L "$library" "$folder/lib/"; done
  chmod u+w "$folder"/lib/*
  strip --strip-unneeded "$folder"/lib/*
  copy_examples "$folder"
  cp "$root/deploy/bundle/"* "$root/LICENSE" "$folder/"
}

# run_bundle FILE
run_bundle() {
  [ $# -eq 1 ] && [[ $1 != -* ]] || die 64 "usage: ./lockstep bundle FILE.tar.xz. Remedy: name the archive to write"
  local file=$1 folder bytes label
  local -a tests
  ensure_packages build bundle
  lock_builds
  mapfile -t tests < <(gpu_tests)
  stop_own_server
  ((${#tests[@]} > 0)) || die 70 "bazel lists no tests for GPUs. Remedy: see $cache/query.log"
  build_under_lock "${daemons[@]}" "${tools[@]}" //tests/bench:bench "${tests[@]}"
  folder=$(mktemp -d "$cache/bundle.XXXXXX")
  # shellcheck disable=SC2064  # as it is now
  trap "rm -rf '$folder'" EXIT
  stage "$folder/lockstep" "${daemons[@]}" "${tools[@]}" //tests/bench:bench "${tests[@]}"
  unlock_builds
  for label in "${tests[@]}"; do path_of "$label"; done >"$folder/lockstep/gpu_tests.txt"
  tar -C "$folder" --sort=name --owner=0 --group=0 -c lockstep | xz -T0 -6 >"$file" ||
    die 73 "$file: cannot write it. Remedy: another path, or free space"
  bytes=$(stat -c %s "$file")
  ((bytes <= most_bundle_bytes)) ||
    die 70 "$file has $bytes bytes, expected at most $most_bundle_bytes. Remedy: leave something out in deploy/cli/bundle.sh"
  [ -x "$(cuda_home)/bin/nvcc" ] ||
    say "its workers have no kernels for GPUs. Remedy: ./lockstep build --cuda installs a CUDA toolkit; then the same command again"
  say "$file: $((bytes >> 20)) MiB. On a machine with a GPU: tar -xf $(basename "$file") && lockstep/lockstep check_gpu FOLDER"
}
