#!/bin/sh
# Runs unit test programs and says which failed.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# unit.sh PROGRAM ...

set -u

[ $# -gt 0 ] || { echo "unit: no test program to run" >&2; exit 1; }

ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=1:strict_string_checks=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1:halt_on_error=1}
export ASAN_OPTIONS UBSAN_OPTIONS

failed=
count=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for program; do
    name=${program##*/}
    timeout -k 5 "${UNIT_TIMEOUT:-120}" "$program" >"$log" 2>&1
    rc=$?
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
    if [ "$rc" -eq 0 ] && [ "${passed:-0}" -gt 0 ]; then
        printf 'unit %-32s %s passed\n' "$name" "$passed"
        count=$((count + passed))
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

echo "unit: $count tests passed in $# programs"
