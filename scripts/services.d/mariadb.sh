# shellcheck shell=bash
# MariaDB, from the system's packages.

# shellcheck disable=SC2034 # read through signal_of
mariadb_signal=TERM

mariadb_url() { mysql_family_url "$1"; }

mariadb_install() {
  PATH=$PATH:/usr/sbin
  need mariadb mariadbd mariadb-server-core
  need mariadb mariadb mariadb-client-core
}

mariadb_init() { # DIR
  mysql_family_prepare "$1"
  "${as_user[@]}" mariadb-install-db --no-defaults --datadir="$1/data.new" --tmpdir="$1/tmp" --skip-test-db
}

mariadb_start() { # DIR PORT
  local options
  mapfile -t options < <(mysql_family_options "$1" "$2")
  start_process "$1" mariadbd --no-defaults "${options[@]}"
}

mariadb_ready() { mysql_family_ready "$1" "$2" mariadb --no-defaults; } # DIR PORT
