#!/bin/bash
# Builds the modules against several nginx source trees and runs the tests with
# nginx and the stand-in API server, all of them, against each.  A warning is a
# failure.  At the end there is a table of what passed, failed and was skipped,
# and why.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# matrix.sh OUT TREE...
#
# A TREE is a directory that holds the sources of nginx or of what is made from
# it (CONTRIBUTING.md tells where they come from).  Nothing is fetched here.
# What is built of each, and its log, is in a directory of its own, named for
# its version.  TESTS names fewer test files; NGINX_STATIC=1 links the modules
# in.

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
names=()
declare -A taken


# version_of TREE: nginx-1.30.4, angie-1.12.1, tengine-3.2.0, openresty-1.31.3
version_of()
{
    cat "$1"/src/core/{angie,nginx}.h "$1"/bundle/nginx-*/src/core/nginx.h \
        2>/dev/null | awk -F'"' -v name=nginx '
            /^#define (ANGIE|TENGINE)_VERSION/  { made = $2
                                                  split($1, w, /[ _]/)
                                                  name = tolower(w[2]) }
            /^#define NGINX_VERSION/            { version = $2 }
            /^#define NGINX_NAME/               { name = $2 }
            /^#define NGINX_VER +"/ && !made    { split($2, w, "/")
                                                  name = w[1] }
            END                                 { print name "-" (made ? made : version) }'
}


# build TREE DIR: the modules, that nginx, the command and libkube
build()
{
    make --no-print-directory -C "$root" modules OUT="$2" NGINX_SRC="$1" \
        NGINX_BINARY=1 NGINX_STATIC="${NGINX_STATIC:-0}" \
        && make --no-print-directory -C "$root" cli lib OUT="$2"
}


# row NAME LOG: a row of the table; what failed and what was skipped below it
row()
{
    awk -v tree="$1" '
        / in [0-9.]+s/ && /(passed|failed|error)/ {
            for (i = 2; i <= NF; i++) {
                sub(/s?,$/, "", $i)
                count[$i] = $(i - 1)
            }
        }
        /^(FAILED|ERROR) /  { bad[++bads] = $2 }
        /^SKIPPED \[/ {
            n = substr($2, 2) + 0
            sub(/:[0-9]+:/, ":", $3)
            place = $3
            $1 = $2 = $3 = ""
            sub(/^ +/, "")
            skipped[place " " $0] += n
        }
        END {
            printf "%-24s %8d %8d %8d\n", tree, count["passed"],
                count["failed"] + count["error"], count["skipped"]
            for (i = 1; i <= bads; i++)
                print "    failed: " bad[i]
            for (why in skipped)
                print "    skipped " skipped[why] ": " why
        }' "$2"
}


for tree; do
    name=$(version_of "$tree")${NGINX_STATIC:+-static}
    taken[$name]=$((${taken[$name]:-0} + 1))
    [ "${taken[$name]}" = 1 ] || name=$name.${taken[$name]}

    mkdir -p "$out/$name"
    dir=$(cd "$out/$name" && pwd)
    echo "$name: from $(cd "$tree" && pwd)"

    if build "$(cd "$tree" && pwd)" "$dir" >"$dir/build.log" 2>&1; then
        names+=("$name")
    else
        echo "$name: does not build, see $dir/build.log"
        failed=1
    fi
done

for name in "${names[@]}"; do
    dir=$(cd "$out/$name" && pwd)

    if (cd "$root" && KUBE_BUILD_DIR=$dir KUBE_NGINX=$dir/nginx \
        "${PYTHON:-/usr/bin/python3}" -m pytest -q -rfEs -p no:cacheprovider \
        -n "${PYTEST_PROCESSES:-4}" --dist loadfile "${tests[@]}") >"$dir/matrix.log" 2>&1
    then
        echo "$name: $(tail -n 1 "$dir/matrix.log")"
    else
        echo "$name: $(tail -n 1 "$dir/matrix.log"), see $dir/matrix.log"
        failed=1
    fi
done

echo
printf '%-24s %8s %8s %8s\n' tree passed failed skipped
for name in "${names[@]}"; do
    row "$name" "$out/$name/matrix.log"
done

exit $failed
