# Writes compile_commands.json, for editors and clang tools. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, cache: set by ./lockstep

write_compile_commands() {
  local status=0
  run_bazel "reading the build" "$cache/aquery.log" aquery 'mnemonic("CppCompile", //...)' --output=text \
    --include_artifacts=false || status=$?
  stop_own_server
  ((status == 0)) || {
    bazel_output "$cache/aquery.log" >&2
    die 70 "bazel aquery failed"
  }
  # An action's command stands between "Command Line: (exec" and a closing ")", a word a line.
  awk -v folder="$root" '
    function flush() {
      if (file in seen) return  # compiled twice, for programs and for shared libraries
      seen[file] = 1
      sub(/ -fno-canonical-system-headers/, "", command)  # unknown to clang
      gsub(/\\/, "\\\\", command); gsub(/"/, "\\\"", command)
      printf "%s{\"directory\":\"%s\",\"file\":\"%s\",\"command\":\"%s\"}", separator, folder, file, command
      separator = ",\n"
    }
    BEGIN { print "[" }
    /^ *Command Line: \(exec / { inside = 1; command = ""; previous = ""; sub(/^ *Command Line: \(exec /, "") }
    inside {
      last = /\)$/
      sub(/^ +/, ""); sub(/ \\$/, ""); if (last) sub(/\)$/, "")
      if (previous == "-c") file = $0
      previous = $0
      command = command (command == "" ? "" : " ") $0
      if (last) { inside = 0; flush() }
    }
    END { print "\n]" }' "$cache/aquery.log" >"$root/compile_commands.json.part"
  mv "$root/compile_commands.json.part" "$root/compile_commands.json"
  echo "$root/compile_commands.json"
}
