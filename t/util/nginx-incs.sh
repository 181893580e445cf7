#!/bin/sh
# Prints the -isystem options of the nginx that OBJS was configured for, as its
# configure wrote them, in one line.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-incs.sh OBJS

set -eu

objs=$1
tree=/usr/share/nginx/src
[ -d "$(dirname "$objs")/nginx-src/src/core" ] && tree=$(dirname "$objs")/nginx-src

sed -n "/^ALL_INCS/,/^$/s|.*-I \(src/[^ ]*\).*|-isystem $tree/\1|p" \
    "$objs/Makefile" | tr '\n' ' '
printf -- '-isystem %s\n' "$objs"
