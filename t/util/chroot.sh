#!/bin/bash
# "make test" and the README's first use on a bare Debian: a minimal system in
# a directory, a clone of what is committed here, and nothing else installed.
# It is no sandbox: the network, the users and the kernel are the machine's.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# chroot.sh DIR SUITE...
#
# Needs root and debootstrap.  The Debian mirrors are those of the machine's own
# sources; the bare system is kept in DIR/SUITE.tar, each run unpacks it anew
# into DIR/SUITE, and the log is DIR/SUITE.log.  STEPS names some of the steps
# "build demo install test" (default: all), in this order: "demo" runs on the
# python3 that "build" brings, "install" on the packages of "demo", too.

set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
steps=${STEPS:-build demo install test}
failed=0

if [ $# = 0 ]; then
    echo "usage: make bare DEBIAN=\"bookworm trixie\"" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "make bare needs root and debootstrap" >&2
    exit 1
fi

# "site release" of each Debian source that has "main"
# shellcheck disable=SC2016
sources=$(apt-get indextargets --format '$(SITE) $(RELEASE)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u)
here=$(echo "$sources" | awk '$2 !~ /-/ { print $2; exit }')
mirror=$(echo "$sources" | awk '$2 !~ /-/ { print $1; exit }')
if [ -z "$mirror" ]; then
    echo "make bare: no Debian mirror among this machine's sources" >&2
    exit 1
fi


# base SUITE: the bare system, made once
base()
{
    [ -f "$dir/$1.tar" ] && return
    rm -rf "${dir:?}/$1"
    debootstrap --variant=minbase "$1" "$dir/$1" "$mirror" >"$dir/$1.log" 2>&1 \
        && tar -C "$dir/$1" -cf "$dir/$1.tar.new" . \
        && mv "$dir/$1.tar.new" "$dir/$1.tar" \
        && rm -rf "${dir:?}/$1"
}


# unpack SUITE: the bare system, this machine's sources, a clone
unpack()
{
    local to=$dir/$1

    rm -rf "$to"
    mkdir -p "$to"
    tar -C "$to" -xf "$dir/$1.tar" || return 1
    echo "$sources" | awk -v here="$here" -v there="$1" \
        '{ sub("^" here, there, $2); print "deb", $1, $2, "main" }' \
        >"$to/etc/apt/sources.list"
    # nothing here is to outlive a power cut
    echo force-unsafe-io >"$to/etc/dpkg/dpkg.cfg.d/unsafe-io"
    cp -L /etc/resolv.conf /etc/hosts "$to/etc/"
    git clone -q --no-local "$root" "$to/root/nginx-kube-informer"
}


# within SUITE COMMAND...: with mounts and processes that end with the command
within()
{
    local to=$dir/$1

    shift
    # expanded by the inner shell
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c '
        to=$1; shift
        mount --make-rprivate / \
            && mount -t proc proc "$to/proc" \
            && mount --rbind /dev "$to/dev" \
            && mount -t tmpfs tmpfs "$to/dev/shm" \
            && exec chroot "$to" env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                sh -c "cd /root/nginx-kube-informer && $*"
    ' sh "$to" "$@" </dev/null
}


for suite; do
    echo "$suite: a bare system in $dir/$suite"
    if ! base "$suite" || ! unpack "$suite"; then
        echo "$suite: no bare system, see $dir/$suite.log"
        failed=1
        continue
    fi

    for step in make $steps; do
        case $step in
            make)    run='apt-get -q update && apt-get -q -y install make' ;;
            build)   run='make build' ;;
            demo)    run="python3 t/util/firstuse.py demo" ;;
            install) run='make install && python3 t/util/firstuse.py install' ;;
            *)       run="make $step" ;;
        esac
        echo "== $suite: $run" >>"$dir/$suite.log"
        started=$SECONDS
        if within "$suite" "$run" >>"$dir/$suite.log" 2>&1; then
            echo "$suite: $step passed, $((SECONDS - started)) s"
        else
            tail -n 20 "$dir/$suite.log"
            echo "$suite: $step FAILED, see $dir/$suite.log"
            failed=1
            break
        fi
    done
done

exit $failed
