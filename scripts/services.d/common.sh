# shellcheck shell=bash
# What every other file here uses: messages, names, the folder of the servers, and the user they run as.

readonly service_user=idem-services

log() { printf 'services: %s\n' "$*" >&2; }
die() {
  log "$*"
  exit 1
}

# The environment variable in which the tests look for a server, and its value.
variable_of() {
  local name=${1^^}
  echo "IDEM_TEST_${name//-/_}"
}
given_url() { # NAME
  local variable
  variable=$(variable_of "$1")
  echo "${!variable:-}"
}

# cannot NAME REASON: ends this server's start with what to do instead.
cannot() {
  die "$1 cannot be started: $2. Or set $(variable_of "$1") to a server of yours, such as $("$1_url" PORT)"
}

is_root() { [ "$(id -u)" = 0 ]; }

# PostgreSQL and MySQL refuse to run as root, so root runs them as a user of their own.
as_user=()
choose_user() {
  is_root || return 0
  id "$service_user" >/dev/null 2>&1 ||
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$service_user" 2>/dev/null ||
    id "$service_user" >/dev/null # another checkout was faster
  as_user=(setpriv "--reuid=$service_user" "--regid=$service_user" --clear-groups --no-new-privs)
}
give() { # PATH...: to the user of the servers
  ! is_root || chown "$service_user:" "$@"
}

# Sets $state, the folder of the servers: .services/, or a temporary folder that belongs to this checkout alone where the
# servers' user cannot get there (a checkout below /root) or the path has a blank (MariaDB's set-up fails on it). The file
# .services/location remembers it, because TMPDIR may be another one the next time.
choose_state() {
  local location=$checkout/.services/location
  mkdir -p "$checkout/.services"
  choose_user
  project=idem-services-$(printf %s "$checkout" | cksum | cut -d' ' -f1)
  state=$checkout/.services
  if [[ $state != *[[:blank:]]* ]] && "${as_user[@]}" test -x "$state"; then return 0; fi
  state=${TMPDIR:-/tmp}/$project
  # A copied checkout brings the location of the one it was copied from: that one has another name.
  if [ -e "$location" ] && [[ $(<"$location") == */$project ]]; then state=$(<"$location"); fi
  mkdir -p "$state"
  if [ ! -O "$state" ] || [ -L "$state" ]; then die "$state belongs to somebody else; set TMPDIR to another folder"; fi
  state=$(cd "$state" && pwd -P) # as the system names a process's folder, see alive
  "${as_user[@]}" test -x "$state" || die "the user $service_user cannot read $state; set TMPDIR to a folder that it can read"
  echo "$state" >"$location"
}
