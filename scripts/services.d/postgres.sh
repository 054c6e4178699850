# shellcheck shell=bash
# PostgreSQL: the newest version that the system has.

# shellcheck disable=SC2034 # read through signal_of
postgres_signal=INT # ends the sessions; TERM would wait for them

postgres_url() { echo "postgres://idem:idem@127.0.0.1:$1/idem?sslmode=disable"; }

# Debian keeps the programs of each version out of PATH.
postgres_path() {
  local bin
  bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  PATH=$bin:$PATH
}

postgres_install() {
  postgres_path
  need postgres postgres postgresql
  postgres_path
}

postgres_init() { # DIR
  local data=$1/data.new
  echo idem >"$1/password"
  "${as_user[@]}" initdb --pgdata="$data" --username=idem --auth=scram-sha-256 --pwfile="$1/password" --no-locale --encoding=UTF8
  # Everything about durability stays at its default, which is safe; the tests rely on it.
  cat >>"$data/postgresql.conf" <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 400
max_prepared_transactions = 20
CONF
}

postgres_start() { # DIR PORT
  postgres_forget_pid "$1/data/postmaster.pid"
  start_process "$1" postgres -D "$1/data" -p "$2"
}

# PostgreSQL refuses to start while the process in its pid file runs. After a kill and a restart of the machine that
# number may be anybody's.
postgres_forget_pid() {
  local pid
  read -r pid 2>/dev/null <"$1" || return 0
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = postgres ] || rm -f "$1"
}

postgres_ready() { # DIR PORT
  [ "$(postgres_query "$2" postgres 'show data_directory')" = "$1/data" ] || return 1
  [ -n "$(postgres_query "$2" postgres "select 1 from pg_database where datname = 'idem'")" ] ||
    postgres_query "$2" postgres 'create database idem'
}

postgres_query() { # PORT DATABASE STATEMENT
  PGPASSWORD=idem psql --no-psqlrc --quiet --tuples-only --no-align --host=127.0.0.1 --port="$1" --username=idem --dbname="$2" --command="$3"
}
