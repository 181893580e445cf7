/*
 * preload - what libraries share that tests load before nginx's modules
 * (LD_PRELOAD); nothing of it is in what we build.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef PRELOAD_H
#define PRELOAD_H


#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


/* The function of that name behind us: the module's. */
#define PRELOAD_NEXT(name)  ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))


/*
 * Copies a variable of the environment, cut off at size bytes; where it is not
 * set to stays as it is.  To be called before main(), by a constructor: nginx
 * leaves nothing of the environment to its children.
 */
static inline void
preload_env(char *to, size_t size, const char *name)
{
    const char  *value;

    value = getenv(name);

    if (value != NULL) {
        strncpy(to, value, size - 1);
    }
}


#endif /* PRELOAD_H */
