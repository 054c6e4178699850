# shellcheck shell=bash
# Redis, which keeps what it acknowledged: each write is in the append-only file, on the disk, before its answer leaves.

# shellcheck disable=SC2034 # read through signal_of
redis_signal=TERM

redis_url() { echo "127.0.0.1:$1"; }

redis_install() {
  need redis redis-server redis-server
  need redis redis-cli redis-tools
}

redis_init() { "${as_user[@]}" mkdir "$1/data.new"; } # DIR

redis_start() { # DIR PORT
  start_process "$1" redis-server --bind 127.0.0.1 --port "$2" --dir "$1/data" --daemonize no \
    --maxclients 1000 --maxmemory-policy noeviction --save '' --appendonly yes --appendfsync always
}

redis_ready() { # DIR PORT
  [ "$(redis-cli -h 127.0.0.1 -p "$2" config get dir | tail -n 1)" = "$1/data" ]
}
