/*
 * kube_zone_poison - last words, and the table of what is to blame.
 *
 * kube_zone_poison_say() runs in a signal handler of a process whose memory
 * may be damaged: it calls nothing but pure functions of this project, makes
 * no allocation, and stores that there are words last of all.  All else is
 * for the next writer, who trusts none of them.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_poison.h"


/* Deaths of one key that refuse it. */
#define POISON_DEATHS   2

/* A key as bytes: resource, namespace, name; see poison_key(). */
#define POISON_KEY_MAX  (2 + KUBE_KEY_LEN_MAX)

static_assert(KUBE_ZONE_POISON_TEXT * sizeof(uint64_t)
              >= KUBE_NAMESPACE_LEN_MAX + KUBE_NAME_LEN_MAX,
              "a key has room among the last words");


const char *
kube_stage_text(kube_stage_t stage)
{
    static const char *const  texts[] = {
#define XX(name, text)  text,
        KUBE_STAGE_MAP(XX)
#undef XX
    };

    return ((unsigned) stage < KUBE_STAGES) ? texts[stage] : "unknown";
}


static bool
poison_has_key(kube_str_t ns, kube_str_t name)
{
    return ns.len != 0 && ns.len <= KUBE_NAMESPACE_LEN_MAX
           && name.len != 0 && name.len <= KUBE_NAME_LEN_MAX;
}


/* Two names never make one key: the namespace ends in a byte of its own. */
static kube_digest_t
poison_key(unsigned kind, kube_str_t ns, kube_str_t name)
{
    char  key[POISON_KEY_MAX];

    key[0] = (char) kind;
    memcpy(&key[1], ns.data, ns.len);
    key[1 + ns.len] = '\0';
    memcpy(&key[2 + ns.len], name.data, name.len);

    return kube_hash128(key, 2 + ns.len + name.len);
}


/* The key's digest, or the frame's. */
static kube_digest_t
poison_digest(const kube_hand_t *what)
{
    if (poison_has_key(*what->ns, *what->name)) {
        return poison_key((unsigned) what->resource * KUBE_BLAMES
                          + (unsigned) what->blame, *what->ns, *what->name);
    }

    return (what->frame != NULL)
           ? kube_hash128(what->frame->data, what->frame->len)
           : (kube_digest_t) { 0, 0 };
}


/* 0: not known. */
static uint64_t
poison_uid(const kube_hand_t *what)
{
    kube_str_t        uid;
    kube_record_id_t  id;

    uid = KUBE_STR_NULL;

    if (what->uid != NULL) {
        uid = *what->uid;

    } else if (what->record != NULL
               && kube_record_id(what->record, what->record->size, &id)
                  == KUBE_OK)
    {
        uid = id.meta.uid;
    }

    return (uid.len == 0) ? 0 : kube_hash128(uid.data, uid.len).lo | 1;
}


/* 0: not known. */
static uint64_t
poison_ns(kube_str_t ns)
{
    return (ns.len == 0) ? 0 : kube_hash128(ns.data, ns.len).lo | 1;
}


static void
poison_text_put(kube_zone_words_t *words, kube_str_t ns, kube_str_t name)
{
    size_t         i;
    uint64_t       word;
    unsigned char  c;

    word = 0;

    for (i = 0; i < ns.len + name.len; i++) {

        c = (unsigned char) ((i < ns.len) ? ns.data[i]
                                          : name.data[i - ns.len]);
        word |= (uint64_t) c << (8 * (i % 8));

        if (i % 8 == 7 || i + 1 == ns.len + name.len) {
            kube_word_set(&words->text[i / 8], word);
            word = 0;
        }
    }
}


void
kube_zone_poison_say(kube_zone_t *zone, const kube_hand_t *hand,
    int signal_number)
{
    kube_digest_t       digest;
    kube_zone_words_t  *words;

    if (hand->stage == KUBE_STAGE_NONE) {
        return;
    }

    words = &zone->image->history.words;

    kube_word_set(&words->stage, (uint64_t) hand->stage);
    kube_word_set(&words->signal_number, (uint64_t) signal_number);
    kube_word_set(&words->scope, hand->scope);
    kube_word_set(&words->resource, hand->resource);
    kube_word_set(&words->ns_len, 0);
    kube_word_set(&words->name_len, 0);
    kube_word_set(&words->uid, 0);

    if (poison_has_key(*hand->ns, *hand->name)) {
        poison_text_put(words, *hand->ns, *hand->name);
        kube_word_set(&words->ns_len, hand->ns->len);
        kube_word_set(&words->name_len, hand->name->len);
    }

    digest = poison_digest(hand);
    kube_word_set(&words->lo, digest.lo);
    kube_word_set(&words->hi, digest.hi);
    kube_word_set(&words->said, 1);

    /* a record may be what is broken: should this fault, the rest is said */
    kube_word_set(&words->uid, poison_uid(hand));
}


/*
 * Escapes the key that the words name; it stays "" where they name none.
 * Returns the hash of its namespace.
 */
static uint64_t
poison_text_get(const kube_zone_words_t *words, kube_death_t *death)
{
    char        text[KUBE_NAMESPACE_LEN_MAX + KUBE_NAME_LEN_MAX];
    size_t      i, n;
    kube_str_t  ns, name;

    ns.data = text;
    ns.len = (size_t) kube_word_get(&words->ns_len);
    name.data = text;
    name.len = (size_t) kube_word_get(&words->name_len);

    if (!poison_has_key(ns, name)) {
        return 0;
    }

    name.data += ns.len;

    for (i = 0; i < ns.len + name.len; i++) {
        text[i] = (char) (kube_word_get(&words->text[i / 8]) >> (8 * (i % 8)));
    }

    n = kube_str_escape(death->key, sizeof(death->key), ns);

    if (n + 2 <= sizeof(death->key)) {
        death->key[n++] = '/';
        (void) kube_str_escape(death->key + n, sizeof(death->key) - n, name);
    }

    return poison_ns(ns);
}


/* The time since the last death; clocks of two processes may differ a bit. */
static uint64_t
poison_age(const kube_zone_blame_t *row, uint64_t now_ms)
{
    uint64_t  last_ms;

    last_ms = kube_word_get(&row->last_ms);

    return (now_ms > last_ms) ? now_ms - last_ms : 0;
}


/* The row of a digest; NULL: there is none. */
static const kube_zone_blame_t *
poison_find(const kube_zone_t *zone, kube_digest_t digest)
{
    unsigned                  i;
    const kube_zone_blame_t  *row;

    for (i = 0; i < KUBE_POISON_ROWS; i++) {
        row = &zone->image->history.blame[i];

        if (kube_word_get(&row->crashes) != 0
            && kube_word_get(&row->lo) == digest.lo
            && kube_word_get(&row->hi) == digest.hi)
        {
            return row;
        }
    }

    return NULL;
}


/* A row for a digest that has none: a free one, or the oldest. */
static kube_zone_blame_t *
poison_row(kube_zone_t *zone)
{
    unsigned            i;
    kube_zone_blame_t  *row, *oldest;

    oldest = zone->image->history.blame;

    for (i = 0; i < KUBE_POISON_ROWS; i++) {
        row = &zone->image->history.blame[i];

        if (kube_word_get(&row->crashes) == 0) {
            return row;
        }

        if (kube_word_get(&row->last_ms) < kube_word_get(&oldest->last_ms)) {
            oldest = row;
        }
    }

    return oldest;
}


/* How often it died of a row's object before, as far as that still counts. */
static uint64_t
poison_deaths(const kube_zone_blame_t *row, uint64_t uid, uint64_t now_ms)
{
    uint64_t  deaths, known, counts_ms;

    deaths = kube_word_get(&row->crashes);
    known = kube_word_get(&row->uid);

    /* the trial comes when the time is over, and is not at once */
    counts_ms = (deaths >= POISON_DEATHS) ? 2 * KUBE_POISON_MS
                                          : KUBE_POISON_MS;

    if ((uid != 0 && known != 0 && uid != known)
        || poison_age(row, now_ms) > counts_ms)
    {
        return 0;
    }

    return deaths;
}


bool
kube_zone_poison_take(kube_zone_t *zone, uint64_t now_ms,
    kube_death_t *death)
{
    uint64_t                  deaths, uid, ns;
    kube_digest_t             digest;
    kube_zone_words_t        *words;
    kube_zone_blame_t        *row;
    const kube_zone_blame_t  *found;

    words = &zone->image->history.words;
    memset(death, 0, sizeof(kube_death_t));

    if (kube_word_get(&words->said) == 0) {
        return false;
    }

    death->stage = (kube_stage_t) kube_word_get(&words->stage);
    death->signal_number = (int) kube_word_get(&words->signal_number);
    death->scope = (unsigned) kube_word_get(&words->scope);
    death->resource = (kube_resource_t) kube_word_get(&words->resource);
    ns = poison_text_get(words, death);

    digest.lo = kube_word_get(&words->lo);
    digest.hi = kube_word_get(&words->hi);
    uid = kube_word_get(&words->uid);

    kube_word_set(&words->said, 0);

    if (death->scope >= KUBE_SCOPES_MAX
        || (unsigned) death->resource >= KUBE_RESOURCES_ROUTED
        || (digest.lo == 0 && digest.hi == 0))
    {
        return false;
    }

    found = poison_find(zone, digest);
    deaths = (found == NULL) ? 0 : poison_deaths(found, uid, now_ms);

    row = (found == NULL)
          ? poison_row(zone)
          : &zone->image->history.blame[found - zone->image->history.blame];

    kube_word_set(&row->lo, digest.lo);
    kube_word_set(&row->hi, digest.hi);
    kube_word_set(&row->uid, uid);
    kube_word_set(&row->scope, death->scope);
    kube_word_set(&row->resource, death->resource);
    kube_word_set(&row->ns, ns);
    kube_word_set(&row->last_ms, now_ms);
    kube_word_set(&row->tried, 0);
    kube_word_set(&row->crashes, deaths + 1);
    kube_word_set(&zone->image->history.blamed, 1);

    death->crashes = deaths + 1;
    death->refused = (death->crashes >= POISON_DEATHS);

    return true;
}


bool
kube_zone_poison_is_known(const kube_zone_t *zone)
{
    return kube_word_get(&zone->image->history.blamed) != 0;
}


bool
kube_zone_poison_refuses(const kube_zone_t *zone, const kube_hand_t *what)
{
    uint64_t                  uid, known;
    const kube_zone_blame_t  *row;

    if (!kube_zone_poison_is_known(zone)) {
        return false;
    }

    row = poison_find(zone, poison_digest(what));

    if (row == NULL
        || kube_word_get(&row->crashes) < POISON_DEATHS
        || poison_age(row, what->now_ms) >= KUBE_POISON_MS)
    {
        return false;
    }

    uid = poison_uid(what);
    known = kube_word_get(&row->uid);

    return uid == 0 || known == 0 || uid == known;
}


bool
kube_zone_poison_trial(kube_zone_t *zone, uint64_t now_ms,
    kube_trial_t *trial)
{
    unsigned            i;
    uint64_t            age_ms, crashes, blamed;
    kube_zone_blame_t  *row;

    if (kube_word_get(&zone->image->history.blamed) == 0) {
        return false;
    }

    blamed = 0;

    for (i = 0; i < KUBE_POISON_ROWS; i++) {
        row = &zone->image->history.blame[i];

        crashes = kube_word_get(&row->crashes);
        age_ms = poison_age(row, now_ms);

        if (crashes != 0 && age_ms > 2 * KUBE_POISON_MS) {
            kube_word_set(&row->crashes, 0);
            crashes = 0;
        }

        blamed |= (crashes != 0);

        if (crashes < POISON_DEATHS
            || age_ms < KUBE_POISON_MS
            || kube_word_get(&row->tried) != 0)
        {
            continue;
        }

        kube_word_set(&row->tried, 1);

        trial->resource = (kube_resource_t) kube_word_get(&row->resource);
        trial->ns = kube_word_get(&row->ns);
        trial->scope = (unsigned) kube_word_get(&row->scope);

        return true;
    }

    kube_word_set(&zone->image->history.blamed, blamed);

    return false;
}


bool
kube_trial_concerns(const kube_trial_t *trial, unsigned scope,
    kube_resource_t resource, kube_str_t ns)
{
    if (trial->ns == 0) {
        return scope == trial->scope;
    }

    return resource == trial->resource
           && (ns.len == 0 || poison_ns(ns) == trial->ns);
}
