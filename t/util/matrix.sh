#!/bin/bash
# Builds the modules against several nginx source trees and runs the tests with
# nginx and the stand-in API server, all of them, against each.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# matrix.sh OUT TREE...
#
# A TREE is a directory that holds nginx's, Angie's or OpenResty's nginx
# sources: "make nginx-src" makes Debian's, "git archive" one of a tag of
# github.com/nginx/nginx, webserver-llc/angie or freenginx.  Nothing is fetched
# here.  What is built of each, and its log, is in a directory of its own, named
# for its version.  TESTS names fewer test files.

set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
shift

if [ $# = 0 ]; then
    echo "usage: make matrix NGINX_TREES=\"dir ...\" (see CONTRIBUTING.md)" >&2
    exit 1
fi

read -ra tests <<< "${TESTS-$(cd "$root" && echo t/test_*.py)}"
failed=0
declare -A taken


# version_of TREE: angie-1.10.1, nginx-1.29.3, ...
version_of()
{
    local header

    for header in "$1"/src/core/{angie,nginx}.h \
                  "$1"/bundle/nginx-*/src/core/nginx.h
    do
        sed -n 's/^#define \(ANGIE\|NGINX\)_VERSION *"\(.*\)"/\1-\2/p' \
            "$header" 2>/dev/null | head -n 1 | tr '[:upper:]' '[:lower:]' | grep . && return
    done

    basename "$1"
}


for tree; do
    name=$(version_of "$tree")
    taken[$name]=$((${taken[$name]:-0} + 1))
    [ "${taken[$name]}" = 1 ] || name=$name.${taken[$name]}

    dir=$out/$name
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    log=$dir/matrix.log
    echo "$name: from $(cd "$tree" && pwd)"

    if ! make --no-print-directory -C "$root" modules OUT="$dir" \
         NGINX_SRC="$(cd "$tree" && pwd)" NGINX_BINARY=1 >"$log" 2>&1
    then
        echo "$name: does not build, see $log"
        failed=1
        continue
    fi

    (cd "$root" && make --no-print-directory cli OUT="$dir") >>"$log" 2>&1

    if (cd "$root" && KUBE_BUILD_DIR=$dir KUBE_NGINX=$dir/nginx \
        "${PYTHON:-/usr/bin/python3}" -m pytest -q -p no:cacheprovider \
        "${tests[@]}") >>"$log" 2>&1
    then
        echo "$name: $(tail -n 1 "$log")"
    else
        grep -E '^(FAILED|ERROR) ' "$log" | sed "s/^/$name: /"
        echo "$name: $(tail -n 1 "$log"), see $log"
        failed=1
    fi
done

exit $failed
