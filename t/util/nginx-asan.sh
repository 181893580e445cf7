#!/bin/sh
# Debian's nginx with the sanitizers' runtime loaded first, as the modules of
# build/asan want it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# A binary upgrade (USR2) loses LD_PRELOAD: for that, and for overruns within
# nginx's pools, build nginx too (see CONTRIBUTING.md).

PATH=$PATH:/usr/sbin
runtime="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
LD_PRELOAD="$runtime${LD_PRELOAD:+ $LD_PRELOAD}"
export LD_PRELOAD

exec nginx "$@"
