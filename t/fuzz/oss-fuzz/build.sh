#!/bin/bash -eu
# OSS-Fuzz: builds every target of t/fuzz into $OUT, with its seeds, its
# dictionary, and the libraries that the runner's image does not have.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs in the source tree.  From OSS-Fuzz: CC, CXX, CFLAGS, CXXFLAGS,
# LIB_FUZZING_ENGINE, OUT and WORK.

flags="$CFLAGS -std=c11 -D_DEFAULT_SOURCE -DKUBE_DEBUG=1"
libs=$WORK/libkube

make lib SKIP_DEPS=1 CC="$CC" BUILD=asan OUT="$libs" WARN= \
    OPT_asan="$CFLAGS -DKUBE_DEBUG=1"

read -ra includes < <(python3 t/util/layers.py --includes src)
mkdir -p "$OUT/lib"

for source in t/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    name=${target#fuzz_}

    # the flags are words; engines are C++
    # shellcheck disable=SC2086
    $CC $flags -It/fuzz -It/unit "${includes[@]}" -c "$source" \
        -o "$WORK/$target.o"
    # shellcheck disable=SC2086
    $CXX $CXXFLAGS "$WORK/$target.o" "$libs/libkube.a" $LIB_FUZZING_ENGINE \
        -Wl,--disable-new-dtags,-rpath,"\$ORIGIN/lib" \
        -Wl,--as-needed -lcurl -lcjson -lyaml -lpthread -o "$OUT/$target"

    # all but what is there already, and the run-time libraries of C and C++
    ldd "$OUT/$target" \
        | awk '$3 ~ /^\// && index($3, ENVIRON["OUT"]) != 1 { print $3 }' \
        | { grep -Ev '/lib(c|m|dl|pthread|rt|resolv|gcc_s|stdc\+\+)\.so' \
            || true; } \
        | xargs -r -I {} cp {} "$OUT/lib"

    if [ -d "t/fuzz/corpus/$name" ]; then
        zip -q -j "$OUT/${target}_seed_corpus.zip" "t/fuzz/corpus/$name"/*
    fi

    if [ -f "t/fuzz/$name.dict" ]; then
        cp "t/fuzz/$name.dict" "$OUT/$target.dict"
    fi
done
