#!/bin/sh
# Installs the Debian packages that a make target needs, where missing, and
# puts promtool into build/tools: its package would bring a server along (Debian
# 12), or is one of its own.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# deps.sh build|unit|arm|test|model|e2e|demo|lint|fuzz|bare ...
#
# SKIP_DEPS=1 does nothing at all.  What is there is not upgraded, and apt is
# not even started when nothing is missing.

set -eu

[ "${SKIP_DEPS:-0}" = 1 ] && exit 0

build="gcc make libc6-dev util-linux nginx nginx-dev libcurl4-openssl-dev
    libcjson-dev libyaml-dev python3"
unit="libcmocka-dev openssl ca-certificates"
arm="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
test="libnginx-mod-stream libnginx-mod-http-upstream-fair python3-pytest
    python3-pytest-timeout python3-pytest-xdist python3-hypothesis
    python3-trustme python3-cryptography python3-h11
    python3-prometheus-client python3-psutil python3-yaml python3-venv
    chromium curl procps valgrind binutils g++ man-db pkg-config"
e2e="iproute2 nftables iptables python3-requests"
fuzz="clang libclang-rt-dev llvm"
lint="cppcheck clang clang-tidy clang-tidy-19 codespell shellcheck pmccabe
    flake8 libnginx-mod-stream binutils g++ git man-db"

wanted=
tools=
for group; do
    case $group in
        build)  wanted="$wanted $build" ;;
        unit)   wanted="$wanted $build $unit" ;;
        arm)    wanted="$wanted $build $unit $arm" ;;
        demo)   wanted="$wanted $build python3-h11 libnginx-mod-stream" ;;
        test)   wanted="$wanted $build $unit $test" tools=1 ;;
        model)  wanted="$wanted cargo" ;;
        fuzz)   wanted="$wanted $build $fuzz" ;;
        bare)   wanted="$wanted debootstrap" ;;
        e2e)    wanted="$wanted $build $unit $test $e2e" tools=1 ;;
        lint)   wanted="$wanted $build $unit $lint" ;;
        *)      echo "deps.sh: unknown group \"$group\"" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "deps.sh: not a Debian system; these are needed, by Debian's names:"
    echo "$wanted" | xargs -n 1 | sort -u | xargs
    exit 0
fi

missing()
{
    for package in $(echo "$wanted" | xargs -n 1 | sort -u); do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) \
            || state=
        [ "$state" = installed ] || echo "$package"
    done
}

has_promtool()
{
    command -v promtool >/dev/null 2>&1 || [ -x build/tools/promtool ]
}

packages=$(missing | xargs)
if [ -z "$packages" ] && { [ -z "$tools" ] || has_promtool; }; then
    exit 0
fi

root=
if [ "$(id -u)" != 0 ] && [ -n "$packages" ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "deps.sh: as root, run: apt-get install $packages" >&2
        exit 1
    fi
    root=sudo
fi

# Debian starts a freshly installed nginx on port 80; nobody asked for that.
# The policy holds for as long as this process lives, whatever happens to it.

policy=/usr/sbin/policy-rc.d
ours=
log=$(mktemp)
trap 'rm -f "$log"; [ -z "$ours" ] || $root rm -f $policy' EXIT
trap 'exit 1' HUP INT TERM
case " $packages " in
    *" nginx "* | *" nginx-dev "* | *" libnginx-mod-stream "*)
        if [ ! -e $policy ]; then
            ours=1
            printf '%s\n' '#!/bin/sh' \
                "[ \"\$1\" = nginx ] && [ -d /proc/$$ ] && exit 101" \
                'exit 0' | $root tee $policy >/dev/null
            $root chmod 755 $policy
        fi ;;
esac

apt()
{
    $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=600 "$@" </dev/null
}

# twice: the package lists may be old, or not there at all
attempt()
{
    "$@" >"$log" 2>&1 || { apt update && "$@"; } >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        echo "deps.sh: apt-get failed; SKIP_DEPS=1 goes on without" >&2
        exit 1
    }
}

get_promtool()
{
    package=prometheus
    apt-cache show promtool >/dev/null 2>&1 && package=promtool
    rm -rf build/tools/unpacked
    mkdir -p build/tools/unpacked
    (cd build/tools/unpacked && apt-get -q download $package) \
        && dpkg-deb -x build/tools/unpacked/*.deb build/tools/unpacked \
        && mv build/tools/unpacked/usr/bin/promtool build/tools/ \
        && rm -rf build/tools/unpacked
}

if [ -n "$packages" ]; then
    echo "deps.sh: installing $packages"
    # shellcheck disable=SC2086
    attempt apt install --no-install-recommends $packages
fi

if [ -n "$tools" ] && ! has_promtool; then
    echo "deps.sh: unpacking promtool into build/tools"
    attempt get_promtool
fi
