# Sourced by ./run, ./test and .ci/run from the repository's root.

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 2; }

# The packages of tools/packages for the given purposes that are not installed.
missing_packages() {
  local wanted
  wanted=$(awk -v purposes=" $* " 'NF == 2 && index(purposes, " " $1 " ") { print $2 }' tools/packages)
  # dpkg-query fails when it does not know a package at all; what it prints is right all the same.
  comm -23 <(sort <<<"$wanted") \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null |
      awk '$2 == "installed" { print $1 }' | sort)
}

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2
}

install_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian system: going on with the compilers and libraries that are here." \
      "tools/packages lists what is needed."
    return
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    die "Some packages are missing. Install them, then run this again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
  fi
  say "Installing Debian packages: $missing"
  # A stale mirror is no reason to stop: the packages may be in the lists already.
  apt update || say "apt-get update failed; trying with the lists that are here."
  # shellcheck disable=SC2086
  apt install -y --no-install-recommends $missing ||
    { sleep 3; apt update; apt install -y --no-install-recommends $missing; } ||
    die "apt-get could not install: $missing"
}

# Configures build/$1 once; later builds reconfigure by themselves when a CMake file has changed.
configure() {
  local preset=$1
  shift
  if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    # Or it would not keep what is compiled with precompiled headers.
    export CCACHE_SLOPPINESS=pch_defines,time_macros
    # Paths below the checkout count as relative ones, so that another checkout of the same sources
    # finds what this one has compiled. The price: debuggers of the second see the first one's folder.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  fi
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" "$@" >&2 || return
}
