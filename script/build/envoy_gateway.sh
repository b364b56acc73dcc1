#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Envoy Gateway from the Go proxy, once for each version, and prints where the program is:
# script/build/envoy_gateway.sh
#
# It takes 6 minutes of CPU and 4 GB meanwhile; what is kept is the program, 240 MB, in
# /var/cache/weir-gateway (or WEIR_GATEWAY_CACHE), outside the tree. Ends with 1, and the reason on
# stderr, without Go, its proxy or room. script/test --gateway uses it.
set -euo pipefail

version=v1.9.1
room_kb=$((6 * 1024 * 1024))
cache=${WEIR_GATEWAY_CACHE:-/var/cache/weir-gateway}
made=$cache/$version/envoy-gateway

fail() {
    echo "envoy_gateway: $*" >&2
    exit 1
}

if [ -x "$made" ]; then
    echo "$made"
    exit 0
fi
command -v go >/dev/null || fail "go is not installed"
mkdir -p "$cache" 2>/dev/null || fail "cannot write to $cache"
[ "$(df -Pk "$cache" | awk 'NR == 2 {print $4}')" -gt "$room_kb" ] || fail "less than 6 GB are free in $cache"
build=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$build"' EXIT
mkdir "$build/tmp"
echo "envoy_gateway: building $version, which takes some minutes" >&2
GOBIN=$build/bin GOTMPDIR=$build/tmp GOMODCACHE=$build/mod GOCACHE=$build/cache GOFLAGS="-modcacherw -buildvcs=false" \
    nice go install -trimpath "github.com/envoyproxy/gateway/cmd/envoy-gateway@$version" >"$build/log" 2>&1 ||
    fail "go could not build it: $(grep -v downloading "$build/log" | tail -n 3)"
mkdir -p "$cache/$version"
mv "$build/bin/envoy-gateway" "$made"
echo "$made"
