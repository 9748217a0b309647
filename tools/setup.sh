#!/usr/bin/env bash
# tools/setup.sh run|test|fuzz: the Debian packages that a purpose needs. Installs what is missing as root, else
# with sudo after showing the list, else prints the one line to run and ends with 1. Nothing missing: a few milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."

build="g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libfmt-dev libedit-dev libxxhash-dev libsimdjson-dev libutf8proc-dev libcurl4-openssl-dev libssl-dev prometheus-cpp-dev"
# Any Boost from 1.74 on serves, and Debian's versions replace each other: an installed one is left alone.
boost_version=$(sed -n 's/^#define BOOST_VERSION \([0-9]*\).*/\1/p' /usr/include/boost/version.hpp 2>/dev/null || true)
if [ "${boost_version:-0}" -lt 107400 ]; then
  if grep -qs bookworm /etc/os-release; then build+=" libboost1.81-dev"; else build+=" libboost-dev"; fi
fi
run="$build python3 python3-pip ca-certificates" # couplet pull runs pip, and checks certificates
case "${1:-}" in
  run) packages=$run ;;
  test) packages="$run libgtest-dev librapidcheck-dev clang-19" ;;
  fuzz) packages="$build clang-19 libclang-rt-19-dev" ;;
  *) echo "usage: tools/setup.sh run|test|fuzz" >&2; exit 2 ;;
esac

say() { echo "setup: $*" >&2; }

new_enough_cargo() { # the chat templates' Rust needs 1.87 (cmake/rust_front.cmake looks in the same places)
  local cargo
  for cargo in "$(command -v cargo || true)" "$HOME/.cargo/bin/cargo" /usr/bin/cargo; do
    if [ -x "$cargo" ] && printf '%s\n' 1.87 "$("$cargo" --version 2>/dev/null | cut -d' ' -f2)" | sort -CV; then
      return 0
    fi
  done
  return 1
}

if ! command -v dpkg-query >/dev/null; then
  for tool in g++ cmake ninja python3; do
    command -v "$tool" >/dev/null && continue
    say "no Debian here, and no $tool: install what these packages are called on your system: $packages"
    exit 1
  done
  exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package};' $packages 2>/dev/null || true)
missing=""
for package in $packages; do
  [[ ";$installed" == *";installed $package;"* ]] || missing+=" $package"
done
cargo=""
if [ ! -e .setup/no-cargo ] && ! new_enough_cargo; then
  if dpkg-query -W -f '${db:Status-Status}' cargo rustup 2>/dev/null | grep -q '^installed'; then
    say "cargo is older than 1.87: building without chat templates (apt-get install cargo-web would replace it)"
  else
    cargo=cargo-web
  fi
fi
[ -n "$missing$cargo" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    say "installing with sudo (Ctrl-C to stop):$missing $cargo"
    as_root=sudo
  else
    say "no root and no sudo here; as root, run: apt-get install --no-install-recommends$missing $cargo"
    exit 1
  fi
fi

apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >&2; }
mkdir -p .setup
apt update || say "apt-get update failed: going on with the lists that are here"
[ -z "$missing" ] || apt install -y --no-install-recommends $missing
[ -z "$cargo" ] || apt install -y --no-install-recommends "$cargo" || true
if [ -n "$cargo" ] && ! new_enough_cargo; then
  say "no cargo of at least 1.87 to be had: building without chat templates (rm .setup/no-cargo to try again)"
  touch .setup/no-cargo
fi
touch .setup/changed # build folders configured before this look again
