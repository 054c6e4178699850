# shellcheck shell=bash
# RabbitMQ, from the system's packages: see rabbitmq for how it runs.

# shellcheck disable=SC2034 # read through signal_of
rabbitmq_signal=TERM

rabbitmq_url() { echo "amqp://idem:idem@127.0.0.1:$1/"; }

rabbitmq_install() {
  PATH=$PATH:/usr/sbin
  need rabbitmq rabbitmq-server rabbitmq-server
}

rabbitmq_init() { "${as_user[@]}" mkdir "$1/data.new"; } # DIR

# The servers' user may not see this checkout, so it gets the script's text. The node uses the two ports after its own.
rabbitmq_start() { # DIR PORT
  local port=$2
  while listening $((port + 1)) || listening $((port + 2)) || listening "$port"; do port=$(random_port); done
  echo "$port" >"$1/port"
  start_process "$1" bash -c "$(<"$checkout/scripts/services.d/rabbitmq")" rabbitmq "$port"
}

rabbitmq_ready() { # DIR PORT
  listening "$2" && grep -q "started TCP listener on 127.0.0.1:$2" "$1/data/log" && grep -q 'Server startup complete' "$1/data/log"
}
