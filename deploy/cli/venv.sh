# Python packages in environments of their own. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # cache: set by ./lockstep

# make_venv FOLDER REQUIREMENTS: a virtual environment with the packages that the file names, made once.
# Fails, showing why, without a package index.
make_venv() {
  local venv=$1 wanted=$2
  ! cmp -s "$wanted" "$venv/installed.txt" || return 0
  rm -rf "$venv"
  if ! { run_job "python packages" "$cache/pip.log" true python3 -m venv "$venv" &&
    run_job "python packages" "$cache/pip.log" true "$venv/bin/pip" --disable-pip-version-check \
      install --quiet --only-binary=:all: --requirement "$wanted" &&
    cp "$wanted" "$venv/installed.txt"; }; then
    tail -n 5 "$cache/pip.log" >&2
    return 1
  fi
}
