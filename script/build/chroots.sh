# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Bare Debian systems for tests, as root: sourced by script/package-test, script/container-test and
# script/debian-test, which set `release` and `base`, the path that the systems' names follow: $base-NAME. A script calls
# finish when it exits: it ends a weir that still runs, and removes the systems.

# shellcheck disable=SC2016 # apt expands it
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    grep -m 1 '/debian/*$' || true)}
mirror=${mirror:-http://deb.debian.org/debian}

step() { printf '== %s (%s s)\n' "$*" "$SECONDS"; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# What was mounted last goes first. A chroot is removed only when nothing is mounted below it: what is mounted is another system's.
unmount() {
    local points
    points=$(awk -v base="$base" 'index($2, base) == 1 { print $2 }' /proc/mounts | tac)
    for point in $points; do umount "$point"; done
    if grep -qF " $base" /proc/mounts; then
        echo "$0: something is still mounted under $base; it stays" >&2
        return 1
    fi
}
remove() { unmount && rm -rf --one-file-system "$base"-*; }

# make_system NAME: a minimal Debian, with this machine's settings of apt's proxy.
make_system() {
    local root=$base-$1
    debootstrap --variant=minbase "$release" "$root" "$mirror" >"$base-$1.log" 2>&1 || {
        tail -n 20 "$base-$1.log" >&2
        return 1
    }
    apt-config dump | grep -i '^Acquire::.*Proxy' >"$root/etc/apt/apt.conf.d/90proxy" || true
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # it need not outlive a loss of power
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing starts by itself
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mount -t proc proc "$root/proc"
}

# inside SYSTEM COMMAND...: in that system. inside_run takes the place of this shell, so that a job's
# number is the command's own.
inside() { (inside_run "$@"); }
inside_run() {
    local system=$1
    shift
    exec chroot "$base-$system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# install_in SYSTEM PACKAGE...
install_in() {
    local system=$1
    shift
    inside "$system" apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 \
        -o Dpkg::Options::=--force-confold "$@" >>"$base-$system.log" 2>&1 || {
        tail -n 30 "$base-$system.log" >&2
        return 1
    }
}

# The weir that was started, by its process id; its log is $base.weir.log.
server=
finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    remove
}

# start_weir HEALTHY COMMAND...: starts COMMAND, and waits until HEALTHY succeeds.
start_weir() {
    local healthy=$1
    shift
    "$@" >"$base.weir.log" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        if ("$healthy") >/dev/null 2>&1; then return; fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$base.weir.log" >&2
    fail "weir does not become healthy"
}
stop_weir() {
    kill "$server"
    wait "$server" || fail "weir ended with $?"
    server=
}

# A port that is free: the systems share this machine's network.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# logins PORT STATUS...: asks weir for a login for each STATUS, which must be the answer.
logins() {
    local port=$1 wanted got
    shift
    for wanted; do
        got=$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/v1/check" \
            --json '{"method": "POST", "path": "/login", "ip": "192.0.2.1"}')
        [ "$got" = "$wanted" ] || fail "a login is answered $got, not $wanted"
    done
}
