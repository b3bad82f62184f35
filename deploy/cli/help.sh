# What a command takes, told without installing or building anything. Sourced by ./lockstep.
# shellcheck shell=bash disable=SC2154  # root, bin: set by ./lockstep

# program_of COMMAND: its path below bazel-bin; nothing for a command of the script's own.
program_of() {
  case $1 in
    demo | up | status | stop | token | certificates) echo "deploy/cli/$1" ;;
    predict | evaluate) echo worker/predict ;;
  esac
}

# usage_in SOURCE: the text that the program's --help begins with.
usage_in() {
  sed -nE '/kUsage\[\] =$/,/;$/s/^ *"(.*)";?$/\1/p' "$1" | tr -d '\n' | sed 's/\\n/\n/g; s/\\"/"/g'
}

# show_help COMMAND ARGUMENTS...: false where COMMAND tells it itself. A program that is built knows
# its flags, too.
show_help() {
  local own=$root/deploy/cli/help/$1.txt program
  program=$(program_of "$1")
  if [ -f "$own" ]; then
    cat "$own"
  elif [ -z "$program" ]; then
    return 1
  elif [ -x "$bin/$program" ]; then
    [[ $program != worker/predict ]] || exec "$bin/$program" "$@"
    exec "$bin/$program" "${@:2}"
  else
    usage_in "$root/${program}_main.cc"
    printf '\nThe same command lists the flags once ./lockstep build has built the programs.\n'
  fi
}
