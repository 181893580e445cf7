#!/bin/bash
# Builds the modules against several nginx source trees and runs the tests that
# depend on nginx's insides against each.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# matrix.sh OUT TREE...
#
# A TREE is a directory that holds nginx's, Angie's or OpenResty's nginx
# sources; nothing is fetched.  TESTS names other test files.

set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
shift

if [ $# = 0 ]; then
    echo "usage: make matrix NGINX_TREES=\"dir ...\"" >&2
    exit 1
fi

read -ra tests <<< "${TESTS-t/test_http.py t/test_lifetime.py}"
failed=0

for tree; do
    name=$(basename "$tree")
    dir=$out/$name
    log=$dir.log
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)

    if ! make --no-print-directory -C "$root" modules OUT="$dir" \
         NGINX_SRC="$(cd "$tree" && pwd)" NGINX_BINARY=1 >"$log" 2>&1
    then
        echo "$name: does not build, see $log"
        failed=1
        continue
    fi

    if (cd "$root" && KUBE_BUILD_DIR=$dir KUBE_NGINX=$dir/nginx \
        "${PYTHON:-/usr/bin/python3}" -m pytest -q "${tests[@]}") \
        >>"$log" 2>&1
    then
        echo "$name: $(tail -n 1 "$log")"
    else
        echo "$name: $(tail -n 1 "$log"), see $log"
        failed=1
    fi
done

exit $failed
