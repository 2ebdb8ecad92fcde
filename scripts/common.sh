# Shared by the scripts of this folder, which source it from the checkout's root.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# install_missing PACKAGE…: installs those of Debian's packages that are missing. The
# package lists are fetched only if the present ones do not suffice.
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

# debian_mirror: the mirror that this machine installs from.
debian_mirror() {
  local mirror
  mirror=$(awk '/^URIs:.*debian/{print $2; exit} /^deb .*debian/{for (i = 2; i <= NF; i++) if ($i ~ "://") {print $i; exit}}' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1) || true
  echo "${mirror:-http://deb.debian.org/debian}"
}

# bare_debian ROOT: unpacks a bare Debian 12 into a folder. Its archive is made once, in
# ${XDG_CACHE_HOME:-~/.cache}/ccagent/fresh.
bare_debian() {
  local suite=bookworm root=$1 cache=${XDG_CACHE_HOME:-$HOME/.cache}/ccagent/fresh
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  if [ ! -e "$cache/$suite.tar" ]; then
    install_if_allowed debootstrap
    say "making a bare Debian $suite"
    debootstrap --variant=minbase --make-tarball="$cache/packages.tgz" "$suite" "$cache/tmp" "$(debian_mirror)" >"$cache/log" 2>&1 </dev/null &&
      debootstrap --variant=minbase --unpack-tarball="$cache/packages.tgz" "$suite" "$root" "$(debian_mirror)" >"$cache/log" 2>&1 </dev/null ||
      { tail -n 5 "$cache/log" >&2; die "debootstrap failed: see $cache/log"; }
    tar -C "$root" -cf "$cache/$suite.tmp" .
    mv "$cache/$suite.tmp" "$cache/$suite.tar"
    rm -rf "$cache/packages.tgz" "$cache/tmp"
  else
    tar -C "$root" -xf "$cache/$suite.tar"
  fi
  flock -u 9
  chmod 755 "$root" # as / is anywhere
  # Copies this machine's network configuration: resolver, proxies, certificates.
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  # A mirror may be older than its own dates allow.
  printf 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n' >"$root/etc/apt/apt.conf.d/90dates"
  mkdir -p "$root/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null
}

# find_go: puts a Go that can build this module first in PATH, and fetches one if there is
# none. sudo's secure_path usually hides the place where Go's own installer puts it.
find_go() {
  local dir home want
  home=$(user_home)
  want=$(sed -n 's/^go //p' go.mod)
  for dir in "" /usr/local/go/bin "$home/go/bin" "$home/.local/go/bin" "$home"/sdk/go*/bin /usr/lib/go-*/bin /snap/bin; do
    if [ -z "$dir" ]; then
      builds_this && return
    elif [ -x "$dir/go" ]; then
      PATH=$dir:$PATH
      builds_this && return
      PATH=${PATH#"$dir:"}
    fi
  done
  if [ "$(id -u)" = 0 ] && [ -z "${CCAGENT_NO_INSTALL:-}" ] && command -v apt-get >/dev/null; then
    # ca-certificates: the module proxy is asked over TLS.
    install_missing ca-certificates golang-go
    builds_this && return
    bootstrap_go "$want"
    builds_this && return
  fi
  die "no Go found that builds this module: install Go $want or newer from https://go.dev/dl into /usr/local/go, or put it in PATH
$(as_user go list -m 2>&1 </dev/null | tail -n 1)"
}

# builds_this: whether the go in PATH can build this module. A Go of 1.21 or newer fetches
# the one that go.mod asks for by itself.
builds_this() { command -v go >/dev/null && as_user go list -m >/dev/null 2>&1 </dev/null; }

# bootstrap_go VERSION: lets an older Go (Debian 12's is 1.19) fetch a newer toolchain,
# which is a module, and puts it first in PATH. The zip's SHA-256 is pinned here.
bootstrap_go() {
  local arch sum module cache zip empty
  arch=$(dpkg --print-architecture)
  case $1-$arch in
  1.26.0-amd64) sum=38461905b98c59173672814302e222ab43b652274bc0c95817b08b71ab66b705 ;;
  1.26.0-arm64) sum=4c3f961bc257ff52e7a425166f9f75015f645dff071d01a81823455ffe646609 ;;
  *) return 0 ;;
  esac
  module=golang.org/toolchain version=v0.0.1-go$1.linux-$arch
  cache=$(as_user go env GOMODCACHE)
  zip=$cache/cache/download/$module/@v/$version.zip
  say "fetching Go $1"
  # In an empty folder: Go 1.19 does not understand this module's go.mod.
  empty=$(as_user mktemp -d)
  (cd "$empty" && as_user env GOFLAGS= go mod download "$module@$version" </dev/null >&2) ||
    die "cannot fetch Go $1 with $(go version): see above"
  rmdir "$empty"
  printf '%s  %s\n' "$sum" "$zip" | sha256sum --quiet -c - >&2 || {
    rm -f "$zip"
    die "the Go $1 that was fetched is not the one expected: its SHA-256 differs"
  }
  # Before 1.21 the go command does not set the run bits of a toolchain's programs.
  chmod +x "$cache/$module@$version"/bin/* "$cache/$module@$version"/pkg/tool/*/* 2>/dev/null || true
  PATH=$cache/$module@$version/bin:$PATH
  export GOTOOLCHAIN=local
}

# find_ghc: adds an installed GHC to PATH if sudo's secure_path hides it; status 1 if there
# is none.
find_ghc() {
  local dir home
  command -v ghc >/dev/null && return
  home=$(user_home)
  for dir in "$home/.ghcup/bin" "$home/.cabal/bin" "$home/.local/bin" "$home/.nix-profile/bin" /opt/ghc/bin /opt/ghc/*/bin /usr/local/bin; do
    [ -x "$dir/ghc" ] && { PATH=$PATH:$dir; return; }
  done
  return 1
}

# The user for whom this runs: under sudo its caller, unless the checkout belongs to another
# user; then it is root.
if [ -n "${SUDO_UID:-}" ] && [ "$(stat -c %u .)" != "$SUDO_UID" ]; then
  unset SUDO_UID SUDO_GID SUDO_USER SUDO_COMMAND
fi
user_home() { getent passwd "${SUDO_UID:-$(id -u)}" | cut -d: -f6; }

# as_user COMMAND…: runs a command as that user, so that its results belong to them and it
# uses their module cache.
as_user() {
  if [ "$(id -u)" = 0 ] && [ "${SUDO_UID:-0}" != 0 ]; then
    # shellcheck disable=SC2153 # sudo sets them
    setpriv --reuid "$SUDO_UID" --regid "$SUDO_GID" --init-groups \
      env -u SUDO_UID -u SUDO_GID -u SUDO_USER -u SUDO_COMMAND HOME="$(user_home)" USER="$SUDO_USER" LOGNAME="$SUDO_USER" PATH="$PATH" "$@"
  else
    "$@"
  fi
}

# If git cannot give the revision (no git, or another user's checkout), build without it.
vcs_flag() {
  as_user git rev-parse HEAD >/dev/null 2>&1 && echo -buildvcs=auto || echo -buildvcs=false
}

install_if_allowed() {
  [ -n "${CCAGENT_NO_INSTALL:-}" ] || install_missing "$@"
}
