# shellcheck shell=bash
# Valkey. Debian has it since its release 13; where the system does not, Debian unstable's is unpacked beside the data and
# run with its own loader and libraries.

# shellcheck disable=SC2034 # read through signal_of
valkey_signal=TERM

valkey_url() { echo "127.0.0.1:$1"; }

# Sets valkey_server, the words to run it with.
valkey_install() {
  valkey_server=(valkey-server)
  need valkey redis-cli redis-tools
  if command -v valkey-server >/dev/null; then return 0; fi
  [ -e "$state/valkey/unstable/root/usr/bin/valkey-server" ] || valkey_unpack
  local root=$state/valkey/unstable/root loader
  loader=$(printf '%s\n' "$root"/usr/lib/*-linux-gnu/ld-linux-*.so.* | head -n 1)
  valkey_server=("$loader" --library-path "${loader%/*}" "$root/usr/bin/valkey-server")
}

valkey_unpack() {
  local dir=$state/valkey
  [ -n "$(debian_mirror)" ] || cannot valkey "there is no valkey-server here, and no Debian mirror in apt's sources to take it from"
  log "valkey: unpacking Debian unstable's packages"
  rm -rf "$dir/unstable" "$dir/unstable.new"
  unpack_unstable "$dir/unstable.new" valkey-server >"$dir/apt.log" 2>&1 || {
    tail -n 5 "$dir/apt.log" >&2
    cannot valkey "its packages cannot be unpacked, see $dir/apt.log"
  }
  mv "$dir/unstable.new" "$dir/unstable"
}

valkey_init() { "${as_user[@]}" mkdir "$1/data.new"; } # DIR

valkey_start() { # DIR PORT
  start_process "$1" "${valkey_server[@]}" --bind 127.0.0.1 --port "$2" --dir "$1/data" --daemonize no \
    --maxclients 1000 --maxmemory-policy noeviction --save '' --appendonly yes --appendfsync always
}

valkey_ready() { redis_ready "$1" "$2"; } # DIR PORT
