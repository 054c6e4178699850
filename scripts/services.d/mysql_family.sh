# shellcheck shell=bash
# What MySQL and MariaDB share.

mysql_family_url() { echo "idem:idem@tcp(127.0.0.1:$1)/idem?parseTime=true"; }

# Prints the options of either server, one a line. Durability stays at its default, except that it is said where the
# tests rely on it. No socket file: its path would be too long for the system in a deep checkout.
mysql_family_options() { # DIR PORT
  printf '%s\n' \
    "--datadir=$1/data" "--tmpdir=$1/tmp" "--pid-file=$1/server.pid" "--init-file=$1/init.sql" \
    "--bind-address=127.0.0.1" "--port=$2" "--socket=" "--skip-name-resolve" \
    "--max-connections=400" "--innodb-flush-log-at-trx-commit=1" "--sync-binlog=1"
}

mysql_family_prepare() { # DIR
  mkdir -p "$1/tmp"
  cp "$checkout/scripts/services.d/mysql_family.sql" "$1/init.sql" # the checkout may be out of the server's reach
  give "$1/tmp" "$1/init.sql"
}

# mysql_family_ready DIR PORT CLIENT...: the words before the options that both clients have in common.
mysql_family_ready() {
  local dir=$1 port=$2
  shift 2
  [ "$("$@" --protocol=tcp --host=127.0.0.1 --port="$port" --user=idem --password=idem \
    --skip-column-names --execute='select @@datadir' idem)" = "$dir/data/" ]
}
