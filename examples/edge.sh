#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the example: the first request passes with its header fields, the second is denied.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%s\n' 'version: 1' 'server: { headers: [draft] }' 'limits:' \
    '  - { name: login, match: { path: /login }, key: [client.ip], rate: 1/day,' \
    '      algorithm: token_bucket, refund_on: [5xx], refund_cap: 100% }' >"$folder/rules.yaml"

"$1" "$folder/rules.yaml" 192.0.2.1 /login /login | tr -d '\r' >"$folder/said"
for line in 200 'RateLimit: "login";r=0;t=86400' 429 'Cache-Control: no-store' \
    'Content-Type: application/problem+json'; do
    grep -qxF "$line" "$folder/said" || { echo "no line '$line':"; cat "$folder/said"; exit 1; }
done
