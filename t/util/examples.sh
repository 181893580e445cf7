#!/bin/bash
# Loads each file of conf-examples/ with "nginx -t" and the modules just built.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# examples.sh BUILD_DIR
#
# The files are complete, as a reader would use them.  They see a prefix with
# modules/ (nginx's own and ours) and conf/ (a copy of the examples), and what
# a pod sees of its cluster.

set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

build=$(cd "$1" && pwd) || exit 1
nginx=${KUBE_NGINX:-$(PATH=$PATH:/usr/sbin command -v nginx)}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

mkdir -p "$prefix/modules" "$prefix/conf" "$prefix/logs"
chmod 755 "$prefix"
for module in /usr/lib/nginx/modules/*.so "$build"/ngx_*.so; do
    [ -f "$module" ] && ln -sf "$module" "$prefix/modules/"
done

shopt -s nullglob
examples=(conf-examples/*.conf)
if [ ${#examples[@]} -eq 0 ]; then
    echo "examples: conf-examples/ has no *.conf"
    exit 1
fi

cp -R conf-examples/. "$prefix/conf/"
# who runs this may not write the logs of this machine's nginx
sed -i 's|/var/log/nginx/|logs/|' "$prefix"/conf/*.conf
export KUBERNETES_SERVICE_HOST=10.96.0.1 KUBERNETES_SERVICE_PORT=443

bad=0
for example in "${examples[@]}"; do
    if ! output=$("$nginx" -t -q -p "$prefix/" \
            -c "$prefix/conf/${example##*/}" 2>&1)
    then
        echo "$example: ${output//$prefix\//}"
        bad=1
    fi
done

[ $bad -eq 0 ] && echo "examples: ${#examples[@]} loaded"
exit $bad
