/*
 * http_bed - an HTTP server of a few lines for tests of the transport: each
 * connection has a thread, each answer is written by a function of the test.
 *
 * Not a correct server: it must be able to send what no correct server
 * would.  For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_HTTP_BED_H
#define KUBE_HTTP_BED_H


#include <arpa/inet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "alloc_test.h"


#define HTTP_BED_CONNECTIONS_MAX  48
#define HTTP_BED_REQUEST_MAX      8192
#define HTTP_BED_PIECE            65536


typedef struct http_bed_s  http_bed_t;

/* Answers one request; false: the connection is closed. */
typedef bool (*http_bed_serve_pt)(http_bed_t *server, int fd);

struct http_bed_s {
    int                fd;
    uint16_t           port;
    http_bed_serve_pt  serve;
    const void        *arg;              /* for serve */
    pthread_t          thread;
    pthread_mutex_t    mutex;
    bool               stop;
    size_t             connections;
    size_t             requests;
    int                fds[HTTP_BED_CONNECTIONS_MAX];
    pthread_t          threads[HTTP_BED_CONNECTIONS_MAX];
    char               last[HTTP_BED_REQUEST_MAX];    /* request's head */
    char               path[108];
};

typedef struct {
    http_bed_t  *server;
    int          fd;
} http_bed_connection_t;


/*
 * From a copy: who reads it may be done with the test, and with data, before
 * ASan looks at what send() has taken.
 */
static inline bool
http_bed_write(int fd, const void *data, size_t len)
{
    char         piece[HTTP_BED_PIECE];
    size_t       size;
    ssize_t      n;
    const char  *p = data;

    while (len != 0) {
        size = (len < sizeof(piece)) ? len : sizeof(piece);
        memcpy(piece, p, size);
        n = send(fd, piece, size, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }

        p += n;
        len -= (size_t) n;
    }

    return true;
}


static inline bool
http_bed_puts(int fd, const char *text)
{
    return http_bed_write(fd, text, strlen(text));
}


/* An http_bed_serve_pt: the answer is the text that arg is. */
static inline bool
http_bed_serve_text(http_bed_t *server, int fd)
{
    return http_bed_puts(fd, server->arg);
}


/* Sends, and waits until all that was ever sent has arrived. */
static inline bool
http_bed_deliver(int fd, const char *text)
{
    int       left;
    unsigned  n;

    if (!http_bed_puts(fd, text)) {
        return false;
    }

    for (n = 0; n < 10000; n++) {
        if (ioctl(fd, SIOCOUTQ, &left) == -1) {
            return false;
        }

        if (left == 0) {
            return true;
        }

        (void) poll(NULL, 0, 1);
    }

    return false;
}


/* Sends a reset; the descriptor stays. */
static inline void
http_bed_reset(int fd)
{
    struct sockaddr  none;

    memset(&none, 0, sizeof(none));
    none.sa_family = AF_UNSPEC;
    (void) connect(fd, &none, sizeof(none));
}


static inline bool
http_bed_read_head(http_bed_t *s, int fd)
{
    char    head[HTTP_BED_REQUEST_MAX];
    size_t  len;

    for (len = 0; len < sizeof(head) - 1; len++) {
        if (recv(fd, head + len, 1, 0) != 1) {
            return false;
        }

        if (len >= 3 && memcmp(head + len - 3, "\r\n\r\n", 4) == 0) {
            head[len + 1] = '\0';

            pthread_mutex_lock(&s->mutex);
            memcpy(s->last, head, len + 2);
            s->requests++;
            pthread_mutex_unlock(&s->mutex);

            return true;
        }
    }

    return false;
}


static inline void *
http_bed_connection(void *arg)
{
    http_bed_connection_t  c;

    c = *(http_bed_connection_t *) arg;
    free(arg);

    while (http_bed_read_head(c.server, c.fd)) {
        if (!c.server->serve(c.server, c.fd)) {
            break;
        }
    }

    /* the number stays taken until stop, or shutdown would hit another */
    (void) shutdown(c.fd, SHUT_WR);

    return NULL;
}


static inline void
http_bed_accept(http_bed_t *s)
{
    int                     fd;
    http_bed_connection_t  *c;

    fd = accept(s->fd, NULL, NULL);
    if (fd == -1) {
        return;
    }

    pthread_mutex_lock(&s->mutex);

    c = malloc(sizeof(http_bed_connection_t));

    if (s->stop || s->connections == HTTP_BED_CONNECTIONS_MAX || c == NULL) {
        free(c);
        close(fd);

    } else {
        c->server = s;
        c->fd = fd;
        s->fds[s->connections] = fd;
        (void) pthread_create(&s->threads[s->connections++], NULL,
                              http_bed_connection, c);
    }

    pthread_mutex_unlock(&s->mutex);
}


static inline void *
http_bed_listen(void *arg)
{
    bool         stop;
    http_bed_t  *s = arg;

    do {
        http_bed_accept(s);

        pthread_mutex_lock(&s->mutex);
        stop = s->stop;
        pthread_mutex_unlock(&s->mutex);

    } while (!stop);

    return NULL;
}


static inline void
http_bed_bind(http_bed_t *s, const char *path)
{
    socklen_t           len;
    struct sockaddr_un  un;
    struct sockaddr_in  in;

    if (path != NULL) {
        memset(&un, 0, sizeof(un));
        un.sun_family = AF_UNIX;
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
        snprintf(s->path, sizeof(s->path), "%s", path);

        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s->fd, (struct sockaddr *) &un, sizeof(un)), 0);

    } else {
        memset(&in, 0, sizeof(in));
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        len = sizeof(in);

        s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s->fd, (struct sockaddr *) &in, len), 0);
        assert_int_equal(getsockname(s->fd, (struct sockaddr *) &in, &len), 0);
        s->port = ntohs(in.sin_port);
    }

    assert_int_equal(listen(s->fd, 16), 0);
}


/* path NULL: a free port of 127.0.0.1. */
static inline void
http_bed_start(http_bed_t *s, const char *path, http_bed_serve_pt serve,
    const void *arg)
{
    memset(s, 0, sizeof(http_bed_t));

    s->serve = serve;
    s->arg = arg;

    assert_int_equal(pthread_mutex_init(&s->mutex, NULL), 0);
    http_bed_bind(s, path);
    assert_int_equal(pthread_create(&s->thread, NULL, http_bed_listen, s), 0);
}


static inline void
http_bed_stop(http_bed_t *s)
{
    size_t  i;

    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_mutex_unlock(&s->mutex);

    (void) shutdown(s->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    close(s->fd);

    for (i = 0; i < s->connections; i++) {
        (void) shutdown(s->fds[i], SHUT_RDWR);
        assert_int_equal(pthread_join(s->threads[i], NULL), 0);
        close(s->fds[i]);
    }

    pthread_mutex_destroy(&s->mutex);

    if (s->path[0] != '\0') {
        (void) unlink(s->path);
    }
}


static inline size_t
http_bed_connections(http_bed_t *s)
{
    size_t  n;

    pthread_mutex_lock(&s->mutex);
    n = s->connections;
    pthread_mutex_unlock(&s->mutex);

    return n;
}


/* Whether the last request's head holds text. */
static inline bool
http_bed_saw(http_bed_t *s, const char *text)
{
    bool  saw;

    pthread_mutex_lock(&s->mutex);
    saw = strstr(s->last, text) != NULL;
    pthread_mutex_unlock(&s->mutex);

    return saw;
}


#endif /* KUBE_HTTP_BED_H */
