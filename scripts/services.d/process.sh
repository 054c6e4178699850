# shellcheck shell=bash
# Starting a server's process and finding it again. A server has a folder with:
#   pid   the process's number and its start time: a number alone may be another process's by now
#   port  where it listens
#   log   what it printed
#   data  its files

# start_process DIR COMMAND...: in the background, detached from this script and its terminal.
start_process() {
  local dir=$1
  shift
  (
    cd "$dir" || exit
    ulimit -Sn 8192 2>/dev/null || true # connections are open files; the default of 1024 makes MySQL allow fewer
    setsid "${as_user[@]}" "$@" </dev/null >>log 2>&1 9>&- &
    echo "$! $(start_time "$!")" >pid
  )
}

start_time() { # PID: in clock ticks since the machine's start, field 22 of proc(5)'s stat
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra fields <<<"${stat##*) }" # the name before it may hold blanks and brackets; what follows begins with field 3
  echo "${fields[19]}"
}

# alive DIR: the process that start_process started there still runs. Every server's working folder is its own folder
# (or its data's), which a copy of this checkout, pid files and all, does not have.
alive() {
  local pid started
  read -r pid started 2>/dev/null <"$1/pid" || return 1
  [ "$(start_time "$pid")" = "$started" ] && [[ $(readlink "/proc/$pid/cwd") == "$1"* ]]
}

# stop_process DIR SIGNAL: waits for the end, and forces it after 30 s; every server here recovers from that.
stop_process() {
  local dir=$1 pid signal
  for signal in "$2" KILL; do
    alive "$dir" || break
    read -r pid _ <"$dir/pid"
    kill "-$signal" "$pid" 2>/dev/null || true
    wait_until 30 not alive "$dir" || true
  done
  rm -f "$dir/pid"
}

not() { ! "$@"; }

wait_until() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; } # PORT

# Writes DIR/port: the one it had, so that a shell's variables survive a restart, or a random one if that is taken. They
# lie below the range from which systems take the ports of outgoing connections.
choose_port() { # DIR
  local port
  port=$(cat "$1/port" 2>/dev/null) || port=$(random_port)
  while listening "$port"; do port=$(random_port); done
  echo "$port" >"$1/port"
}
random_port() { echo $((10000 + RANDOM % 10000)); }
