#!/bin/bash
# Fetches and unpacks the sources of this Debian's nginx, for NGINX_SRC: the
# original release that Debian's package is made from, without its patches.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-src.sh DIR
#
# The system's lists and sources.list stay as they are: the deb-src lines are
# made from its own deb lines, and their lists are kept in DIR.apt.

set -euo pipefail

if [ -f "$1/src/core/nginx.h" ]; then
    echo "$1 is there"
    exit 0
fi

mkdir -p "$1.apt/lists/partial"
apt=$(cd "$1.apt" && pwd)

# expanded by apt-get, not here
# shellcheck disable=SC2016
apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' | sort -u | sed 's/^/deb-src /' > "$apt/sources.list"

options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list"
         -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$apt/lists"
         -o APT::Sandbox::User=root)

version=$(dpkg-query -W -f '${Version}' nginx-dev)
(
    cd "$apt"
    apt-get "${options[@]}" update >update.log 2>&1
    apt-get "${options[@]}" source --tar-only "nginx=$version" \
        >source.log 2>&1
) || { tail -q -n 20 "$apt"/*.log >&2; exit 1; }

rm -rf "$1"
mkdir -p "$1"
tar -C "$1" --strip-components=1 -xf "$apt"/nginx_*.orig.tar.gz
echo "nginx ${version%-*} is in $1"
