# How the build compiles each source, for editors and clang tools. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

# read_commands TARGETS [BAZEL OPTIONS]: a line for each translation unit: file, tab, command.
read_commands() {
  local targets=$1 status=0
  shift
  run_bazel "reading the build" "$cache/aquery.log" aquery "mnemonic('CppCompile', $targets)" --output=text \
    --include_artifacts=false "$@" || status=$?
  stop_own_server
  ((status == 0)) || {
    bazel_output "$cache/aquery.log" >&2
    die 70 "bazel aquery failed"
  }
  # An action's command stands between "Command Line: (exec" and a closing ")", a word a line.
  awk '
    function flush() {
      if (file in seen) return  # compiled twice, for programs and for shared libraries
      seen[file] = 1
      sub(/ -fno-canonical-system-headers/, "", command)  # unknown to clang
      print file "\t" command
    }
    /^ *Command Line: \(exec / { inside = 1; command = ""; previous = ""; sub(/^ *Command Line: \(exec /, "") }
    inside {
      last = /\)$/
      sub(/^ +/, ""); sub(/ \\$/, ""); if (last) sub(/\)$/, "")
      if (previous == "-c") file = $0
      previous = $0
      command = command (command == "" ? "" : " ") $0
      if (last) { inside = 0; flush() }
    }' "$cache/aquery.log"
  unlock_builds
}

# Writes compile_commands.json.
write_compile_commands() {
  read_commands //... >"$cache/commands.tsv"
  awk -F'\t' -v folder="$root" '
    BEGIN { print "[" }
    {
      gsub(/\\/, "\\\\", $2); gsub(/"/, "\\\"", $2)
      printf "%s{\"directory\":\"%s\",\"file\":\"%s\",\"command\":\"%s\"}", separator, folder, $1, $2
      separator = ",\n"
    }
    END { print "\n]" }' "$cache/commands.tsv" >"$root/compile_commands.json.part"
  mv "$root/compile_commands.json.part" "$root/compile_commands.json"
  echo "$root/compile_commands.json"
}
