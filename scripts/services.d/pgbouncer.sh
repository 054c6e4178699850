# shellcheck shell=bash
# PgBouncer in transaction mode in front of this checkout's PostgreSQL. It forgets prepared statements between
# transactions, as its versions before 1.21 always do.

# shellcheck disable=SC2034 # read through signal_of
pgbouncer_signal=INT

pgbouncer_url() { echo "postgres://idem:idem@127.0.0.1:$1/idem?sslmode=disable"; }

pgbouncer_install() {
  PATH=$PATH:/usr/sbin
  need pgbouncer pgbouncer pgbouncer
  need pgbouncer psql postgresql-client
}

pgbouncer_init() { "${as_user[@]}" mkdir "$1/data.new"; } # DIR

pgbouncer_start() { # DIR PORT
  local version server
  wait_until 120 pgbouncer_server >/dev/null || cannot pgbouncer "there is no PostgreSQL to stand in front of: scripts/services up postgres"
  server=$(pgbouncer_server)
  version=$(pgbouncer --version | sed -n 's/^PgBouncer 1\.\([0-9]*\).*/\1/p')
  echo '"idem" "idem"' >"$1/users"
  cat >"$1/pgbouncer.ini" <<CONF
[databases]
idem = host=${server%:*} port=${server##*:} user=idem password=idem
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $2
unix_socket_dir =
auth_type = plain
auth_file = $1/users
admin_users = idem
pool_mode = transaction
max_client_conn = 400
ignore_startup_parameters = extra_float_digits
CONF
  [ "${version:-0}" -lt 21 ] || echo 'max_prepared_statements = 0' >>"$1/pgbouncer.ini"
  start_process "$1" pgbouncer "$1/pgbouncer.ini"
}

# Prints host:port of PostgreSQL, once that is known.
pgbouncer_server() {
  local url
  url=$(given_url postgres)
  [ -n "$url" ] || url=$(postgres_url "$(cat "$state/postgres/port" 2>/dev/null)")
  url=${url#*@}
  url=${url%%/*}
  [[ $url == *:?* ]] && echo "$url"
}

pgbouncer_ready() { # DIR PORT
  postgres_query "$2" pgbouncer 'show config' | grep -q "|$1/pgbouncer.ini|" && [ "$(postgres_query "$2" idem 'select 1')" = 1 ]
}
