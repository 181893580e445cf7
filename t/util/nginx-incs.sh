#!/bin/sh
# Prints the -isystem options of the nginx that OBJS was configured for.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-incs.sh OBJS

set -eu

objs=$1
tree=/usr/share/nginx/src
[ -d "$(dirname "$objs")/nginx-src/src/core" ] && tree=$(dirname "$objs")/nginx-src

for dir in core event event/modules os/unix proc http http/modules http/v2 stream
do
    printf -- '-isystem %s/src/%s ' "$tree" "$dir"
done
printf -- '-isystem %s\n' "$objs"
