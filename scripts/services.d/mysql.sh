# shellcheck shell=bash
# MySQL 8.4 or newer, Oracle's. No release of Debian has it but unstable, and Ubuntu's may be older: then Debian
# unstable's is unpacked beside the data and run with its own loader and libraries.

# shellcheck disable=SC2034 # read through signal_of
mysql_signal=TERM

mysql_url() { mysql_family_url "$1"; }

# Sets mysql_server and mysql_client, the words to run either with.
mysql_install() {
  PATH=$PATH:/usr/sbin
  mysql_server=(mysqld) mysql_client=(mysql)
  if mysql_recent_enough; then return 0; fi
  [ -x "$state/mysql/unstable/root/usr/sbin/mysqld" ] || mysql_unpack
  mysql_use_unpacked "$state/mysql/unstable/root/usr"
}

# MariaDB installs programs of the same names.
mysql_recent_enough() {
  local version
  version=$(mysqld --version 2>/dev/null) && [[ $version != *MariaDB* ]] || return 1
  [[ $version =~ Ver\ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 100 + BASH_REMATCH[2] >= 804))
}

mysql_unpack() {
  local dir=$state/mysql
  [ -n "$(debian_mirror)" ] || cannot mysql "there is no MySQL 8.4 or newer here, and no Debian mirror in apt's sources to take it from. Install it, or start Docker"
  log "mysql: unpacking Debian unstable's packages"
  rm -rf "$dir/unstable" "$dir/unstable.new"
  unpack_unstable "$dir/unstable.new" mysql-server-core mysql-client-core >"$dir/apt.log" 2>&1 || {
    tail -n 5 "$dir/apt.log" >&2
    cannot mysql "its packages cannot be unpacked, see $dir/apt.log"
  }
  mv "$dir/unstable.new" "$dir/unstable"
}

mysql_use_unpacked() { # the unpacked usr folder
  local usr=$1 loader
  loader=$(printf '%s\n' "$usr"/lib/*-linux-gnu/ld-linux-*.so.* | head -n 1)
  mysql_server=("$loader" --library-path "${loader%/*}" "$usr/sbin/mysqld" "--no-defaults" "--basedir=$usr"
    "--lc-messages-dir=$usr/share/mysql" "--character-sets-dir=$usr/share/mysql/charsets" "--plugin-dir=$usr/lib/mysql/plugin")
  mysql_client=("$loader" --library-path "${loader%/*}" "$usr/bin/mysql")
}

mysql_init() { # DIR
  mysql_family_prepare "$1"
  "${as_user[@]}" "${mysql_server[@]}" --initialize-insecure --datadir="$1/data.new" --tmpdir="$1/tmp"
}

mysql_start() { # DIR PORT
  local options
  mapfile -t options < <(mysql_family_options "$1" "$2")
  start_process "$1" "${mysql_server[@]}" --mysqlx=OFF --secure-file-priv=NULL "${options[@]}"
}

# Without TLS the client may ask the server for the key that it hides the password with.
mysql_ready() { mysql_family_ready "$1" "$2" "${mysql_client[@]}" --no-defaults --get-server-public-key; } # DIR PORT
