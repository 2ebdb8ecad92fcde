# Shared by the scripts of this folder, which source it from the checkout's root.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# install_missing PACKAGE…: installs those of Debian's packages that are not there.
# The package lists are only fetched when the ones at hand do not do.
install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this is not Debian or Ubuntu: install by other means what these packages hold: $*; then run this again with CCAGENT_NO_INSTALL=1"
  fi
  local missing=() p
  for p; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die "these packages are missing: ${missing[*]}; run it as root: sudo $0"
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  apt_install "${missing[@]}" >"$log" 2>&1 || {
    say "fetching package lists"
    if ! { apt-get -qq update && apt_install "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
      tail -n 15 "$log" >&2
      rm -f "$log"
      die "cannot install ${missing[*]}: see above. Without a network, install them from elsewhere and run this again"
    fi
  }
  rm -f "$log"
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null
}

# find_go: puts a Go that can build this module first in PATH. sudo's secure_path
# usually hides where Go's own installer puts it.
find_go() {
  local dir home want
  home=$(user_home)
  for dir in "" /usr/local/go/bin "$home/go/bin" "$home/.local/go/bin" "$home"/sdk/go*/bin /usr/lib/go-*/bin /snap/bin; do
    [ -z "$dir" ] && { command -v go >/dev/null && break; continue; }
    [ -x "$dir/go" ] && { PATH=$dir:$PATH; break; }
  done
  want=$(sed -n 's/^go //p' go.mod)
  command -v go >/dev/null ||
    die "no Go found: install Go $want or newer from https://go.dev/dl into /usr/local/go, or put it in PATH"
  # A Go of 1.21 or newer fetches the one that go.mod asks for.
  local out
  out=$(as_user go list -m 2>&1 </dev/null) ||
    die "$(command -v go) cannot build this module, which needs Go $want or newer: $(printf '%s' "$out" | tail -n 1)
install Go $want or newer from https://go.dev/dl into /usr/local/go"
}

# The user on whose behalf this runs: under sudo the one who called it, unless the
# checkout is somebody else's; then it is root, all the way.
if [ -n "${SUDO_UID:-}" ] && [ "$(stat -c %u .)" != "$SUDO_UID" ]; then
  unset SUDO_UID SUDO_GID SUDO_USER SUDO_COMMAND
fi
user_home() { getent passwd "${SUDO_UID:-$(id -u)}" | cut -d: -f6; }

# as_user COMMAND…: runs it as that user, so that what is built is theirs and comes
# from their module cache.
as_user() {
  if [ "$(id -u)" = 0 ] && [ "${SUDO_UID:-0}" != 0 ]; then
    # shellcheck disable=SC2153 # sudo sets them
    setpriv --reuid "$SUDO_UID" --regid "$SUDO_GID" --init-groups \
      env -u SUDO_UID -u SUDO_GID -u SUDO_USER -u SUDO_COMMAND HOME="$(user_home)" USER="$SUDO_USER" LOGNAME="$SUDO_USER" PATH="$PATH" "$@"
  else
    "$@"
  fi
}

# Where git refuses to tell (no git, another owner's checkout), build without.
vcs_flag() {
  as_user git rev-parse HEAD >/dev/null 2>&1 && echo -buildvcs=auto || echo -buildvcs=false
}

install_unless_told_not() {
  [ -n "${CCAGENT_NO_INSTALL:-}" ] || install_missing "$@"
}
