#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program builds and runs against the installed library, as a user's would: headers, libweir.so,
# libweir.a and the pkg-config file, found under a staging folder.
#   installed.sh BUILD_FOLDER SOURCE_FOLDER
set -eu

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

meson install -C "$1" --no-rebuild --quiet --tags devel,runtime --destdir "$stage"
pc=$(find "$stage" -name weir.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$stage"

cat >"$stage/rules.yaml" <<'RULES'
version: 1
limits:
  - { name: login, match: { path: /login }, key: [client.ip], rate: 2/day, algorithm: token_bucket }
RULES
cat >"$stage/expected" <<'EXPECTED'
allowed, 1 remaining
allowed, 0 remaining
denied by login
EXPECTED

run()
{
    "$@" "$stage/rules.yaml" 3 method=POST path=/login client.ip=192.0.2.1 >"$stage/said"
    diff "$stage/expected" "$stage/said"
}

# Flags are words: these are split on purpose.
cflags=$(pkg-config --cflags weir)
libs=$(pkg-config --libs weir)

# shellcheck disable=SC2086
cc -std=c11 -Wall -Werror $cflags "$2/examples/check.c" $libs -o "$stage/check"
run env LD_LIBRARY_PATH="$libdir" "$stage/check"

# shellcheck disable=SC2086
cc -std=c11 -Wall -Werror -D_DEFAULT_SOURCE $cflags "$2/examples/edge.c" $libs -o "$stage/edge"
env LD_LIBRARY_PATH="$libdir" "$stage/edge" "$stage/rules.yaml" 192.0.2.1 /login >"$stage/said"
[ "$(head -n 1 "$stage/said")" = 200 ] || { cat "$stage/said"; exit 1; }

# Statically: the archive itself, and what it needs from elsewhere without the staging prefix.
needs=$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-l weir | sed 's/-lweir\b//')
# shellcheck disable=SC2086
cc -std=c11 -Wall -Werror $cflags "$2/examples/check.c" "$libdir/libweir.a" $needs \
    -o "$stage/check-static"
run "$stage/check-static"

# Each header stands alone.
for header in weir embed limit error; do
    printf '#include <weir/%s.h>\nint main(void) { return weir_error_text(0) == 0; }\n' "$header" \
        >"$stage/alone.c"
    # shellcheck disable=SC2086
    cc -std=c11 -pedantic -Wall -Werror $cflags -c "$stage/alone.c" -o "$stage/alone.o"
done
