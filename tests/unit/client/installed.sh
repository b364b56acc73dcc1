#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program builds and runs against the installed libweir-client, as docs/client.md says, and
# libweir does not need libcurl.
#   installed.sh BUILD_FOLDER SOURCE_FOLDER
set -eu

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

meson install -C "$1" --no-rebuild --quiet --tags devel,runtime --destdir "$stage"
pc=$(find "$stage" -name weir-client.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$stage"

# Flags are words: these are split on purpose.
# shellcheck disable=SC2046
cc -std=c11 -Wall -Werror $(pkg-config --cflags weir-client) "$2/examples/client/fetch.c" \
    $(pkg-config --libs weir-client) -o "$stage/fetch"
# Nothing listens on port 1.
LD_LIBRARY_PATH="$libdir" "$stage/fetch" http://127.0.0.1:1/ >"$stage/said" && exit 1
grep -qx 'gave up, status 0, 5 tries' "$stage/said"

if readelf -d "$libdir/libweir.so" | grep -q 'NEEDED.*libcurl'; then
    echo "libweir needs libcurl"
    exit 1
fi
