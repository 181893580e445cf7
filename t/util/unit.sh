#!/bin/sh
# Runs unit test programs, several at a time, and says which failed.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# unit.sh PROGRAM ...
#
# JOBS: how many at a time.  UNIT_TIMEOUT: seconds for one, and no bar: the
# machine may be busy.  UNIT_RUN: words before each program, as "qemu-aarch64".
#
# A test that could not be run here says why, and is named.  One that says
# nothing as it is skipped is a long form, which KUBE_PROOF=1 runs.

set -u

[ $# -gt 0 ] || { echo "unit: no test program to run" >&2; exit 1; }

ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=1:strict_string_checks=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1:halt_on_error=1}
UNIT_RUN=${UNIT_RUN-}
export ASAN_OPTIONS UBSAN_OPTIONS UNIT_RUN

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I{} sh -c '
    log=$1/$(basename "$2")
    timeout -k 5 "${UNIT_TIMEOUT:-600}" $UNIT_RUN "$2" >"$log" 2>&1
    echo $? >"$log.rc"
' unit "$logs" {}

failed=
count=0
skipped=0

for program; do
    name=${program##*/}
    log=$logs/$name
    rc=$(cat "$log.rc")
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
    if [ "$rc" -eq 0 ] && [ "${passed:-0}" -gt 0 ]; then
        printf 'unit %-32s %s passed\n' "$name" "$passed"
        count=$((count + passed))
        awk '/^\[  SKIPPED \] test_/ && why { print $4 ": " why }
             { why = /^\[/ ? "" : $0 }' "$log" >"$log.skipped"
        sed "s/^/unit $name SKIPPED: /" "$log.skipped"
        skipped=$((skipped + $(wc -l <"$log.skipped")))
    else
        [ "$rc" -eq 124 ] && echo "$name: timed out" >>"$log"
        [ "$rc" -eq 0 ] && echo "$name: ran no test" >>"$log"
        cat "$log"
        printf 'unit %-32s FAILED, exit code %s\n' "$name" "$rc"
        failed="$failed $name"
    fi
done

if [ -n "$failed" ]; then
    echo "unit: FAILED:$failed"
    exit 1
fi

[ $skipped -eq 0 ] || echo "unit: $skipped tests SKIPPED"
echo "unit: $count tests passed in $# programs"
