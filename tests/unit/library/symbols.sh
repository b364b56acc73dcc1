#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libweir.so exports the functions that the public headers declare, and nothing else.
#   symbols.sh LIBWEIR_SO INCLUDE_WEIR
set -eu

exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort)
declared=$(sed -e '/^#pragma GCC visibility push/,/^#pragma GCC visibility pop/!d' "$2"/*.h |
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' |
    grep -oE '\bweir_[a-z0-9_]+\(' | tr -d '(' | sort -u)

if [ "$exported" != "$declared" ]; then
    echo "exported and declared differ:"
    printf '%s\n' "$exported" >"${TMPDIR:-/tmp}/weir-exported.$$"
    printf '%s\n' "$declared" | diff "${TMPDIR:-/tmp}/weir-exported.$$" - || true
    rm -f "${TMPDIR:-/tmp}/weir-exported.$$"
    exit 1
fi
