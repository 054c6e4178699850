# shellcheck shell=bash
# The same servers as containers, by compose.yaml. A server that runs so has a file `compose` in its folder.

compose() {
  docker compose --project-name "$project" --file "$checkout/compose.yaml" "$@"
}

compose_answers() { # an engine runs, and knows `compose`
  command -v docker >/dev/null && docker compose version >/dev/null 2>&1 && timeout 10 docker info >/dev/null 2>&1
}

# NAMES that compose.yaml has, and those that it has not.
composed() {
  local name
  for name in "$@"; do ! grep -q "^  $name:$" "$checkout/compose.yaml" || echo "$name"; done
}
not_composed() {
  local name
  for name in "$@"; do grep -q "^  $name:$" "$checkout/compose.yaml" || echo "$name"; done
}

compose_has() { [ -e "$state/$1/compose" ]; } # NAME

# compose_up NAME...: compose.yaml reads the ports from the environment.
compose_up() {
  local name variable
  for name in "$@"; do
    ! alive "$state/$name" || return 1 # started from the packages, before there was an engine
  done
  for name in "$@"; do
    mkdir -p "$state/$name"
    compose_has "$name" || choose_port "$state/$name"
    variable=IDEM_COMPOSE_${name^^}_PORT
    export "$variable=$(<"$state/$name/port")"
  done
  compose up --detach --wait "$@" >&2 || return 1
  for name in "$@"; do touch "$state/$name/compose"; done
}

compose_down() { # NAME; a container's data goes with it
  compose rm --stop --force --volumes "$1" >&2
  rm -f "$state/$1/compose"
}

compose_status() { # NAME
  if [ -n "$(compose ps --quiet --status running "$1")" ]; then echo up; else echo down; fi
}
