# The CUDA toolkit that compiles kernels for GPUs. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

cuda_toolkit=$cache/cuda # complete, or not there
cuda_part=$cache/cuda.part
cuda_requirements=$root/deploy/cuda/requirements.txt
# While it is installed: pip, the packages as downloaded (101 MB) and as unpacked (265 MB). 160 MB stay.
cuda_install_bytes=450000000

# Where a build looks: CUDA_HOME, then what --cuda has installed, then /usr/local/cuda. Bazel knows the
# first and the last.
if [ -z "${CUDA_HOME:-}" ] && [ -d "$cuda_toolkit" ]; then export CUDA_HOME=$cuda_toolkit; fi
cuda_home() { echo "${CUDA_HOME:-/usr/local/cuda}"; }

# Whether the user has named a toolkit.
cuda_home_is_named() { [ -n "${CUDA_HOME:-}" ] && [ "$CUDA_HOME" != "$cuda_toolkit" ]; }

check_cuda_home() {
  local version='' remedy="Remedy: name a toolkit's folder, or unset CUDA_HOME: then --cuda installs a toolkit"
  [ -x "$CUDA_HOME/bin/nvcc" ] || die 78 "CUDA_HOME names $CUDA_HOME, which has no bin/nvcc. $remedy"
  version=$(sed -n 's/^#define CUDART_VERSION *//p' "$CUDA_HOME/include/cuda_runtime_api.h" 2>/dev/null) || true
  ((${version:-0} >= 12000)) ||
    die 78 "CUDA_HOME names $CUDA_HOME: expected CUDART_VERSION 12000 or above in include/cuda_runtime_api.h, got '$version'. $remedy"
  say "CUDA_HOME names a toolkit, $CUDA_HOME: --cuda installs none"
}

drop_cuda_part() { rm -rf "$cuda_part"; }

# Installs the toolkit from Python packages, once, or ends the script. What is downloaded is on the same
# disk, so that the room that it needs is known beforehand.
ensure_cuda() {
  local toolkit free
  export CUDA_HOME=$cuda_toolkit
  ! cmp -s "$cuda_requirements" "$cuda_toolkit/installed.txt" || return 0
  lock_builds # whose nvcc this may be
  ! cmp -s "$cuda_requirements" "$cuda_toolkit/installed.txt" || return 0
  at_exit+=(drop_cuda_part)
  drop_cuda_part
  mkdir -p "$cuda_part/tmp"
  free=$(df --output=avail -B1 "$cuda_part" | tail -n 1)
  ((free >= cuda_install_bytes)) || {
    drop_cuda_part
    die 73 "the CUDA toolkit needs $cuda_install_bytes bytes in $cache, and $((free)) are free. Remedy: free space, or name a toolkit that is there: CUDA_HOME=FOLDER"
  }
  say "installing a CUDA toolkit in $cuda_toolkit (101 MB to download)"
  TMPDIR=$cuda_part/tmp PIP_NO_CACHE_DIR=1 make_venv "$cuda_part/venv" "$cuda_requirements" || {
    drop_cuda_part
    die 138 "pip cannot install deploy/cuda/requirements.txt. Remedy: see the lines above; pip needs a package index. Or name a toolkit that is there: CUDA_HOME=FOLDER"
  }
  toolkit=$(echo "$cuda_part"/venv/lib/python3*/site-packages/nvidia/cu13)
  [ -x "$toolkit/bin/nvcc" ] || {
    drop_cuda_part
    die 70 "the packages of deploy/cuda/requirements.txt have no nvidia/cu13/bin/nvcc. Remedy: the versions that came with this tree"
  }
  # No program is linked by nvcc, or from CUDA's libraries.
  rm -rf "${toolkit:?}/lib" "$toolkit/bin/nvlink"
  cp "$cuda_requirements" "$toolkit/installed.txt"
  # Each is renamed: whatever ends the script, the toolkit is whole.
  [ ! -d "$cuda_toolkit" ] || mv "$cuda_toolkit" "$cuda_part/replaced"
  mv "$toolkit" "$cuda_toolkit"
  drop_cuda_part
}
