#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A library exports the functions that its public headers declare, and nothing else. A folder stands
# for all its headers, without client.h, which is of libweir-client.
#   symbols.sh LIBRARY_SO HEADER_OR_FOLDER...
set -eu

exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort)
shift
declared=$(find "$@" -maxdepth 1 -name '*.h' \( ! -name client.h -o -path "$1" \) -exec cat {} + |
    sed -e '/^#pragma GCC visibility push/,/^#pragma GCC visibility pop/!d' |
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' |
    grep -oE '\bweir_[a-z0-9_]+\(' | tr -d '(' | sort -u)

if [ "$exported" != "$declared" ]; then
    echo "exported and declared differ:"
    printf '%s\n' "$exported" >"${TMPDIR:-/tmp}/weir-exported.$$"
    printf '%s\n' "$declared" | diff "${TMPDIR:-/tmp}/weir-exported.$$" - || true
    rm -f "${TMPDIR:-/tmp}/weir-exported.$$"
    exit 1
fi
