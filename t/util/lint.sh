#!/bin/bash
# All checks that need no test run.  Prints one line per check, and what it
# said when it failed; goes on to the next, and fails at the end.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# lint.sh [CHECK ...]     KUBE_BUILD_DIR has the built modules

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
shopt -s nullglob

build=${KUBE_BUILD_DIR:-build/release}
export KUBE_BUILD_DIR=$build
work=$build/lint
jobs=${JOBS:-2}
python=${PYTHON:-/usr/bin/python3}
go=${GO:-go}

strict=(-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Wconversion -Wshadow -Wvla
        -Wcast-qual -Wdeclaration-after-statement -Werror)
glue=(-std=gnu11 -Wall -Wextra -Wshadow -Wvla -Wdeclaration-after-statement
      -Wno-unused-parameter -Werror)

src=(src/*/*.c)
module=(ngx_module/*.c)
read -ra nginx < <(t/util/nginx-incs.sh "$build/objs")
read -ra includes < <("$python" t/util/layers.py --includes src)


# files NAME ...: those that git has or would take; without git (a tarball),
# all of that name but what was built
files()
{
    local name

    for name in "$@"; do
        if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
            git ls-files -co --exclude-standard -- "$name"
        else
            find . -path ./build -prune -o -type f -path "*${name#\*}" -print
        fi
    done | sort -u | while read -r file; do [ -f "$file" ] && echo "$file"; done
}


check_sources()
{
    "$python" t/util/sources.py --check
}


check_style()
{
    "$python" t/util/style.py
}


check_layers()
{
    "$python" t/util/layers.py
}


check_steps()
{
    "$python" t/util/steps.py
}


# The zone's atomics.
check_orders()
{
    "$python" t/util/orders.py
}


# Planted bugs whose lines are not there any more.
check_mutants()
{
    "$python" t/util/mutants.py --list
}


check_headers()
{
    OBJS=$build/objs t/util/headers.sh
}


check_symbols()
{
    t/util/symbols.sh "$work/symbols"
}


check_conformance()
{
    "$python" t/util/conformance.py && "$python" t/util/faults.py
}


# Circles of files, by the objects of the build.
check_circles()
{
    "$python" t/util/circles.py
}


check_private()
{
    "$python" t/util/private.py
}


check_arithmetic()
{
    "$python" t/util/arithmetic.py
}


check_unused()
{
    "$python" t/util/unused.py
}


check_docs()
{
    "$python" t/util/docs.py
}


# src/ without nginx's headers, the glue with them; gcc at -O2, for it warns
# of more when it has looked closely, and clang.  bench/ is built on demand, and
# must not fall behind what it calls.
check_compile()
{
    local cc file bad=0

    for cc in gcc clang; do
        for file in "${src[@]}"; do
            "$cc" "${strict[@]}" -O2 "${includes[@]}" -Isrc/cli -c "$file" \
                -o /dev/null || bad=1
        done
        for file in "${module[@]}"; do
            "$cc" "${glue[@]}" -O2 "${nginx[@]}" -Ingx_module \
                "${includes[@]}" -c "$file" -o /dev/null || bad=1
        done
    done

    gcc -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -fsyntax-only \
        "${includes[@]}" -Isrc/cli bench/*.c || bad=1

    return $bad
}


# Both levels of the preprocessor's switches; an unknown macro is no finding.
# cppcheck cannot expand a row of KUBE_COUNTER_MAP whose column has commas.
check_cppcheck()
{
    local common=(--quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$jobs"
                  --enable=warning --enable=performance --enable=portability
                  --suppress=missingInclude --suppress=unknownMacro
                  --suppress=missingIncludeSystem --suppress=unmatchedSuppression
                  --suppress=preprocessorErrorDirective:src/zone/kube_zone_counters.h
                  --suppress=normalCheckLevelMaxBranches)

    mkdir -p "$work/cppcheck"
    cppcheck "${common[@]}" --cppcheck-build-dir="$work/cppcheck" \
        "${includes[@]}" -Isrc/cli -Ingx_module src ngx_module
}


check_tidy()
{
    local tidy=(clang-tidy --quiet --config-file=t/util/clang-tidy.yaml) bad=0

    printf '%s\n' "${src[@]}" | xargs -r -P "$jobs" -I {} \
        "${tidy[@]}" {} -- -std=c11 -D_DEFAULT_SOURCE "${includes[@]}" \
        -Isrc/cli 2>"$work/tidy.err" || bad=1
    printf '%s\n' "${module[@]}" | xargs -r -P "$jobs" -I {} \
        "${tidy[@]}" {} -- -std=gnu11 "${nginx[@]}" -Ingx_module \
        "${includes[@]}" 2>>"$work/tidy.err" || bad=1

    [ $bad -eq 0 ] || grep -v 'warnings\? \(generated\|treated\)' "$work/tidy.err"
    return $bad
}


# What programs see of us, and the example: with no header of ours but one.
check_library()
{
    local dir=$work/library warn=(-pedantic -Wall -Wextra -Werror -fsyntax-only)

    mkdir -p "$dir/kube" && cp src/lib/kube.h "$dir/kube" \
        && gcc -std=c99 "${warn[@]}" -I"$dir" src/lib/example/*.c \
        && clang -std=c99 "${warn[@]}" -I"$dir" src/lib/example/*.c \
        && g++ -std=c++98 "${warn[@]}" -include "$dir/kube/kube.h" -x c++ \
            /dev/null \
        && man --warnings -l src/lib/kube.3 2>&1 >/dev/null | (! grep .)
}


check_spelling()
{
    files '*.[ch]' '*.md' '*.py' '*.sh' '*.go' '*.conf' '*.yaml' '*/run' \
        config Makefile | xargs -r -d '\n' codespell -q 3 \
        -L "$(grep -v '^#' t/util/codespell.txt | xargs | tr ' ' ,)"
}


check_shell()
{
    files '*.sh' '.ci/run' | xargs -r -d '\n' shellcheck
}


# E203 and W503 contradict the formatter, E731 and E741 are matters of taste.
check_python()
{
    local list

    list=$(files '*.py')
    [ -n "$list" ] || return 0
    xargs -d '\n' flake8 --isolated --max-line-length=100 \
        --extend-ignore=E203,W503,E731,E741,E402 <<< "$list"
}


check_go()
{
    local list

    [ -f t/cluster/go.mod ] || return 0
    if ! "$go" version >/dev/null 2>&1; then
        echo "SKIPPED: no Go here"
        return 0
    fi
    list=$("$(dirname "$(command -v "$go")")/gofmt" -l t/cluster)
    if [ -n "$list" ]; then
        echo "not in gofmt's form:"
        echo "$list"
        return 1
    fi
    (cd t/cluster && GOFLAGS=-buildvcs=false "$go" vet ./...)
}


check_examples()
{
    t/util/examples.sh "$build"
}


all=(sources style layers steps orders mutants headers symbols circles private arithmetic
     unused docs conformance compile library cppcheck tidy spelling shell python examples go)
failed=()

mkdir -p "$work"
for check in "${@:-${all[@]}}"; do
    if ! declare -F "check_$check" >/dev/null; then
        echo "lint: no check is \"$check\"; there are ${all[*]}" >&2
        exit 2
    fi
    started=$SECONDS
    "check_$check" >"$work/$check.log" 2>&1
    rc=$?
    if [ $rc -eq 0 ]; then
        printf 'lint %-10s ok      %3d s  %s\n' "$check" \
            $((SECONDS - started)) "$(tail -n 1 "$work/$check.log")"
    else
        cat "$work/$check.log"
        printf 'lint %-10s FAILED  %3d s\n' "$check" $((SECONDS - started))
        failed+=("$check")
    fi
done

[ $# -gt 0 ] || "$python" t/util/sizes.py

if [ ${#failed[@]} -gt 0 ]; then
    echo "make lint: FAILED: ${failed[*]}"
    exit 1
fi

echo "make lint: passed"
