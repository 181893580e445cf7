/*
 * kube.h - the library's one header: informers of a Kubernetes API server for
 * programs without nginx.
 *
 *   kube_t            one API server: who is asked and as whom, and a loop
 *   kube_informer_t   one resource in one namespace, or in all, kept equal to
 *                     the server's by a list and a watch; its store
 *   kube_handlers_t   what is called when an object of it changes
 *   kube_queue_t      keys that wait to be worked on: a controller's queue
 *   kube_local_source_t  objects of the program's own, in a server's place
 *
 * It speaks for C99 and C++, and includes nothing of ours.  Its types begin
 * with kube_, its constants with KUBE_.
 *
 * Results.  A function of type int returns 0 (KUBE_E_OK) or a negative
 * KUBE_E_ number, which kube_strerror() puts into words, if nothing else is
 * said.  A function that fails has changed nothing.
 *
 * NULL.  A pointer that is given to a function is not NULL, where the text
 * beside it does not say that it may be; nothing is promised of one that is.
 * ctx is the program's alone.  Functions that destroy or release take NULL and
 * do nothing then; why may be NULL where why_size is 0; pointers in options and
 * handlers may be NULL, which is their default.
 *
 * Strings end with NUL.  Those given are copied or only read during the call;
 * those of an object live as long as the object.  No string of an object is
 * NULL: what is absent is "".
 *
 * Times are milliseconds of kube_now_ms() (CLOCK_MONOTONIC), durations
 * milliseconds; KUBE_FOREVER is a time that does not come.
 *
 * Threads.  A kube_t and all that is of it belong to one thread at a time;
 * kube_wake() alone may be called from any thread and any signal handler.  Two
 * kube_t know nothing of each other, and each thread may create its own.  (With
 * a libcurl older than 7.84, or one whose curl_version_info() does not say
 * CURL_VERSION_THREADSAFE, only after the program has called curl_global_init()
 * while it had one thread.)  A queue is of one thread, too.
 *
 * The program ignores SIGPIPE.  Handlers are called in kube_process()
 * (kube_run_once(), kube_wait_for_sync()) alone.  From within a call back
 * everything may be called but those three and the functions that destroy,
 * where nothing else is said.  An exception or longjmp() must not leave it.
 *
 * Options, handlers and metrics begin with their size, so that they can grow:
 *
 *     kube_options_t options = { .size = sizeof(options) };
 *
 * or, in C++, kube_options_t options = kube_options_t(), and then its size.
 * Fields that are left 0 have the default.  Structs of objects have no size and
 * stay as they are in libkube.so.0: they lie in rows, and programs make them
 * too.  One that a program makes itself (for a source) is all zero but for what
 * it sets.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_KUBE_H
#define KUBE_KUBE_H


#include <stddef.h>
#include <stdint.h>


#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif


#define KUBE_FOREVER  UINT64_MAX

enum {
    KUBE_E_OK = 0,
    KUBE_E_NOMEM = -2,
    KUBE_E_TOO_LARGE = -4,   /* above a limit */
    KUBE_E_INVALID = -5,     /* an argument, a file, or at the wrong time */
    KUBE_E_NOT_FOUND = -6,
    KUBE_E_IO = -11,         /* of the system; errno says which */
    KUBE_E_CLOSED = -14,     /* it was shut down, and is over */
    KUBE_E_TIMEOUT = -15
};

/* A static text, also for a number that is none of these. */
const char *kube_strerror(int rc);

/* The version of the library that runs: "0.1.0". */
const char *kube_version(void);

uint64_t kube_now_ms(void);


/*
 * Objects.  What endpoints are found by, not all of what the API has.
 *
 * All slices of a Service, by the label of its name, are its endpoints: a slice
 * is of one family, so that a Service with both has each pod in slices of
 * both, and a pod that moves may be in two slices for a moment.  Endpoints are
 * what old servers have in their place, one object a Service.  Of Pods only the
 * metadata is asked for.
 *
 * A part of a server's object that cannot be used, as an address or a port that
 * is none, is left out, which only the log says (a warning); the rest is there.
 */

typedef enum {
    KUBE_V1_SERVICE = 0,          /* core/v1 Service */
    KUBE_V1_ENDPOINTSLICE = 1,    /* discovery.k8s.io/v1 EndpointSlice */
    KUBE_V1_ENDPOINTS = 2,        /* core/v1 Endpoints */
    KUBE_V1_POD = 3               /* core/v1 Pod */
} kube_v1_resource_t;

typedef enum {
    KUBE_V1_TCP = 0,
    KUBE_V1_UDP = 1,
    KUBE_V1_SCTP = 2
} kube_v1_protocol_t;

typedef enum {
    KUBE_V1_CLUSTER_IP = 0,
    KUBE_V1_NODE_PORT = 1,
    KUBE_V1_LOAD_BALANCER = 2,
    KUBE_V1_EXTERNAL_NAME = 3     /* the name itself is not read */
} kube_v1_service_type_t;

typedef struct {
    const char           *name;
    const char           *app_protocol;
    uint16_t              port;           /* 1..65535; of a slice 0: none */
    kube_v1_protocol_t    protocol;
} kube_v1_port_t;

typedef struct {
    kube_v1_service_type_t   type;
    int                      headless;        /* 1: clusterIP is None */
    const char              *cluster_ips[2];  /* in the order of the API */
    size_t                   cluster_ips_n;   /* 0..2 */
    const kube_v1_port_t    *ports;
    size_t                   ports_n;
} kube_v1_service_t;

typedef struct {
    const char  *address;        /* its first: "10.0.0.1", "2001:db8::1" */
    int          ready;          /* conditions, 0 or 1; of one that is absent */
    int          serving;        /* what the API says it means */
    int          terminating;
    const char  *pod;            /* targetRef.name, if it is a Pod */
    const char  *node;
    const char  *zone;
} kube_v1_endpoint_t;

/* Endpoints of one family, each of which has each of the ports. */
typedef struct {
    int                        family;       /* 4 or 6; 0: neither, and there
                                                are no endpoints */
    const kube_v1_port_t      *ports;
    size_t                     ports_n;
    const kube_v1_endpoint_t  *endpoints;
    size_t                     endpoints_n;
} kube_v1_subset_t;

/*
 * An EndpointSlice, or Endpoints.  The subsets are of either; a slice is one.
 * family, ports and endpoints are those of a slice; of Endpoints with several
 * subsets they are the first one's family, and all of the others' in a row,
 * which does not say what goes with what.
 */
typedef struct {
    const char                *service;      /* kubernetes.io/service-name, or
                                                the name of Endpoints */
    int                        family;
    const kube_v1_port_t      *ports;
    size_t                     ports_n;
    const kube_v1_endpoint_t  *endpoints;
    size_t                     endpoints_n;
    const kube_v1_subset_t    *subsets;
    size_t                     subsets_n;
} kube_v1_endpointslice_t;

typedef struct {
    const char                *name;         /* "app.kubernetes.io/name" */
    const char                *value;        /* may be "" */
} kube_v1_label_t;

/* What a Pod has beside its name. */
typedef struct {
    const kube_v1_label_t     *labels;       /* in the order of their names */
    size_t                     labels_n;     /* up to 256 */
    int64_t                    deletion_ms;  /* deletionTimestamp, ms of the
                                                Unix time; 0: it is not being
                                                deleted */
} kube_v1_metadata_t;

/*
 * One state of an object; it never changes.  A call back's object is borrowed
 * until it returns; kube_v1_object_hold() makes it last.  It may then outlive
 * its informer and the kube_t, and belong to another thread.
 */
typedef struct {
    kube_v1_resource_t              resource;
    const char                     *ns;          /* metadata.namespace */
    const char                     *name;
    const char                     *uid;
    const char                     *rv;          /* resourceVersion */
    const kube_v1_service_t        *service;     /* else NULL */
    const kube_v1_endpointslice_t  *slice;       /* of both; else NULL */
    const kube_v1_metadata_t       *metadata;    /* of a Pod; else NULL */
} kube_v1_object_t;

/*
 * One more owner; returns object.  Each hold() and each object that a function
 * gives needs one release(), which takes NULL too.
 */
const kube_v1_object_t *kube_v1_object_hold(const kube_v1_object_t *object);
void kube_v1_object_release(const kube_v1_object_t *object);

/* The value of a Pod's label; NULL: it has none of this name. */
const char *kube_v1_label(const kube_v1_object_t *object, const char *name);


/*
 * Sources.  Objects of the program's own, of one resource: what is put and
 * removed is listed and watched as a server's are, in the place of the API
 * server (options.sources).  It is of the kube_t's thread, and outlives it.
 *
 * changes_max: how many changes are remembered for who is slow, 1 .. 1000000;
 * 0: 1024; who is slower lists anew, which watch_error hears of as expired.
 * NULL: no memory, or out of range.
 */
typedef struct kube_local_source_s  kube_local_source_t;

kube_local_source_t *kube_local_source_create(kube_v1_resource_t resource,
    uint32_t changes_max);
void kube_local_source_destroy(kube_local_source_t *source);

/*
 * Adds the object, or changes the one of its name; it is copied.  Set are
 * resource, ns, name and what is of the resource; of Endpoints the subsets.
 * uid NULL or "": as before, or a new one; another one: the old object is
 * deleted and a new one added.  rv is the source's business, which counts each
 * put, also one that changes nothing: it is told as updated.  What waits for
 * kube_process() of one key is told as one change, see Handlers.
 *
 * Informers know it after the next kube_process().  Of more than changes_max
 * changes since the last one they list what there is: by kube_process() again,
 * up to 20 ms later, and each key once, in its last state.
 *
 * KUBE_E_INVALID: of another resource, or something in it cannot be: a name, an
 * address or one that is not of the family, a port, a length; KUBE_E_NOMEM.
 */
int kube_local_source_put(kube_local_source_t *source,
    const kube_v1_object_t *object);

/* KUBE_E_NOT_FOUND: there is none. */
int kube_local_source_remove(kube_local_source_t *source, const char *ns,
    const char *name);


/*
 * The API server.
 */

typedef struct kube_s                  kube_t;
typedef struct kube_informer_handle_s  kube_informer_t;

typedef enum {
    KUBE_L_ERROR = 0,       /* needs an operator */
    KUBE_L_WARN = 1,        /* degraded */
    KUBE_L_NOTICE = 2,      /* a state changed */
    KUBE_L_INFO = 3,        /* a line for each list and watch */
    KUBE_L_DEBUG = 4
} kube_l_level_t;

typedef struct {
    size_t       size;               /* sizeof(kube_options_t) */

    /* The one that is set: a kubeconfig with its context (NULL: the current
       one); or a URL; none: that of the Pod in which the program runs. */
    const char  *kubeconfig;         /* path */
    const char  *context;
    const char  *server;             /* https://host:port; http:// of loopback
                                        addresses and http://unix:/path.sock
                                        alone */
    const char  *ca_file;            /* with server; NULL: the system's */
    const char  *token_file;         /* with server; NULL: none; read again
                                        as it changes */

    const char  *service_selector;   /* label selectors; NULL: all */
    const char  *slice_selector;

    uint64_t     connect_timeout_ms; /* 1 .. 600000; 3000 */
    uint64_t     resync_ms;          /* how often handlers are told anew what
                                        did not change; 0: never; 1 .. 999
                                        count as 1000 */
    uint32_t     page_size;          /* objects a page of a list; 500 */
    const char  *agent;              /* of User-Agent: "shop/1.2" */

    /* NULL: nothing is logged.  line holds no newline and no secret, and is
       valid during the call only.  Nothing of the library may be called. */
    void       (*log)(void *ctx, kube_l_level_t level, const char *line);
    void        *log_ctx;

    const char  *endpoints_selector; /* label selectors; NULL: all */
    const char  *pod_selector;

    /* At most one of a resource, whose informers follow it and ask no server.
       Where there are some, and neither kubeconfig nor server is set, there is
       no API server at all. */
    kube_local_source_t *const  *sources;
    size_t                       sources_n;

    /* Called with each object that a server or a source has, before it is
       held; NULL: none.  It may change what is of the resource: set the
       pointers, and what they point to, to things of its own that last until
       its next call; of Endpoints only subsets count.  ns, name, uid and rv
       stay what they were.  What it drops takes no memory; a new version of
       an object is told as updated also where nothing else has changed.  0; or
       this state is not held, which is counted (refused): one that was
       held before stays until the object goes or a later state is held.  It
       calls nothing that takes a kube_t, an informer or a source. */
    int        (*transform)(void *ctx, kube_v1_object_t *object);
    void        *transform_ctx;

    /* A list or a watch failed, and is tried again: message is for people,
       reason one word.  No answer or no end: connect, tls, timeout, closed,
       credentials, protocol; an answer: expired, too_large_rv, unauthorized,
       forbidden, not_found, too_many_requests, unavailable, internal,
       redirect, invalid; either: other.  There may be more of them.  NULL:
       nobody is told.  It can change nothing of that. */
    void       (*watch_error)(void *ctx, kube_informer_t *informer,
                   const char *reason, const char *message);
    void        *watch_error_ctx;
} kube_options_t;

/*
 * Reads the kubeconfig, but connects to nothing yet.  KUBE_E_OK: *kube is the
 * caller's.  KUBE_E_INVALID, KUBE_E_NOT_FOUND (context, cluster or user),
 * KUBE_E_TOO_LARGE, KUBE_E_IO, KUBE_E_NOMEM: why, cut at why_size bytes with
 * its NUL, says what is wrong; why may be NULL if why_size is 0.
 */
int kube_create(const kube_options_t *options, kube_t **kube, char *why,
    size_t why_size);

/* Ends everything at once, informers too; NULL is taken.  Not from within a
   call back. */
void kube_destroy(kube_t *kube);


/*
 * The loop: one of the two.
 *
 * The library's: waits until something is due, but at most timeout_ms, or
 * until kube_wake() or a signal (-1: as long as it takes; 0: not at all), and
 * does it.  KUBE_E_OK; KUBE_E_CLOSED: kube_shutdown() is done, nothing will be
 * due any more; KUBE_E_IO; KUBE_E_INVALID from within a call back.
 */
int kube_run_once(kube_t *kube, int timeout_ms);

/*
 * The program's: kube_process() when the descriptor is readable, or at the
 * deadline, which is asked for again after each call of a function of kube or
 * of its informers.  A deadline that is not after now: at once, for
 * kube_process() does a bounded amount of work.  The descriptor is the
 * library's and stays the same; poll(), select() and epoll take it.
 */
int kube_fd(const kube_t *kube);
uint64_t kube_deadline_ms(const kube_t *kube);
void kube_process(kube_t *kube);

/* Has kube_run_once() return, or the descriptor be readable once.  From any
   thread and signal handler, before kube_destroy(); errno stays. */
void kube_wake(kube_t *kube);

/*
 * 1: each informer that was started holds what its first list brought; so too
 * before kube_start(), when none was.  0: not yet; why (as above) names those
 * that do not and what hinders them, which of a server that is silent is known
 * only when its first request has timed out: connect_timeout_ms for a
 * connection, 5 s for an answer.
 */
int kube_has_synced(const kube_t *kube, char *why, size_t why_size);

/*
 * Runs the loop until that is so.  KUBE_E_OK; KUBE_E_TIMEOUT: not within
 * timeout_ms (KUBE_FOREVER: no limit), why as above; KUBE_E_CLOSED: those that
 * are missing were shut down; KUBE_E_IO; KUBE_E_INVALID from within a call
 * back.  Neither a signal nor kube_wake() ends it: who wants to end while a
 * server is away calls kube_run_once() until kube_has_synced().
 */
int kube_wait_for_sync(kube_t *kube, uint64_t timeout_ms, char *why,
    size_t why_size);

/*
 * Stops all informers: nothing is asked of the server any more.  drain 1: what
 * handlers have not been told is told first, by the loop; 0: it is dropped.
 * kube_run_once() says KUBE_E_CLOSED when that is done, and
 * kube_is_stopped() 1.  Stores may be read as long as the kube_t is there.
 */
void kube_shutdown(kube_t *kube, int drain);
int kube_is_stopped(const kube_t *kube);


/*
 * Informers.
 */

/*
 * The informer of a resource in a namespace (NULL or "": in all), the same for
 * all who ask.  It is of the kube_t and lives as long.  A new one does nothing
 * before kube_start(), so that handlers and indexes can be added.
 *
 * KUBE_E_INVALID: no such namespace or resource, or after kube_shutdown();
 * KUBE_E_NOT_FOUND: no source of this resource, and no API server;
 * KUBE_E_TOO_LARGE: there are 128; KUBE_E_NOMEM.
 */
int kube_informer(kube_t *kube, kube_v1_resource_t resource, const char *ns,
    kube_informer_t **informer);

/* Starts those that are not started yet.  KUBE_E_INVALID: after
   kube_shutdown(). */
int kube_start(kube_t *kube);

/* "services in shop"; and its last error: "" : none since it follows, else the
   reason and the message of watch_error, "forbidden: ...".  Both are valid
   until the next kube_process(), as is the resourceVersion up to which
   everything is in the store ("": not synced yet).

   What failed is tried again after 0.4 .. 0.8 s at first, and up to twice as
   long each time: 30 s at most, 4 s while nothing can be connected to, and not
   before a Retry-After.  It begins anew when the server has been well for two
   minutes. */
const char *kube_informer_name(const kube_informer_t *informer);
const char *kube_informer_error(const kube_informer_t *informer);
const char *kube_informer_rv(kube_informer_t *informer);

int kube_informer_has_synced(const kube_informer_t *informer);

/* Objects that could not be held (malformed as a whole, above 4 MiB, refused by
   the transform), ever: again with each state and each list that brings it. */
uint64_t kube_informer_refused(const kube_informer_t *informer);


/*
 * Handlers.  Each is told of a key in order and without a gap: an old state is
 * the new one that it was told before; an object made anew under its name is
 * deleted and added.  Several changes of a key that wait are told as one, from
 * the state that was told last to the newest, and not at all where both are
 * none.  There is no order between handlers.  One that is added late is told
 * all that is there as added.
 */
typedef struct {
    size_t   size;                 /* sizeof(kube_handlers_t) */
    void    *ctx;

    /* Each may be NULL.  in_initial_list 1: of the first list, or of what was
       there when the handlers were added. */
    void   (*added)(void *ctx, const kube_v1_object_t *object,
               int in_initial_list);

    /* old_object == new_object: a resync, nothing has changed. */
    void   (*updated)(void *ctx, const kube_v1_object_t *old_object,
               const kube_v1_object_t *new_object);

    /* The state that the store had, which it was told last: not that in which
       the server says it was deleted.  final_state_unknown 1: it may have
       ended in a later one, which nobody saw. */
    void   (*deleted)(void *ctx, const kube_v1_object_t *object,
               int final_state_unknown);

    /* It was slow and more changed than is kept for it: what follows is the
       difference, each key once. */
    void   (*behind)(void *ctx);

    /* 0: the object is not shown to this handler; an update that crosses the
       filter is told as added or deleted.  Always the same answer for one
       object.  It calls nothing that takes a kube_t, an informer or a
       source. */
    int    (*filter)(void *ctx, const kube_v1_object_t *object);

    /* 0: that of the options; KUBE_FOREVER: never; 1 .. 999 count as 1000.
       Where the options have none there is none, whatever stands here.  One
       that is shorter than theirs counts if it, or another as short, is added
       before kube_start(); later it is raised. */
    uint64_t  resync_ms;
} kube_handlers_t;

/*
 * id, which may be NULL, is never 0 and never used twice.  KUBE_E_INVALID:
 * after kube_shutdown(); KUBE_E_TOO_LARGE: there are 1024; KUBE_E_NOMEM.
 */
int kube_informer_add_handlers(kube_informer_t *informer,
    const kube_handlers_t *handlers, uint64_t *id);

/* They are called no more; from within one of them: that call is the last.
   Nothing happens for an id that is none. */
void kube_informer_remove_handlers(kube_informer_t *informer, uint64_t id);

/* 1: they have been told all that was there when they were added, or the
   first list brought. */
int kube_informer_handlers_synced(const kube_informer_t *informer,
    uint64_t id);


/*
 * The store.  It is at least as new as what handlers have been told.
 */

/* KUBE_E_OK: *object wants a release(), and is another pointer each time: one
   state has one uid and rv.  KUBE_E_NOT_FOUND; KUBE_E_NOMEM. */
int kube_informer_get(const kube_informer_t *informer, const char *ns,
    const char *name, const kube_v1_object_t **object);

size_t kube_informer_count(const kube_informer_t *informer);

/* Not 0: no further one is wanted.  It calls nothing of the library but hold()
   and kube_v1_label(). */
typedef int (*kube_visit_t)(void *ctx, const kube_v1_object_t *object);

/* Visits the objects of a namespace (NULL or "": all), in any order.
   KUBE_E_OK, or KUBE_E_NOMEM: not all were visited. */
int kube_informer_list(const kube_informer_t *informer, const char *ns,
    kube_visit_t visit, void *ctx);

/*
 * Indexes.  A function gives each value under which an object is to be found
 * by kube_value() (at most 381 bytes long, 1000 of them; what is above is
 * left out; twice counts once), and returns 0; it calls nothing that takes a
 * kube_t, an informer or a source.  Other than 0, or no memory: the object is
 * not in this index, which is counted.  It looks at the content, not at rv, and
 * is not asked again of an object whose content is as it was.
 */
typedef struct kube_values_s  kube_values_t;
typedef int (*kube_index_t)(void *ctx, const kube_v1_object_t *object,
    kube_values_t *values);

void kube_value(kube_values_t *values, const char *value);

/*
 * Adds an index, also after the start; it has at once what is held.  The
 * function NULL: that of the name: "namespace"; "service" ("ns/name" of a
 * slice's Service); "node" (of a slice's endpoints); "address" (theirs, or a
 * Service's cluster addresses, as objects have them: to be looked for in the
 * form of RFC 5952, "2001:db8::1"); "label" ("name=value" of each of a Pod's).
 * Of other resources they are empty.  A function under one of these names is in
 * its place.
 *
 * KUBE_E_INVALID: there is one of this name, or none by this name where a
 * function is missing, or the name is "" or longer than 63 bytes, or the
 * informer has stopped; KUBE_E_NOMEM.
 */
int kube_informer_add_index(kube_informer_t *informer, const char *name,
    kube_index_t index, void *ctx);

/* As list, of those with this value.  KUBE_E_NOT_FOUND: no such index. */
int kube_informer_by_index(const kube_informer_t *informer, const char *name,
    const char *value, kube_visit_t visit, void *ctx);

/* How often an index had no answer for an object. */
uint64_t kube_informer_index_errors(const kube_informer_t *informer);


/*
 * The work queue of a controller: client-go's util/workqueue.  A key that
 * waits already is not added twice; one that is added while it is worked on
 * comes again when that is done.  A handler adds the key, and the loop, when
 * kube_process() has returned, gets it, looks into the store and does what is
 * to be done.
 */
typedef struct kube_queue_s  kube_queue_t;

/* keys_max: of those that wait, are delayed, worked on or have failed, 1 ..
   1000000.  NULL: no memory, or a number that is out of that range. */
kube_queue_t *kube_queue_create(uint32_t keys_max);
void kube_queue_destroy(kube_queue_t *queue);

/*
 * Adds a key of 1 .. 1024 bytes: at once; in delay_ms; or after what its
 * failures ask for: 5 ms, doubled each time, at most 1000 s, and at most 10 a
 * second of all keys after the first 100.  The earlier one of two times
 * counts.  KUBE_E_OK (after a shutdown too, when nothing is added),
 * KUBE_E_TOO_LARGE (the key, or there are keys_max), KUBE_E_INVALID (""),
 * KUBE_E_NOMEM.
 */
int kube_queue_add(kube_queue_t *queue, const char *key);
int kube_queue_add_after(kube_queue_t *queue, const char *key,
    uint64_t delay_ms);
int kube_queue_add_failed(kube_queue_t *queue, const char *key);

/* The oldest key, which is worked on until done(), and valid so long.  NULL:
   none waits now. */
const char *kube_queue_get(kube_queue_t *queue);
void kube_queue_done(kube_queue_t *queue, const char *key);

/* The key has succeeded, or is given up: its failures are forgotten. */
void kube_queue_forget(kube_queue_t *queue, const char *key);
uint32_t kube_queue_failures(const kube_queue_t *queue, const char *key);

/* How many wait, with those whose delay is over; when get() has one: 0, or a
   time that has come: now; KUBE_FOREVER: none is known. */
size_t kube_queue_depth(const kube_queue_t *queue);
uint64_t kube_queue_deadline_ms(const kube_queue_t *queue);

/*
 * What client-go's metrics of a queue say, by its names.  buckets count
 * durations up to 1, 10, 100 ms, 1, 10, 100, 1000 s, and longer ones, each of
 * its own range.  queue_duration is from add to get, work_duration from get to
 * done.  KUBE_E_OK; KUBE_E_INVALID: of another size.
 */
#define KUBE_QUEUE_BUCKETS  8

typedef struct {
    uint64_t                count;
    uint64_t                sum_ms;
    uint64_t                buckets[KUBE_QUEUE_BUCKETS];
} kube_queue_histogram_t;

typedef struct {
    size_t                  size;          /* sizeof(kube_queue_metrics_t) */
    uint64_t                depth;
    uint64_t                adds_total;
    uint64_t                retries_total;
    kube_queue_histogram_t  queue_duration;
    kube_queue_histogram_t  work_duration;
    uint64_t                unfinished_work_ms;    /* of all worked on */
    uint64_t                longest_running_ms;
} kube_queue_metrics_t;

int kube_queue_metrics(const kube_queue_t *queue,
    kube_queue_metrics_t *metrics);

/* Nothing is added any more, what is delayed and not due yet is dropped; what
   waits may be got.  is_over 1: none waits, and all that was got is done. */
void kube_queue_shutdown(kube_queue_t *queue);
int kube_queue_is_over(const kube_queue_t *queue);


#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif


#endif /* KUBE_KUBE_H */
