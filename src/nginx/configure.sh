#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes nginx's generated headers, with the flags of Debian's nginx: configure.sh SOURCE FOLDER
set -eu

mkdir -p "$2"
folder=$(cd "$2" && pwd)
log=$folder/configure.log
cd "$1"
# shellcheck disable=SC2016 # the other shell expands it
if ! bash -c '. ./conf_flags && ./configure "${NGX_CONF_FLAGS[@]}" --builddir="$1"' sh "$folder" \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
fi
