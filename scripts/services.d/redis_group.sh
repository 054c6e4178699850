# shellcheck shell=bash
# Groups of Redis servers: a cluster, and a master with replicas that sentinels watch. Each is one process here, which
# runs the others: see redis_group.

# shellcheck disable=SC2034 # read through signal_of
redis_cluster_signal=TERM redis_sentinel_signal=TERM

redis-cluster_url() { addresses "$1" 0; }
redis-sentinel_url() { addresses "$1" 3; }
addresses() { # PORT OFFSET: three of the six, which suffice to find the rest
  local first=$(($1 + $2))
  echo "127.0.0.1:$first,127.0.0.1:$((first + 1)),127.0.0.1:$((first + 2))"
}

redis-cluster_install() { redis_install; }
redis-sentinel_install() { redis_install; }

redis-cluster_init() { redis_init "$1"; }
redis-sentinel_init() { redis_init "$1"; }

redis-cluster_start() { redis_group_start cluster "$@"; }
redis-sentinel_start() { redis_group_start sentinel "$@"; }

# The servers' user may not see this checkout, so it gets the script's text.
redis_group_start() { # KIND DIR PORT
  local port=$3
  until redis_group_fits "$port"; do port=$(random_port); done
  echo "$port" >"$2/port"
  start_process "$2" bash -c "$(<"$checkout/scripts/services.d/redis_group")" redis_group "$1" "$port"
}
redis_group_fits() { # PORT: a cluster's nodes talk on ports that are 10,000 higher
  local at
  for at in $(seq "$1" $(($1 + 5))); do
    ! listening "$at" && ! listening $((at + 10000)) || return 1
  done
}

redis_group_is() { # DIR PORT
  [[ $(redis-cli -h 127.0.0.1 -p "$2" config get dir | tail -n 1) == "$1/data/"* ]]
}
redis-cluster_ready() { # DIR PORT
  local at
  redis_group_is "$@" || return 1
  for at in $(seq "$2" $(($2 + 5))); do
    redis-cli -h 127.0.0.1 -p "$at" cluster info | grep -q '^cluster_state:ok' || return 1
    ! redis-cli -h 127.0.0.1 -p "$at" info replication | grep -q '^master_link_status:down' || return 1
  done
  [ "$(redis-cli -h 127.0.0.1 -p "$2" cluster nodes | grep -c ' connected')" = 6 ]
}
redis-sentinel_ready() { # DIR PORT
  local at state
  redis_group_is "$@" || return 1
  for at in $(seq $(($2 + 3)) $(($2 + 5))); do
    state=$(redis-cli -h 127.0.0.1 -p "$at" --csv sentinel master idem)
    [[ $state == *'"num-slaves","2"'*'"num-other-sentinels","2"'* ]] || return 1
  done
}
