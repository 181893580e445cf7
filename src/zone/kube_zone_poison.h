/*
 * kube_zone_poison - objects that kill the process: who was in hand when it
 * died, and which keys are refused for it.
 *
 * Nothing is stored in the zone per event.  The process keeps pointers to what
 * it has in hand (kube_hand_t); the handler of a fatal signal writes the last
 * words into the image; the next writer takes them as it takes over.  A death
 * without words (SIGKILL, out of memory) blames nobody.
 *
 * Two deaths of one key within KUBE_POISON_MS: it is refused, in any version,
 * for so long after the last of them, or until its uid is another.  Then it
 * gets one trial: one more death refuses it again.  A zone does not outlive
 * the build that made it (a binary upgrade makes a new one), so a new build
 * begins without blame.
 *
 * It installs no handler and logs nothing: the host and kube_informer do.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_POISON_H
#define KUBE_ZONE_POISON_H


#include <stdatomic.h>

#include "kube_record.h"
#include "kube_zone.h"


/* What is done with what is in hand; the text is the log's. */
#define KUBE_STAGE_MAP(XX)                                                    \
    XX(NONE, "none")                                                          \
    XX(DECODE, "decode")      /* from its frame to a record in the FIFO */    \
    XX(APPLY, "apply")        /* from the FIFO into the zone */               \
    XX(PUBLISH, "publish")    /* a Service with its slices, for readers */    \
    XX(WALK, "walk")          /* a record, as the zone is taken over */       \
    XX(STATE, "state_file")   /* from a state file into the zone */

typedef enum {
#define XX(name, text)  KUBE_STAGE_##name,
    KUBE_STAGE_MAP(XX)
#undef XX
    KUBE_STAGES
} kube_stage_t;

/* The text; "unknown" for a foreign value. */
const char *kube_stage_text(kube_stage_t stage);

/*
 * What of a key is to blame: each apart, so that what is good of it is not
 * refused for the rest.
 */
typedef enum {
    KUBE_BLAME_OBJECT = 0,      /* as it comes, in any version */
    KUBE_BLAME_SERVICE,         /* with its slices, as it is published */
    KUBE_BLAME_RECORD,          /* as it lies in the zone */
    KUBE_BLAMES
} kube_blame_t;

/*
 * The process's own, never in shared memory.  All pointers are valid while
 * stage is not NONE; each may be NULL but ns and name.  A name of length 0, or
 * one that no object can have: the key is not known, and the frame is blamed.
 */
typedef struct kube_hand_s {
    volatile int            stage;        /* set last, cleared first */
    uint64_t                now_ms;       /* the owner's clock, monotonic */
    unsigned                scope;
    kube_resource_t         resource;
    kube_blame_t            blame;
    const kube_str_t       *ns;
    const kube_str_t       *name;
    const kube_str_t       *uid;          /* NULL: look into record */
    const kube_str_t       *frame;
    const kube_record_t    *record;
} kube_hand_t;


/* Takes *what, whose stage is NONE, in hand. */
static inline void
kube_hand_take(kube_hand_t *hand, const kube_hand_t *what, kube_stage_t stage)
{
    *hand = *what;
    atomic_signal_fence(memory_order_seq_cst);
    hand->stage = (int) stage;
}


/* Nothing any more; NULL: there is no hand to empty. */
static inline void
kube_hand_leave(kube_hand_t *hand)
{
    if (hand != NULL) {
        hand->stage = KUBE_STAGE_NONE;
    }
}


/*
 * The last words of a process that holds the guard and dies of signal_number.
 * May be called from a handler; does nothing where the hand is empty.
 */
void kube_zone_poison_say(kube_zone_t *zone, const kube_hand_t *hand,
    int signal_number);

/* What a predecessor died of. */
typedef struct {
    kube_stage_t     stage;
    int              signal_number;
    unsigned         scope;
    kube_resource_t  resource;
    char             key[KUBE_KEY_LEN_MAX + 1];    /* escaped; "": not known */
    uint64_t         crashes;      /* of this key (or frame) */
    bool             refused;      /* from now on */
} kube_death_t;

/*
 * Takes the last words, if there are any, and notes the blame.  For who has
 * just taken the guard.  False: nobody is to blame.
 */
bool kube_zone_poison_take(kube_zone_t *zone, uint64_t now_ms,
    kube_death_t *death);

/* False: nothing is refused, and nobody need be described. */
bool kube_zone_poison_is_known(const kube_zone_t *zone);

/* True: what is described as in a hand is refused at its now_ms. */
bool kube_zone_poison_refuses(const kube_zone_t *zone,
    const kube_hand_t *what);

/*
 * Whose trial it is.  A scope's number changes with the configuration, and who
 * dies of a record in the zone does not know it: what tells the scope is the
 * key, and the number only where that is not known.
 */
typedef struct {
    kube_resource_t  resource;
    uint64_t         ns;           /* hash of the namespace; 0: not known */
    unsigned         scope;
} kube_trial_t;

/*
 * The next object that is to have its trial, each once; false: there is none.
 * For the writer, who lists the scopes that it concerns again: nothing else
 * would bring the object before it changes.
 */
bool kube_zone_poison_trial(kube_zone_t *zone, uint64_t now_ms,
    kube_trial_t *trial);

/* Whether a list of this scope may bring it; ns "": all namespaces. */
bool kube_trial_concerns(const kube_trial_t *trial, unsigned scope,
    kube_resource_t resource, kube_str_t ns);


#endif /* KUBE_ZONE_POISON_H */
