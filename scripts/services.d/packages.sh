# shellcheck shell=bash
# The system's packages: installing them, and unpacking those of Debian's next release without installing them.

# need NAME COMMAND PACKAGE...: installs the packages unless the command is there.
need() {
  local name=$1 command=$2
  shift 2
  ! command -v "$command" >/dev/null || return 0
  command -v apt-get >/dev/null || cannot "$name" "there is no $command, and packages can be installed on Debian and Ubuntu only"
  is_root || cannot "$name" "there is no $command: run \`apt-get install --no-install-recommends $*\` as root"
  log "$name: installing $*"
  install_packages "$@" >"$state/$name/apt.log" 2>&1 || {
    tail -n 5 "$state/$name/apt.log" >&2
    cannot "$name" "apt-get install $* failed, see $state/$name/apt.log"
  }
}

# One at a time on the machine, because of the policy file. The lists may be missing or too old, so a failure is tried
# again with fresh ones.
install_packages() {
  (
    flock 8
    forbid_service_starts
    apt_get install "$@" || { apt_get update && apt_get install "$@"; }
  ) 8>/run/lock/idem-services
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 --no-install-recommends "$@" </dev/null; }

# Installing a server's package starts it as a system service, which nobody asked for. Packages ask this file first;
# 101 means no. For the rest of the subshell only.
forbid_service_starts() {
  local policy=/usr/sbin/policy-rc.d
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  # shellcheck disable=SC2064 # the name is wanted as it is now
  trap "rm -f $policy" EXIT
}

# unpack_unstable DIR PACKAGE...: the packages of Debian unstable and what they depend on, unpacked below DIR/root and
# not installed: the system keeps its own libraries. apt does it with a state of its own, in which nothing is installed,
# and with the system's own mirror and keys.
unpack_unstable() {
  local dir=$1 mirror package
  shift
  mirror=$(debian_mirror)
  rm -rf "$dir"
  mkdir -p "$dir/lists/partial" "$dir/archives/partial"
  touch "$dir/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror unstable main" >"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
Dir::State "$dir";
Dir::State::status "$dir/status";
Dir::Cache "$dir";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Sandbox::User "$(id -un)";
CONF
  APT_CONFIG=$dir/apt.conf apt_get update || return 1
  APT_CONFIG=$dir/apt.conf apt_get install --download-only "$@" || return 1
  for package in "$dir"/archives/*.deb; do
    case ${package##*/} in perl* | libperl*) continue ;; esac # large, and for scripts that nothing here runs
    dpkg-deb --extract "$package" "$dir/root" || return 1
  done
  rm -rf "$dir/archives" "$dir/lists"
}

# Prints the mirror of Debian that the system uses, from either format of apt's sources; nothing where there is none.
debian_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
    awk '/^(deb |URIs:)/ { for (i = 2; i <= NF && !found; i++) if ($i ~ /:.*\/debian(\.list)?\/?$/) found = $i } END { print found }'
}
