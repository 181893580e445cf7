#!/bin/bash
# Builds the nginx modules against Debian's nginx-dev or a source tree.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx.sh OUT
#
# The environment says how: CC, NGINX_CFLAGS, NGINX_LDFLAGS for the modules,
# NGINX_SRC for a tree other than nginx-dev's (it is copied, never written
# to), NGINX_CONFIGURE_ARGS for more arguments, NGINX_BINARY=1 for OUT/nginx
# beside the modules, NGINX_STATIC=1 for one that has them inside, JOBS.
#
# configure runs again only when what it depends on has changed.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(cd "$1" && pwd)
debian=/usr/share/nginx/src
log=$out/nginx.log

flags=(
    --with-compat --with-debug --with-threads --with-pcre-jit
    --with-http_ssl_module --with-http_v2_module --with-http_realip_module
    --with-http_stub_status_module --with-http_auth_request_module
    --with-http_slice_module --with-stream_ssl_module
)


# The directory that has nginx's src/ and auto/; OpenResty keeps it in bundle/.
tree_of()
{
    local dir=$1 sub

    for sub in "$dir" "$dir"/bundle/nginx-*; do
        if [ -f "$sub/src/core/nginx.h" ] && [ -f "$sub/auto/module" ]; then
            (cd "$sub" && pwd)
            return
        fi
    done

    echo "NGINX_SRC=$dir: no nginx source tree there" >&2
    return 1
}


# All that a finished configure depends on.
key_of()
{
    local tree=$1

    # what is configured names our sources by their path
    echo "$root" "$tree" "$@" "${CC:-cc}" "${NGINX_CFLAGS-}" "${NGINX_LDFLAGS-}" \
         "${NGINX_CONFIGURE_ARGS-}"
    cat "$root/config" "$root"/ngx_module/page/* | cksum
    (cd "$root" && ls src/*/*.h ngx_module/*.h 2>/dev/null) || true
    cksum < "$0"
    find "$tree/src" "$tree/auto" -type f -printf '%T@ %s %p\n' | sort | cksum
}


# configure OBJS CFLAGS LDFLAGS ARGS...: out of the tree, quiet if it works
configure()
{
    local objs=$1 cflags=$2 ldflags=$3 script=./configure more

    shift 3
    read -ra more <<< "${NGINX_CONFIGURE_ARGS-}"
    [ -f "$build_tree/configure" ] || script=auto/configure
    rm -rf "$objs"
    mkdir -p "$objs"

    # the feature tests of configure are small programs that do leak

    if ! (cd "$build_tree" \
          && ASAN_OPTIONS=detect_leaks=0 bash "$script" "${flags[@]}" \
             --with-stream --with-cc="${CC:-cc}" --with-cc-opt="$cflags" \
             --with-ld-opt="$ldflags" --builddir="$objs" "$@" \
             ${more[@]+"${more[@]}"}) >"$log" 2>&1
    then
        tail -n 30 "$log" >&2
        echo "nginx's configure failed; see also $objs/autoconf.err" >&2
        return 1
    fi
}


# stamped OBJS KEY: whether that configure is still good
stamped()
{
    [ -f "$1/Makefile" ] && [ -f "$1/.key" ] && [ "$(cat "$1/.key")" = "$2" ]
}


run_make()
{
    make --no-print-directory -s -C "$build_tree" -j "${JOBS:-2}" \
        -f "$1/Makefile" "$2"
}


# put FROM TO: by rename, for a running nginx may have TO mapped
put()
{
    cmp -s "$1" "$2" && return
    cp "$1" "$2.new"
    mv -f "$2.new" "$2"
    echo "built ${2#"$root"/}"
}


modules()
{
    local objs=$out/objs key module

    key=$(key_of "$tree" modules)
    if ! stamped "$objs" "$key"; then
        configure "$objs" "${NGINX_CFLAGS-} -fPIC" "${NGINX_LDFLAGS-} -fPIC" \
            --add-dynamic-module="$root"
        echo "$key" > "$objs/.key"
    fi

    run_make "$objs" modules
    for module in ngx_kube_module ngx_http_kube_module ngx_stream_kube_module
    do
        put "$objs/$module.so" "$out/$module.so"
    done
}


# With AddressSanitizer, nginx's pools are malloc, so that it sees overruns.
# UBSan is for our code alone: nginx's own has findings of its own.
binary()
{
    local objs=$out/nginx-objs key cflags ldflags

    cflags="${NGINX_CFLAGS-} "
    ldflags="${NGINX_LDFLAGS-} "
    case $cflags in
        *-fsanitize=*)
            cflags=${cflags//-fno-sanitize-recover=undefined /}
            cflags=${cflags//,undefined/}
            cflags="$cflags -DNGX_DEBUG_PALLOC=1"
            [ "${NGINX_STATIC:-0}" = 1 ] || ldflags=${ldflags//,undefined/} ;;
    esac

    key=$(key_of "$tree" binary "${NGINX_STATIC:-0}")
    if ! stamped "$objs" "$key"; then
        if [ "${NGINX_STATIC:-0}" = 1 ]; then
            configure "$objs" "$cflags" "$ldflags" --add-module="$root"
        else
            configure "$objs" "$cflags" "$ldflags"
        fi
        echo "$key" > "$objs/.key"
    fi

    run_make "$objs" binary
    [ -f "$objs/nginx" ] || cp "$objs/angie" "$objs/nginx"
    put "$objs/nginx" "$out/nginx"
}


if [ -z "${NGINX_SRC-}" ]; then
    if [ "${NGINX_BINARY:-0}" = 1 ] || [ "${NGINX_STATIC:-0}" = 1 ]; then
        echo "NGINX_BINARY and NGINX_STATIC need NGINX_SRC:" \
             "nginx-dev has no sources" >&2
        exit 1
    fi
    rm -rf "$out/nginx" "$out/nginx-src"
    tree=$debian
    build_tree=$tree
    # shellcheck disable=SC1091
    . "$tree/conf_flags"
    flags=("${NGX_CONF_FLAGS[@]}")

else
    tree=$(tree_of "$NGINX_SRC")
    build_tree=$out/nginx-src
    copied=$(key_of "$tree" copy)
    if [ "$(cat "$build_tree/.key" 2>/dev/null)" != "$copied" ]; then
        rm -rf "$build_tree"
        mkdir -p "$build_tree"
        tar -C "$tree" --exclude=./.git --exclude=./objs --exclude=./Makefile \
            -cf - . | tar -C "$build_tree" -xf -
        echo "$copied" > "$build_tree/.key"
    fi
fi

modules
if [ "${NGINX_BINARY:-0}" = 1 ] || [ "${NGINX_STATIC:-0}" = 1 ]; then
    binary
fi
