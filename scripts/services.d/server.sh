# shellcheck shell=bash
# The life of one server that runs from the system's packages. A server NAME is a set of functions:
#   NAME_url PORT         what its variable is set to
#   NAME_install          makes its programs available, or ends with `cannot`
#   NAME_init DIR         makes DIR/data.new, the files of a fresh server
#   NAME_start DIR PORT   calls start_process
#   NAME_ready DIR PORT   true once the server on PORT answers and is the one with DIR/data, not somebody else's
#   NAME_signal           a variable (with _ for -): what ends it cleanly

server_up() { # NAME
  local name=$1 dir=$state/$1 began=$SECONDS
  mkdir -p "$dir"
  give "$dir"
  "${name}_install"
  if alive "$dir"; then
    await_ready "$name" && log "$name is up already" && return 0
    cannot "$name" "it runs but does not answer, see $dir/log; scripts/services down $name stops it"
  fi
  init_server "$name"
  # A port may be taken between the choice and the start, and a killed server's children may take a moment to end.
  for _ in 1 2 3; do
    choose_port "$dir"
    "${name}_start" "$dir" "$(<"$dir/port")"
    if await_ready "$name"; then
      log "$name is up on port $(<"$dir/port") after $((SECONDS - began)) s"
      return 0
    fi
    alive "$dir" && break
    sleep 1
  done
  tail -n 5 "$dir/log" >&2
  stop_process "$dir" "$(signal_of "$name")"
  cannot "$name" "it ended or did not answer, see $dir/log; scripts/services wipe $name starts afresh"
}

# Data appears under its final name only when it is complete, so that an interrupted first start is simply repeated.
init_server() { # NAME
  local dir=$state/$1
  [ ! -e "$dir/data" ] || return 0
  rm -rf "$dir/data.new"
  "${1}_init" "$dir" >"$dir/init.log" 2>&1 || {
    tail -n 5 "$dir/init.log" >&2
    cannot "$1" "its data cannot be made, see $dir/init.log"
  }
  mv "$dir/data.new" "$dir/data"
}

await_ready() { # NAME: answers within a minute
  local dir=$state/$1
  wait_until 60 ready_or_gone "$1" "$dir" && alive "$dir"
}
ready_or_gone() { ! alive "$2" || "${1}_ready" "$2" "$(<"$2/port")" >/dev/null 2>&1; }

server_down() { # NAME
  local dir=$state/$1
  [ -e "$dir/pid" ] || return 0
  stop_process "$dir" "$(signal_of "$1")"
  log "$1 is down"
}

signal_of() {
  local variable=${1//-/_}_signal
  echo "${!variable}"
}
