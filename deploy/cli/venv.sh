# Python packages in environments of their own. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # cache: set by ./lockstep

# A virtual environment is made once for each version of the file that names its packages.
# has_venv FOLDER REQUIREMENTS
has_venv() { cmp -s "$2" "$1/installed.txt"; }

# install_venv FOLDER REQUIREMENTS. It goes on where the script is killed, and keeps nobody from building.
install_venv() {
  exec 9>&-
  rm -rf "$1"
  python3 -m venv "$1" &&
    "$1/bin/pip" --disable-pip-version-check install --quiet --only-binary=:all: --requirement "$2" &&
    cp "$2" "$1/installed.txt"
}

# make_venv FOLDER REQUIREMENTS: fails, showing why, without a package index. Two commands at a time would
# replace each other's folder.
make_venv() {
  ! has_venv "$@" || return 0
  local held=$has_build_lock status=0
  lock_builds
  has_venv "$@" || run_job "python packages" "$cache/pip.log" true install_venv "$@" || status=$?
  ((status == 0)) || tail -n 5 "$cache/pip.log" >&2
  [ -n "$held" ] || unlock_builds
  return "$status"
}
