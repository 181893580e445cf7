#!/bin/bash
# Makes a Debian package of what "make install" and "make install-lib" have put
# below a directory: modules, kube-informer, libkube and its files.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# package.sh STAGE VERSION OUT
#
# STAGE has usr/ in it; OUT is the directory that gets the .deb.  What it depends
# on is found in the programs, and the nginx that the modules fit in this system's:
# PACKAGE_NGINX= names none, for modules of another tree.

set -euo pipefail

stage=$1 version=$2 out=$3
name="nginx-kube-informer"
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dpkg-shlibdeps wants a source package's control file
mkdir "$work/debian"
printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$name" "$name" \
    >"$work/debian/control"

mapfile -t files < <(find "$(realpath "$stage")/usr" -type f \
    \( -name '*.so*' -o -path '*/bin/*' \))
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "${files[@]}" \
    2>"$work/warnings" | sed -n 's/^shlibs:Depends=//p') \
    || { cat "$work/warnings" >&2; exit 1; }

nginx=${PACKAGE_NGINX-$(dpkg-query -W -f '${Provides}' nginx \
    | grep -o 'nginx-abi-[^, ]*')}

mkdir -p "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $arch
Maintainer: the nginx-kube-informer authors <root@localhost>
Section: httpd
Priority: optional
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: $depends${nginx:+, $nginx}
Description: Kubernetes shared informer inside nginx
 Modules that resolve upstreams from Services and EndpointSlices, which one
 process lists and watches; the command kube-informer, and libkube.
END

install -D -m 644 "$(dirname "$0")/../../LICENSE" \
    "$stage/usr/share/doc/$name/copyright"

# the loader's cache has libkube
printf 'activate-noawait ldconfig\n' >"$stage/DEBIAN/triggers"

mkdir -p "$out"
dpkg-deb --root-owner-group --build "$stage" \
    "$out/${name}_${version}_$arch.deb"
