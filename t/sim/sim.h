/*
 * sim - the simulator: API servers, a network, one informer process after the
 * other and workers that read, in one process, in virtual time, out of one
 * seed.
 *
 * All of src from kube_io_t upward is the real code: requests, frames, decoder,
 * reflector, FIFO, indexer, publisher, zone, readers.  What is simulated is on
 * the other side of kube_io_t (sim_server.c, sim_net.c), and what a process is
 * (sim_process.c).  libcurl and sockets are not in it: they are not the same
 * twice.
 *
 * A run is rounds of steps with faults, each followed by a time without, after
 * which everything has to be as the API server has it.  The checks are in
 * sim_check.c, and named as in docs/internals/simulator.md.  For t/sim and
 * t/unit/test_sim.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SIM_H
#define KUBE_SIM_H


#include <setjmp.h>

#include "kube_informer.h"
#include "kube_item.h"
#include "kube_zone_reader.h"
#include "kube_zone_ring.h"
#include "kube_zone_scope.h"


#define SIM_NAMESPACES   3
#define SIM_SERVICES     4     /* of a namespace */
#define SIM_SLICES       8
#define SIM_OBJECTS      (SIM_SERVICES + SIM_SLICES)
#define SIM_KEYS         (SIM_NAMESPACES * SIM_OBJECTS)
#define SIM_SHAPES       2     /* Services and slices */
#define SIM_REPLICAS     3     /* API servers behind one address */
#define SIM_READERS      3
#define SIM_ERAS         12    /* pasts that a backup was restored from */
#define SIM_EXCHANGES    24
#define SIM_SCOPES       8
#define SIM_SNAPSHOTS    16    /* lists whose pages can be asked for */

/* From here to here a version jumps, as other resources of the cluster do. */
#define SIM_JUMP         1000000

#define SIM_ENDPOINTS    128   /* of a slice, where a zone is to be filled */

/*
 * Limits of the FIFO where they are to be reached: a quarter has room for what
 * comes in one piece, as it has in earnest.
 */
#define SIM_NARROW_KEYS   12
#define SIM_NARROW_BYTES  16000
#define SIM_NARROW_PIECE  500

/* Without a fault everything is equal after so long. */
#define SIM_SETTLE_MS    120000


/* What may go wrong in a run; each of its own, or many at once. */
#define SIM_FAULT_MAP(XX)                                                     \
    XX(CUT, "cut")              /* a connection, at any byte */               \
    XX(HALF_OPEN, "half_open")  /* the peer of one is gone without a word */  \
    XX(STALL, "stall")          /* an answer stops, and its peer lives */     \
    XX(STATUS, "status")        /* requests are refused, watches end in an    \
                                   ERROR event */                             \
    XX(MODE, "mode")            /* a server refuses, is silent, or is ill */  \
    XX(RESTART, "restart")      /* of an API server */                        \
    XX(COMPACT, "compact")      /* older versions are gone */                 \
    XX(RESTORE, "restore")      /* from a backup: versions go back */         \
    XX(AHEAD, "ahead")          /* the same, with versions moved ahead */     \
    XX(TOKEN, "token")          /* the credentials expire */                  \
    XX(LAG, "lag")              /* one server is behind the others */         \
    XX(STALE, "stale")          /* ... and lists older than asked for */      \
    XX(GARBAGE, "garbage")      /* bytes that are none of this API's */       \
    XX(UNREADABLE, "unreadable") /* an event that says nothing */             \
    XX(KILL, "kill")            /* SIGKILL between two stores */              \
    XX(CRASH, "crash")          /* a fatal signal, with last words */         \
    XX(STOP, "stop")            /* a clean hand-over */                       \
    XX(MEMORY, "memory")        /* allocations fail */                        \
    XX(HUGE, "huge")            /* objects that cannot be held */             \
    XX(FULL, "full")            /* a zone that cannot hold all */             \
    XX(NO_WATCH_LIST, "no_watch_list")                                        \
    XX(MOVE, "move")            /* slices change hands */                     \
    XX(CLOCK, "clock")          /* the wall clock steps */

typedef enum {
#define XX(name, text)  SIM_FAULT_##name,
    SIM_FAULT_MAP(XX)
#undef XX
    SIM_FAULTS
} sim_fault_t;

#define SIM_FAULT(name)  (1u << SIM_FAULT_##name)
#define SIM_FAULTS_ALL   ((1u << SIM_FAULTS) - 1)


/* One object at one version; of a deleted one, the version of that. */
typedef struct {
    unsigned  key;
    bool      live;
    bool      huge;            /* cannot be held */
    unsigned  service;         /* slices: of the same namespace; SIM_SERVICES:
                                  of none */
    unsigned  endpoints;       /* slices */
    unsigned  stamp;           /* content: every address says it */
    unsigned  uid;
    uint64_t  rv;
} sim_state_t;

typedef struct {
    uint64_t       count;
    kube_digest_t  digest;
} sim_sum_t;

/*
 * One change, and what is true after it: what a scope's record has to say, and
 * which slices each Service has, as one number.
 */
typedef struct {
    uint64_t     at;           /* version of the cluster; the object's rv is the
                                  same, but for what a backup brought back */
    sim_state_t  state;
    sim_sum_t    sums[SIM_SHAPES][SIM_NAMESPACES];
    uint64_t     sets[SIM_NAMESPACES][SIM_SERVICES];
    ptrdiff_t    before;       /* the change of the same key before; -1 */
} sim_change_t;

/* One past of the cluster, from what it began with: changes [0, base). */
typedef struct {
    sim_change_t  *log;
    size_t         n;
    size_t         cap;
    size_t         base;
    uint64_t       rv;         /* now */
    ptrdiff_t      last[SIM_KEYS];
} sim_era_t;

typedef struct {
    sim_era_t  eras[SIM_ERAS];
    unsigned   era;            /* the present one */
    size_t     point;          /* a jump followed this change; 0: none can be
                                  gone back to */
    uint64_t   newest;         /* version that was ever given */
    unsigned   stamp;
    uint64_t   changes;
} sim_etcd_t;


typedef enum {
    SIM_MODE_WELL = 0,
    SIM_MODE_REFUSED,          /* no TCP */
    SIM_MODE_TLS,
    SIM_MODE_SILENT,           /* packets are dropped */
    SIM_MODE_STATUS,           /* code, retry_after_s */
    SIM_MODE_HTML,
    SIM_MODE_NO_HTTP,
    SIM_MODE_MUTE,             /* a proxy that holds bodies back */
    SIM_MODES
} sim_mode_t;

typedef struct {
    sim_mode_t   mode;
    uint64_t     until_ms;
    int          code;
    uint32_t     retry_after_s;
    unsigned     era;
    size_t       applied;      /* changes that it knows */
    uint64_t     window;       /* watches begin here or later */
    uint64_t     lag_until_ms;
    sim_state_t  states[SIM_KEYS];
} sim_replica_t;

/* What a list showed on its first page. */
typedef struct {
    uint64_t     id;
    uint64_t     rv;
    sim_state_t  states[SIM_KEYS];
} sim_snapshot_t;


/* What is asked, and how far the answer has come. */
typedef struct {
    bool                            live;
    bool                            headed;
    bool                            paused;
    bool                            held;     /* the head waits for a version */
    bool                            mute;
    uint64_t                        number;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;

    unsigned                        shape;
    unsigned                        ns;       /* SIM_NAMESPACES: all */
    bool                            watch;
    bool                            initial;
    bool                            not_older;
    uint64_t                        rv;       /* 0: "0" or none */
    bool                            no_rv;
    uint32_t                        limit;
    uint64_t                        token;
    unsigned                        token_at;

    unsigned                        replica;
    uint64_t                        started_ms;
    uint64_t                        dead_ms;  /* its peer went; or NEVER */
    uint64_t                        ends_ms;  /* a watch's timeout */
    size_t                          next;     /* a watch: change to be sent */
    uint64_t                        floor;    /* ... if it is newer than this */
    uint64_t                        marked;   /* its last bookmark */

    char                           *out;
    size_t                          out_len;
    size_t                          out_cap;
    size_t                          out_at;
    bool                            last;     /* out is all there is */
    kube_rc_t                       end_rc;   /* ... and ends so */
} sim_exchange_t;

/* The head of an answer, or why there is none. */
typedef struct {
    bool        wait;
    kube_rc_t   rc;            /* but KUBE_OK: the exchange fails */
    int         code;
    uint32_t    retry_after_s;
    const char *type;
} sim_head_t;


/* Memory of the informer process: all of it goes when that is killed. */
typedef struct sim_block_s  sim_block_t;

typedef struct {
    kube_alloc_t  alloc;
    sim_block_t  *blocks;
    size_t        live;
    uint64_t      calls;
    uint64_t      fail_at;     /* the call that fails; 0: none */
    uint64_t      fail_until;  /* and all before this one */
    bool          failed;
    uint64_t      failed_ms;   /* the last time */
} sim_memory_t;

/* The informer process. */
typedef struct {
    kube_informer_t  *inf;     /* NULL: there is none */
    kube_zone_t       zone;    /* its handle */
    sim_memory_t      memory;
    sigjmp_buf        killed;
    bool              inside;  /* a call into it */
    uint64_t          kill_in; /* dies at this store from now; 0: at none */
    bool              words;   /* ... of a signal, with last words */
    uint64_t          start_ms;
    uint64_t          calls;   /* of process() */
    unsigned          number;
} sim_process_t;


/* Where in the past something was seen last. */
typedef struct {
    unsigned   era;
    ptrdiff_t  at;             /* change; -1: before the first */
} sim_place_t;

/* A worker's memory of one Service. */
typedef struct {
    sim_place_t  service;
    sim_place_t  set;
    uint64_t     fingerprint;  /* of the set, when it was there last */
    uint64_t     revision;
} sim_seen_t;

/* One object of the zone, as any process can read it. */
typedef struct {
    bool      there;
    bool      refused;
    bool      outdated;
    uint64_t  rv;
} sim_row_t;

typedef struct {
    sim_row_t      rows[SIM_KEYS];
    unsigned       refused;    /* of the namespaces, outdated included */
    kube_alloc_t   alloc;
    kube_arena_t   arena;
} sim_view_t;

/* What a scope's record said last. */
typedef struct {
    sim_place_t  place;
    uint64_t     rv;
    uint64_t     epoch;
    sim_sum_t    sum;
    uint64_t     unnamed;
    unsigned     died;         /* when a process died last: its past, and up to
                                  which version of that events come again */
    uint64_t     replayed;
} sim_record_t;

typedef enum {
    SIM_HELD_UNKNOWN = 0,
    SIM_HELD,
    SIM_NOT_HELD
} sim_held_t;

typedef struct {
    sim_seen_t    readers[SIM_READERS][SIM_NAMESPACES][SIM_SERVICES];
    sim_record_t  scopes[SIM_SCOPES];
    sim_held_t    told[SIM_KEYS];        /* by the changes of this process */
    uint64_t      revision;
    uint64_t      requests_ms[SIM_SCOPES][64];    /* a ring each */
    uint64_t      requests[SIM_SCOPES];
    uint64_t      not_before_ms[SIM_SCOPES];      /* Retry-After */
    bool          not_listed[SIM_SCOPES];         /* to a list, that was */
    uint64_t      slow_ms;     /* a list was seen to be slow */
    bool          absent[SIM_KEYS];    /* Services, when a process died */
    bool          reading;
    unsigned      pause_in;    /* the worker stops at this load from now, and
                                  the informer goes on; 0: at none */
    bool          paused;      /* it has stopped in this read */
    kube_zone_cursor_t  cursor;          /* a subscriber of the event ring */
    bool          follows;
    sim_row_t     told_rows[SIM_KEYS];   /* what it has been told */
    uint64_t      checks;
    uint64_t      reads;
} sim_check_t;


/* What all runs of one program add up to. */
typedef struct {
    uint32_t  cells[KUBE_REFLECTOR_STATES][KUBE_INPUTS];
    uint64_t  runs;
    uint64_t  steps;
    uint64_t  changes;
    uint64_t  requests;
    uint64_t  kills;
    uint64_t  crashes;
    uint64_t  stops;
    uint64_t  restores;
    uint64_t  checks;
    uint64_t  reads;
    uint64_t  allocations;
    uint64_t  failures;        /* allocations that failed */
    uint64_t  settle_ms;       /* until all was equal, the longest */
    uint64_t  plain_ms;        /* the same of rounds without a backup, a death
                                  or memory that failed */
    uint64_t  requests_max;    /* most in ten seconds, of one scope */
    uint64_t  fired[SIM_FAULTS];
} sim_totals_t;

typedef struct {
    uint64_t       seed;
    unsigned       rounds;
    unsigned       steps;      /* of a round */
    uint32_t       faults;     /* that may be; a run draws some of them */
    uint64_t       fail_at;    /* this allocation fails, once; 0: none */
    bool           verbose;
    sim_totals_t  *totals;
} sim_conf_t;

typedef struct {
    sim_conf_t      conf;
    kube_random_t   random;
    uint32_t        faults;
    bool            quiet;     /* no fault any more */
    bool            restored;  /* from a backup, in this round */
    bool            bookmarks;
    bool            watch_list;    /* the servers have it */
    bool            by_namespace;  /* two of them are followed */
    bool            narrow;        /* the FIFO is */
    bool            fills;         /* lists for room come without need */
    unsigned        namespaces;
    unsigned        endpoints;     /* of a slice, at most */
    unsigned        object_max;    /* bytes */
    uint32_t        page_size;
    kube_watch_list_t  ask;
    kube_str_t      names[SIM_NAMESPACES];

    uint64_t        now_ms;
    int64_t         wall_ms;   /* beside it */
    uint64_t        step;
    uint64_t        trace;     /* a hash of all that has happened */

    sim_etcd_t      etcd;
    sim_replica_t   replicas[SIM_REPLICAS];
    sim_snapshot_t  snapshots[SIM_SNAPSHOTS];
    uint64_t        snapshots_n;
    unsigned        token;     /* of the servers */
    unsigned        sent_token;
    uint64_t        token_ms;  /* when they were read by themselves */

    sim_exchange_t  exchanges[SIM_EXCHANGES];
    uint64_t        started;
    uint64_t        healed;
    bool            unreached; /* something could not be connected to */

    void           *mem;
    size_t          mem_size;
    kube_zone_t     zone;      /* the workers' handle */
    sim_process_t   process;
    sim_view_t      view;
    sim_check_t     check;

    sigjmp_buf      failed;
    char            why[512];
} sim_t;


/* sim.c */

/* One run.  False: a check failed; why[512] says which. */
bool sim_run(const sim_conf_t *conf, char why[512], uint64_t *trace);

/* Ends the run: a check failed.  It does not return. */
void sim_fail(sim_t *s, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* A line of the trace, where it was asked for; counts in the hash anyway. */
void sim_say(sim_t *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* True once in n. */
bool sim_once_in(sim_t *s, unsigned n);
uint64_t sim_draw(sim_t *s, uint64_t low, uint64_t high);

/* True, and counted, if the fault may be and the dice say so: once in n. */
bool sim_fault(sim_t *s, sim_fault_t fault, unsigned n);

const char *sim_fault_text(sim_fault_t fault);


/* A worker that was stopped in the middle of a read: the others go on. */
void sim_meanwhile(sim_t *s);


/* sim_etcd.c: keys, changes, and what was true at each version. */

#define SIM_NS(key)          ((key) / SIM_OBJECTS)
#define SIM_NUMBER(key)      ((key) % SIM_OBJECTS)
#define SIM_SHAPE(key)       (SIM_NUMBER(key) >= SIM_SERVICES)
#define SIM_SERVICE(ns, i)   ((ns) * SIM_OBJECTS + (i))

const char *sim_namespace(unsigned ns);

/* Static text; of the key's name. */
const char *sim_name(unsigned key);

/* The key of an object; SIM_KEYS: none of ours. */
unsigned sim_key(unsigned shape, kube_str_t ns, kube_str_t name);

void sim_etcd_init(sim_t *s);
void sim_etcd_done(sim_t *s);
void sim_etcd_write(sim_t *s);
void sim_etcd_jump(sim_t *s);

/* A backup: false where there is none that can be told from the present. */
bool sim_etcd_restore(sim_t *s, bool ahead);

/* The newest change up to a version; -1: none. */
ptrdiff_t sim_era_find(const sim_era_t *era, uint64_t rv);

/* The change of a key that a version of it came from; -1: none. */
ptrdiff_t sim_era_version(const sim_era_t *era, unsigned key, uint64_t rv);

/* What a set of slices is as one number: the sum of these. */
uint64_t sim_fingerprint(unsigned key, unsigned stamp, unsigned endpoints);


/* sim_server.c: what is answered. */

void sim_servers_init(sim_t *s);
void sim_server_restart(sim_t *s, unsigned replica);

/* A replica learns of up to n changes. */
void sim_server_apply(sim_t *s, unsigned replica, size_t n);

/* The head, and the first bytes into x->out. */
void sim_server_answer(sim_t *s, sim_exchange_t *x, sim_head_t *head);

/* What a watch has to say now, if anything. */
void sim_server_more(sim_t *s, sim_exchange_t *x);

/*
 * Ends a watch at a version that the server has not reached since it was
 * restored: it would be silent until then, and nobody could tell.
 */
void sim_server_expire(sim_t *s, sim_exchange_t *x);

/* The bytes go on with a failure: an ERROR event, or garbage. */
void sim_server_error_event(sim_t *s, sim_exchange_t *x);
void sim_server_garbage(sim_t *s, sim_exchange_t *x);
void sim_server_unreadable(sim_t *s, sim_exchange_t *x);

/* The object of that state as kube_object_t says it, in static memory. */
const kube_object_t *sim_object(const sim_state_t *state);


/* sim_net.c: kube_io_t. */

kube_io_t sim_net_io(sim_t *s);

/* Brings an answer on, up to max bytes at once. */
void sim_net_pump(sim_t *s, sim_exchange_t *x, size_t max);
void sim_net_end(sim_t *s, sim_exchange_t *x, kube_rc_t rc);

/* All exchanges of a replica, or of all: SIM_REPLICAS. */
void sim_net_cut(sim_t *s, unsigned replica, kube_rc_t rc);

/* The sockets of a process that is no more. */
void sim_net_forget(sim_t *s);
void sim_net_done(sim_t *s);

/* What time alone does; and when it does something. */
void sim_net_time(sim_t *s);
uint64_t sim_net_deadline(const sim_t *s);

void sim_out(sim_exchange_t *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


/* sim_beside.c: models beside the FIFO and the turns of lists. */

void sim_beside_init(sim_t *s);


/* sim_process.c: the informer process. */

void sim_process_init(sim_t *s);
void sim_process_start(sim_t *s);
void sim_process_run(sim_t *s);
void sim_process_stop(sim_t *s);

/* Dies now, where it is. */
void sim_process_kill(sim_t *s);

/* After a failure: nothing is looked at any more. */
void sim_process_drop(sim_t *s);


/* sim_check.c: what must hold. */

void sim_check_init(sim_t *s);
void sim_check_done(sim_t *s);
void sim_check_started(sim_t *s);
void sim_check_died(sim_t *s);

/* After the informer process had its turn; whole: it was not killed in it. */
void sim_check_zone(sim_t *s, bool whole);

/* A worker reads a Service, as a request does. */
void sim_check_read(sim_t *s, unsigned reader, unsigned ns, unsigned service);

/* The zone's image and its event ring, as any process can see them. */
void sim_check_image(sim_t *s);

void sim_check_change(void *ctx, kube_change_t change,
    const kube_record_t *record);
void sim_check_time(sim_t *s);
void sim_check_request(sim_t *s, const sim_exchange_t *x);
void sim_check_status(sim_t *s, const sim_exchange_t *x, int code,
    uint32_t retry_after_s);

/* Everything is as the API server has it; NULL, or what is not yet. */
const char *sim_check_equal(sim_t *s);

/* After the last run: the cells that cannot come, and those that did not. */
unsigned sim_check_table(const sim_totals_t *totals, uint32_t least,
    bool print);


#endif /* KUBE_SIM_H */
