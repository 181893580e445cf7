/*
 * corpus_main - runs a target of t/fuzz over its seeds, without libFuzzer: as a
 * part of "make unit".
 *
 * The program's name, fuzz_<target>, says which folder of t/fuzz/corpus.  Each
 * seed comes whole, cut in half, and with a byte changed here and there: by
 * chance, but the same each time.  A target without seeds gets noise alone.  A
 * target that finds something does not return.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "kube_hash.h"


#define CORPUS_BYTES_MAX  (64u << 10)
#define CORPUS_CHANGES    24
#define CORPUS_NOISE      64

static uint8_t        corpus_bytes[CORPUS_BYTES_MAX];
static kube_random_t  corpus_random;


/* A copy of its own: what is read behind it shows. */
static unsigned
corpus_run(const uint8_t *bytes, size_t size)
{
    uint8_t  *copy;

    copy = malloc(size + (size == 0));
    fuzz_assert(copy != NULL);
    memcpy(copy, bytes, size);
    (void) LLVMFuzzerTestOneInput(copy, size);
    free(copy);

    return 1;
}


static unsigned
corpus_seed(size_t size)
{
    size_t    at;
    uint8_t   was;
    unsigned  i, runs;

    runs = corpus_run(corpus_bytes, size);
    runs += corpus_run(corpus_bytes, size / 2);

    for (i = 0; i < CORPUS_CHANGES && size != 0; i++) {
        at = kube_random_range(&corpus_random, 0, size - 1);
        was = corpus_bytes[at];
        corpus_bytes[at] = (uint8_t) kube_random_next(&corpus_random);
        runs += corpus_run(corpus_bytes, size);
        corpus_bytes[at] = was;
    }

    return runs;
}


static unsigned
corpus_file(const char *folder, const char *name)
{
    FILE    *file;
    char     path[1024];
    size_t   size;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    fuzz_assert(file != NULL);
    size = fread(corpus_bytes, 1, sizeof(corpus_bytes), file);
    fuzz_assert(ferror(file) == 0 && size < sizeof(corpus_bytes));
    (void) fclose(file);

    return corpus_seed(size);
}


/* In an order that no file system chooses. */
static unsigned
corpus_folder(const char *folder)
{
    int              i, n;
    unsigned         runs;
    struct dirent  **files;

    runs = 0;
    n = scandir(folder, &files, NULL, alphasort);

    for (i = 0; i < n; i++) {
        if (files[i]->d_name[0] != '.') {
            runs += corpus_file(folder, files[i]->d_name);
        }

        free(files[i]);
    }

    if (n >= 0) {
        free(files);
    }

    return runs;
}


static unsigned
corpus_noise(void)
{
    size_t    at, size;
    unsigned  i, runs;

    runs = corpus_run(corpus_bytes, 0);

    for (i = 0; i < CORPUS_NOISE; i++) {
        size = 1 + 8 * i;

        for (at = 0; at < size; at++) {
            corpus_bytes[at] = (uint8_t) kube_random_next(&corpus_random);
        }

        runs += corpus_run(corpus_bytes, size);
    }

    return runs;
}


int
main(int argc, char **argv)
{
    char         folder[256];
    unsigned     runs;
    const char  *name;

    fuzz_assert(argc == 1);
    name = strrchr(argv[0], '/');
    name = (name != NULL) ? name + 1 : argv[0];
    fuzz_assert(strncmp(name, "fuzz_", 5) == 0);
    (void) snprintf(folder, sizeof(folder), "t/fuzz/corpus/%s", name + 5);

    kube_random_init(&corpus_random, 1);
    runs = corpus_folder(folder);
    runs += corpus_noise();
    printf("%u inputs\n", runs);

    /* as cmocka says it: one test, of a target */
    printf("[  PASSED  ] 1 test(s).\n");

    return 0;
}
