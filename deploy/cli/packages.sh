# Installs the Debian packages of deploy/packages.txt that are missing. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

# The packages of the given groups that are not installed.
missing_packages() {
  local group wanted installed
  wanted=$(for group; do awk -v g="$group" '$1 == g { print $2 }' "$root/deploy/packages.txt"; done | sort -u)
  # shellcheck disable=SC2086  # one word per package
  installed=$({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true; } |
    awk '$1 == "installed" { print $2 }' | sort -u)
  comm -23 <(echo "$wanted") <(echo "$installed")
}

# apt-get's status lines ("pmstatus:g++:42.0:Unpacking g++") go into the log among the others. They
# need a descriptor of their own: apt-get closes it for the programs that it starts.
apt_progress() {
  tail -c 4000 "$1" | grep -aE '^(dl|pm)status:' | tail -n 1 | awk -F: '{ printf "%d %%  %s", $3, $4 }'
}

apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c 'exec apt-get "$@" 3>&1' apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 \
    -o Dpkg::Options::=--force-unsafe-io "$@"
}

install_packages() {
  run_job "installing" "$cache/apt.log" apt_progress apt_get install --no-install-recommends "$@"
}
update_lists() { run_job "package lists" "$cache/apt.log" apt_progress apt_get update; }

# ensure_packages GROUP...: installs what is missing, or says how and ends.
ensure_packages() {
  mkdir -p "$cache" 2>/dev/null ||
    die 73 "$cache: cannot create it. Remedy: give yourself the right to write in $root"
  command -v dpkg-query >/dev/null ||
    die 78 "this is not a Debian system. Remedy: use Debian 12, or install what deploy/packages.txt names and build with bazel"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  say "missing Debian packages: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || {
      say "installing them needs root. Run this, then the same command again:"
      echo "apt-get install -y --no-install-recommends ${missing[*]}"
      exit 77
    }
    as_root=(sudo -n)
  fi
  # An installation that was cut off must be finished first.
  [ -z "$(dpkg --audit 2>/dev/null)" ] || "${as_root[@]}" dpkg --configure -a >"$cache/apt.log" 2>&1 || true
  # Package lists are fetched only where there are none, or where they name files long gone.
  if ! install_packages "${missing[@]}" && ! { update_lists && install_packages "${missing[@]}"; }; then
    grep -avE '^(dl|pm)(status|error):' "$cache/apt.log" | tail -n 15 >&2
    ! grep -qE 'Unable to locate package|no installation candidate' "$cache/apt.log" ||
      die 78 "apt-get does not know a package. Remedy: use Debian 12 with its main archive in /etc/apt/sources.list"
    die 138 "apt-get failed. Remedy: see the lines above (all of them: $cache/apt.log), then try again"
  fi
  say "installed ${#missing[@]} packages and what they depend on"
}
