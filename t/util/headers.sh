#!/bin/bash
# Compiles each header of src/ alone, seeing only what its layer may see, and
# where nginx's configure has run (OBJS) those of ngx_module/ too.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

count=0
failed=0

# alone HEADER FLAGS...
alone()
{
    local header=$1

    shift
    count=$((count + 1))

    # twice: the second time its guard must hold

    if ! printf '#include "%s"\n#include "%s"\n' "$PWD/$header" \
            "$PWD/$header" | "${cc[@]}" -x c -fsyntax-only "$@" -
    then
        echo "headers: $header does not compile alone"
        failed=$((failed + 1))
    fi
}

# as in make, it may be two words: "ccache gcc"
read -r -a cc <<<"${CC:-cc}"

strict=(-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Wconversion -Wshadow -Wvla
        -Wcast-qual -Werror)

for folder in src/*/; do
    layer=$(basename "$folder")
    read -ra includes < <(t/util/layers.py --includes "$layer")
    for header in src/"$layer"/*.h; do
        [ -f "$header" ] && alone "$header" "${strict[@]}" "${includes[@]}"
    done
done

if [ -n "${OBJS-}" ]; then
    read -ra includes < <(t/util/layers.py --includes src)
    read -ra nginx < <(t/util/nginx-incs.sh "$OBJS")
    for header in ngx_module/*.h; do
        [ -f "$header" ] && alone "$header" -std=gnu11 -Wall -Wextra -Werror \
            -Wno-unused-parameter "${nginx[@]}" -Ingx_module "${includes[@]}"
    done
fi

[ $failed -eq 0 ] && echo "headers: $count compile alone"
[ $failed -eq 0 ]
