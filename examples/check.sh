#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the example: two requests pass, the third is denied, and a bad file is explained.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%s\n' 'version: 1' 'limits:' \
    '  - { name: login, match: { path: /login }, key: [client.ip], rate: 2/day,' \
    '      algorithm: token_bucket }' >"$folder/rules.yaml"

said=$("$1" "$folder/rules.yaml" 3 method=POST path=/login client.ip=192.0.2.1)
expected='allowed, 1 remaining
allowed, 0 remaining
denied by login'
[ "$said" = "$expected" ] || { printf 'said:\n%s\n' "$said"; exit 1; }

echo 'version: 2' >"$folder/rules.yaml"
if said=$("$1" "$folder/rules.yaml" 1 2>&1); then
    echo "a bad file was accepted"
    exit 1
fi
case $said in
*rules.yaml:1:*) ;;
*) printf 'said:\n%s\n' "$said"; exit 1 ;;
esac
