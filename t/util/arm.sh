#!/bin/bash
# The unit tests, and the targets of t/fuzz over their seeds, on aarch64: built
# by Debian's cross compiler, run by qemu-user, with the address and undefined
# sanitizers.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# arm.sh DIR              T, JOBS: as make has them; ALLOW_SKIP=1: without the
#                         tools nothing fails
#
# The libraries of the other architecture are unpacked into DIR/sysroot, never
# installed: the system's packages, lists and architectures stay as they are.

set -euo pipefail
cd "$(dirname "$0")/../.."

mkdir -p "$1"
dir=$(cd "$1" && pwd)
apt=$dir/apt
sysroot=$dir/sysroot

# libc6 comes with them; its headers are the cross compiler's
libraries=(libcmocka-dev libcjson-dev libyaml-dev libcurl4-openssl-dev libasan8
           libubsan1)


skip()
{
    echo
    echo "***** SKIPPED make arm: $1 *****"
    echo
    [ "${ALLOW_SKIP-}" = 1 ] && exit 0
    exit 1
}


unpack()
{
    local options deb

    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"

    # expanded by apt-get, not here
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u | sed 's/^/deb /' \
        >"$apt/sources.list" || return 1

    options=(-q -y -o "Dir::Etc::sourcelist=$apt/sources.list"
             -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$apt/lists"
             -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt"
             -o APT::Architecture=arm64 -o APT::Architectures=arm64
             -o APT::Sandbox::User=root -o Debug::NoLocking=1)

    apt-get "${options[@]}" update || return 1
    apt-get "${options[@]}" --no-install-recommends --download-only install \
        "${libraries[@]}" || return 1

    rm -rf "$sysroot.new"
    mkdir -p "$sysroot.new"
    for deb in "$apt"/archives/*.deb; do
        dpkg-deb -x "$deb" "$sysroot.new" || return 1
    done
    mv "$sysroot.new" "$sysroot"
    rm -rf "$apt/archives"
}


for tool in aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg-deb; do
    command -v $tool >/dev/null || skip "there is no $tool"
done

if [ ! -d "$sysroot" ]; then
    echo "arm: unpacking libraries of arm64 into $1/sysroot"
    unpack >"$dir/apt.log" 2>&1 || {
        tail -n 20 "$dir/apt.log" >&2
        skip "no libraries of arm64 were to be had"
    }
fi

# What qemu-user cannot: ptrace, by which leaks are found.  A fork of so large a
# process takes long here.

export UNIT_TIMEOUT=${UNIT_TIMEOUT:-3600}
export ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1
export UNIT_RUN="qemu-aarch64 -L $sysroot"

make --no-print-directory -j"${JOBS:-2}" JOBS="${JOBS:-2}" T="${T:-*}" \
    BUILD=asan OUT="$1/asan" AR=aarch64-linux-gnu-ar \
    CC="aarch64-linux-gnu-gcc --sysroot=$sysroot" unit-run
