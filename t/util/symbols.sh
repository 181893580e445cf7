#!/bin/bash
# What the objects of src/ ask of the world, and what they keep to themselves:
# an allow-list of undefined symbols, no mutable data, no foreign names.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# symbols.sh DIR      compiles into DIR

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

dir=$1
bad=0

# No PIC: with it, constant tables of pointers look like data to nm.
# No fortification or protector: they bring names that no source has.

flags=(-std=c11 -D_DEFAULT_SOURCE -O2 -DNDEBUG -w -fno-pic -fno-pie
       -fno-stack-protector -U_FORTIFY_SOURCE)

# as in make, it may be two words: "ccache gcc"
read -r -a cc <<<"${CC:-cc}"
read -ra includes < <(t/util/layers.py --includes src)

mkdir -p "$dir"
for source in src/*/*.c; do
    layer=${source#src/}
    layer=${layer%%/*}
    [ "$layer" = cli ] && continue
    mkdir -p "$dir/$layer"
    "${cc[@]}" "${flags[@]}" "${includes[@]}" -c "$source" \
        -o "$dir/$layer/$(basename "$source" .c).o" || bad=1
done

# The lock of a file is the writer's guard; see docs/architecture.md.
pure='kube_.*|mem(cpy|move|set|cmp|chr|mem)|str(len|nlen|cmp|ncmp|chr|rchr|str|spn|cspn|pbrk|casecmp|ncasecmp)|bcmp|v?snprintf|__errno_location|__assert_fail|_GLOBAL_OFFSET_TABLE_'
json='cJSON_.*'
guard='fcntl|memfd_create'

# cJSON's hooks take no context, so the arena of the parse under way has to be
# kept somewhere: thread-local, and NULL outside the call.
mutable='json_memory'

allowed()
{
    case $1 in
        api)    echo "$pure|$json" ;;
        zone)   echo "$pure|$guard" ;;
        *)      echo "$pure" ;;
    esac
}

count=0
for object in "$dir"/*/*.o; do
    [ -f "$object" ] || continue
    layer=$(basename "$(dirname "$object")")
    source=src/$layer/$(basename "$object" .o).c
    [ -f "$source" ] || { rm -f "$object"; continue; }
    count=$((count + 1))

    if [ "$layer" != client ] && [ "$layer" != lib ]; then
        found=$(nm -u "$object" | awk '{ print $2 }' \
                | grep -vxE "$(allowed "$layer")" | xargs)
        if [ -n "$found" ]; then
            echo "$source: may not call $found"
            bad=1
        fi
    fi

    found=$(nm "$object" | awk '$2 ~ /^[bBdDC]$/ { print $3 }' \
            | grep -vxE "$mutable" | xargs)
    if [ -n "$found" ]; then
        echo "$source: mutable data: $found"
        bad=1
    fi

    found=$(nm -g --defined-only "$object" | awk '{ print $3 }' \
            | grep -v '^kube_' | xargs)
    if [ -n "$found" ]; then
        echo "$source: not named kube_*: $found"
        bad=1
    fi
done

[ $bad -eq 0 ] && echo "symbols: $count objects clean"
exit $bad
