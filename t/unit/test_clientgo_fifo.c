/*
 * test_clientgo_fifo - the scenarios of client-go's delta_fifo_test.go,
 * the_real_fifo_test.go and of its stores: a FIFO with the indexer behind it.
 *
 * client-go's queue compares a list with what is known and makes tombstones of
 * it; here the indexer does, when the end of the list comes.  So both are
 * looked at together: what changes the store tells, and what it holds.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"
#include "kube_delta_fifo.h"


#define ZONE  (1u << 20)

typedef struct {
    it_t                it;
    kube_delta_fifo_t  *fifo;
    char                told[1024];     /* "+a ~a -a " */
    size_t              told_len;
} bed_t;

/*
 * What happens: "Ua@1" an ADDED or MODIFIED of a Service a, "Da@2" its end,
 * "Ra@3" an item of a list between "[" and "]", and "|" where the queue is
 * emptied and published.  An upper case name is the same name with another uid.
 *
 * told: what the store tells of it, where the queue is emptied at the end only;
 * told_each: where it is emptied after each word.  holds: in the end.
 */
typedef struct {
    const char  *title;
    const char  *words;
    const char  *told;
    const char  *told_each;
    const char  *holds;
} scenario_t;


static const scenario_t  scenarios[] = {

    { "basic",
      "Ua@1 Ub@2 Ua@3",
      "+a +b ", "+a +b ~a ", "a@3 b@2" },

    { "replaceWithDeleteDeltaIn",
      "Ua@1 | Da@2 [ Ra@3 ]",
      "+a ~a ", "+a -a +a ", "a@3" },

    { "Added object should be deleted on Replace",
      "Ua@2 [ ]",
      "", "+a -a ", "" },

    { "Replaced object should have only a single Delete",
      "Ua@2 [ Ra@2 ] [ ]",
      "", "+a -a ", "" },

    { "Deleted object should have only a single Delete",
      "Ua@2 Da@3 [ ]",
      "", "+a -a ", "" },

    { "Synced objects should have a single delete",
      "Ua@2 [ Ra@2 ] [ Ra@2 ] [ ]",
      "", "+a -a ", "" },

    { "Added objects should have a single delete on multiple Replaces",
      "Ua@2 [ ] [ ]",
      "", "+a -a ", "" },

    { "Added and deleted and added object should be deleted",
      "Ua@2 Da@3 Ua@4 [ ]",
      "", "+a -a +a -a ", "" },

    { "addUpdate",
      "Ua@10 Ua@12 Da@15",
      "", "+a ~a -a ", "" },

    { "enqueueingNoLister: a deletion of what is not known",
      "Ua@10 Ub@15 Uc@17 Dc@18 Dz@20",
      "+a +b ", "+a +b +c -c ", "a@10 b@15" },

    { "enqueueingWithLister: a deletion of what is known",
      "Ua@5 Ub@6 Uz@7 | Ua@10 Ub@15 Dz@20",
      "+a +b +z ~a ~b -z ", "+a +b +z ~a ~b -z ", "a@10 b@15" },

    { "addReplace",
      "Ua@10 [ Ra@15 ]",
      "+a ", "+a ~a ", "a@15" },

    { "DeleteExistingNonPropagated",
      "Ua@5 Da@6",
      "", "+a -a ", "" },

    { "ReplaceMakesDeletions with a deletion in the queue",
      "Ua@5 Ub@6 Uc@7 | Dc@10 [ Ra@5 ]",
      "+a +b +c -b -c ", "+a +b +c -b -c ", "a@5" },

    { "ReplaceMakesDeletions with an object in the queue",
      "Ua@5 Ub@6 Uc@7 | Uc@10 [ Ra@5 ]",
      "+a +b +c -b -c ", "+a +b +c ~c -b -c ", "a@5" },

    { "ReplaceMakesDeletions of what was deleted and made again",
      "Ua@5 Ub@6 Uc@7 | Db@8 Ub@100 [ Ra@5 ]",
      "+a +b +c -b -c ", "+a +b +c -b +b -b -c ", "a@5" },

    { "ReplaceMakesDeletions of what a list brought",
      "Ua@5 Ub@6 Uc@7 | [ Rb@100 Ra@5 ] [ Ra@5 ]",
      "+a +b +c -b -c ", "+a +b +c ~b -b -c ", "a@5" },

    { "ReplaceMakesDeletions of nothing known",
      "Uc@10 [ Ra@5 ]",
      "+a ", "+c +a -c ", "a@5" },

    { "detectLineJumpers",
      "Ua@10 Ub@1 Ua@11 Ua@13 Uc@1",
      "+a +b +c ", "+a +b ~a ~a +c ", "a@13 b@1 c@1" },

    { "Create with no initial objects",
      "[ Ra@1 ]",
      "+a ", "+a ", "a@1" },

    { "Delete all objects",
      "Ua@1 Uc@2 | [ ]",
      "+a +c -a -c ", "+a +c -a -c ", "" },

    { "Create, update, delete",
      "Ua@1 Ub@2 Uc@3 | [ Ra@4 Rb@5 Rd@6 ]",
      "+a +b +c ~a ~b +d -c ", "+a +b +c ~a ~b +d -c ", "a@4 b@5 d@6" },

    /* an item that is as we hold it is told to nobody */
    { "a list of what is held",
      "Ua@1 Ub@2 | [ Ra@1 Rb@2 ]",
      "+a +b ", "+a +b ", "a@1 b@2" },

    { "DELETED with a version above that of the object",
      "Ua@2 | Da@9",
      "+a -a ", "+a -a ", "" },

    { "made again under another uid while the watch was away",
      "Ua@2 | [ RA@9 ]",
      "+a ~a ", "+a ~a ", "a@9" },

    { "the same name twice in one list",
      "[ Ra@1 Ra@2 ]",
      "+a ", "+a ~a ", "a@2" },
};


static void
bed_told(void *ctx, kube_change_t change, const kube_record_t *record)
{
    bed_t             *b = ctx;
    kube_record_id_t   id;

    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    b->told_len += (size_t) snprintf(b->told + b->told_len,
                                     sizeof(b->told) - b->told_len, "%c%.*s ",
                                     "+~-"[change], (int) id.meta.name.len,
                                     id.meta.name.data);
    assert_true(b->told_len < sizeof(b->told));
}


static void
bed_init(bed_t *b)
{
    memset(b, 0, sizeof(bed_t));
    it_zone(&b->it, ZONE);
    b->it.conf.change = bed_told;
    b->it.conf.change_ctx = b;
    assert_int_equal(it_start(&b->it), KUBE_OK);
    assert_int_equal(it_scopes(&b->it), KUBE_OK);
    assert_int_equal(kube_indexer_load(b->it.ix, 1), KUBE_OK);

    b->fifo = kube_delta_fifo_create(&b->it.at.alloc, (kube_seed_t) { 1, 2 },
                                     100, 1u << 20);
    assert_non_null(b->fifo);
}


static void
bed_done(bed_t *b)
{
    kube_delta_fifo_destroy(b->fifo);
    it_done(&b->it);
}


static void
bed_drain(bed_t *b)
{
    kube_delta_t  d;

    while (kube_delta_fifo_peek(b->fifo, &d) == KUBE_OK) {
        assert_int_equal(kube_indexer_apply(b->it.ix, &d, b->it.now_ms),
                         KUBE_OK);
        kube_delta_fifo_drop(b->fifo);
    }

    it_publish(&b->it);
}


static void
bed_put(bed_t *b, const char *word, size_t len)
{
    char               name[2], rv[16];
    kube_port_t        port;
    kube_object_t      o;
    kube_delta_kind_t  kind;

    if (word[0] == '|') {
        bed_drain(b);
        return;
    }

    if (word[0] == '[' || word[0] == ']') {
        assert_int_equal(kube_delta_fifo_put(b->fifo, &(kube_delta_t) {
            .kind = (word[0] == '[') ? KUBE_DELTA_LIST_BEGIN : KUBE_DELTA_SYNC,
            .scope = IT_SERVICES
        }), KUBE_OK);
        return;
    }

    name[0] = word[1];
    name[1] = '\0';
    snprintf(rv, sizeof(rv), "%.*s", (int) (len - 3), word + 3);

    memset(&o, 0, sizeof(o));
    memset(&port, 0, sizeof(port));
    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = KUBE_STR("shop");
    o.u.service.meta.uid = KUBE_STR("one");
    o.u.service.meta.rv = kube_str(rv);

    if (name[0] < 'a') {
        name[0] = (char) (name[0] - 'A' + 'a');
        o.u.service.meta.uid = KUBE_STR("other");
    }

    o.u.service.meta.name = kube_str(name);

    /* content that changes with the version */
    port.port = (uint16_t) strtoul(rv, NULL, 10);
    o.u.service.ports = &port;
    o.u.service.ports_n = 1;

    if (word[0] == 'D') {
        assert_int_equal(kube_delta_fifo_put(b->fifo, &(kube_delta_t) {
            .kind = KUBE_DELTA_DELETED,
            .scope = IT_SERVICES,
            .resource = KUBE_RESOURCE_SERVICES,
            .ns = o.u.service.meta.ns,
            .name = o.u.service.meta.name,
            .rv = o.u.service.meta.rv
        }), KUBE_OK);
        return;
    }

    kind = (word[0] == 'R') ? KUBE_DELTA_REPLACED : KUBE_DELTA_UPDATED;
    assert_int_equal(kube_delta_fifo_object(b->fifo, kind, IT_SERVICES, &o, 1),
                     KUBE_OK);
}


/* "a@3 b@2": the Services that readers find, by the port that is a version. */
static const char *
bed_holds(bed_t *b)
{
    char    name[2], text[64];
    size_t  n;

    static char  holds[256];

    n = 0;
    holds[0] = '\0';
    name[1] = '\0';

    for (name[0] = 'a'; name[0] <= 'z'; name[0]++) {
        it_read(&b->it, "shop", name, text, sizeof(text), NULL);

        if (text[0] != '-') {
            n += (size_t) snprintf(holds + n, sizeof(holds) - n, "%s%s@%lu",
                                   n ? " " : "", name,
                                   strtoul(text, NULL, 10) + 1);
        }
    }

    return holds;
}


/* What a list takes away is told in no order: sorts what stands together. */
static void
bed_sort_deleted(bed_t *b)
{
    char    c;
    size_t  i;

    for (i = 3; i + 1 < b->told_len; /* void */ ) {
        if (i >= 3 && b->told[i] == '-' && b->told[i - 3] == '-'
            && b->told[i - 2] > b->told[i + 1])
        {
            c = b->told[i + 1];
            b->told[i + 1] = b->told[i - 2];
            b->told[i - 2] = c;
            i -= 3;

        } else {
            i += 3;
        }
    }
}


static void
run(const scenario_t *s, bool each)
{
    bed_t        b;
    size_t       len;
    const char  *word, *told;

    bed_init(&b);

    for (word = s->words; *word != '\0'; word += len) {
        word += strspn(word, " ");
        len = strcspn(word, " ");
        bed_put(&b, word, len);

        if (each) {
            bed_drain(&b);
        }
    }

    bed_drain(&b);
    bed_sort_deleted(&b);
    told = each ? s->told_each : s->told;

    if (strcmp(b.told, told) != 0 || strcmp(bed_holds(&b), s->holds) != 0) {
        fail_msg("%s%s: told \"%s\", holds \"%s\"", s->title,
                 each ? ", one by one" : "", b.told, bed_holds(&b));
    }

    bed_done(&b);
}


static void
test_delta_fifo(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        run(&scenarios[i], false);
        run(&scenarios[i], true);
    }
}


/* An index value that nothing has any more is none, and keeps no memory. */
static void
test_delete_removes_empty_sets_from_index(void **state)
{
    it_t         it;
    size_t       before;
    unsigned     i;
    it_object_t  a;
    char         name[24];

    (void) state;

    it_init(&it, ZONE);
    before = 0;

    for (i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "service-%u", i);
        a = it_slice(&it, "shop", "a", name);
        IT_UPDATE(&it, &a);
        it_publish(&it);
        it_delete(&it, &a);
        it_publish(&it);

        if (i == 100) {
            before = it.at.live_bytes;
        }
    }

    assert_true(it.at.live_bytes <= before);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 0);
    it_done(&it);
}


/* Of two that have a value, the one that stays is still found. */
static void
test_add_keeps_non_empty_set_post_delete_from_index(void **state)
{
    it_t         it;
    it_object_t  web, keep, away;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    keep = it_slice(&it, "shop", "keep", "web");
    away = it_slice(&it, "shop", "away", "web");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &keep);
    IT_UPDATE(&it, &away);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 away=1*2 keep=1*2");

    it_delete(&it, &away);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 keep=1*2");
    it_done(&it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_delta_fifo),
        cmocka_unit_test(test_delete_removes_empty_sets_from_index),
        cmocka_unit_test(test_add_keeps_non_empty_set_post_delete_from_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
