#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A room for Envoy Gateway, whose ports and paths are fixed: room.sh FOLDER COMMAND..., as root, by
# unshare --net --mount. It has a network of its own, in which the names of Envoy Gateway and of its rate limit
# service are this machine, and a root of its own, in FOLDER, which has /certs and all else of this machine's.
set -euo pipefail

root=$1/root
shift
mkdir "$root"
ip link set lo up
mount -t tmpfs none "$root"
for each in /*; do
    if [ -L "$each" ]; then
        cp -a "$each" "$root$each"
    elif [ -d "$each" ]; then
        mkdir "$root$each"
        mount --rbind "$each" "$root$each"
    fi
done
mkdir "$root/certs"
echo '127.0.0.1 localhost envoy-gateway envoy-ratelimit.envoy-gateway-system.svc.cluster.local' >"$root/certs/hosts"
mount --bind "$root/certs/hosts" "$root/etc/hosts"
exec chroot "$root" "$@"
