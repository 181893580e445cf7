/*
 * test_service_index - groups and their members, against a model; the life of
 * a member.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_service_index.h"


#define ENTRIES   200
#define GROUPS    7

static const kube_seed_t  seed = { 1, 2 };


static void
test_index_groups(void **state)
{
    char                   name[24];
    unsigned               i;
    kube_group_t          *web, *group;
    alloc_test_t           at;
    kube_service_index_t   index;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(kube_service_index_init(&index, &at.alloc, seed, 8),
                     KUBE_OK);

    web = kube_service_index_get(&index, KUBE_STR("shop"), KUBE_STR("web"));
    assert_non_null(web);
    assert_true(kube_str_eq(kube_group_ns(web), KUBE_STR("shop")));
    assert_true(kube_str_eq(kube_group_name(web), KUBE_STR("web")));
    assert_true(kube_group_is_empty(web));
    assert_int_equal(web->scope[0], KUBE_SCOPES_MAX);

    /* no two keys are one, however they are cut; "" is a name */
    assert_ptr_not_equal(kube_service_index_get(&index, KUBE_STR("shopw"),
                                                KUBE_STR("eb")), web);
    assert_ptr_not_equal(kube_service_index_get(&index, KUBE_STR("shop"),
                                                KUBE_STR_NULL), web);
    assert_ptr_equal(kube_service_index_get(&index, KUBE_STR("shop"),
                                            KUBE_STR("web")), web);

    for (i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        group = kube_service_index_get(&index, KUBE_STR("shop"),
                                       kube_str(name));
        assert_non_null(group);

        if (i % 2 == 0) {
            kube_service_index_remove(&index, group);
        }
    }

    assert_int_equal(index.groups.n, 503);
    group = kube_service_index_get(&index, KUBE_STR("shop"), KUBE_STR("n1"));
    assert_int_equal(index.groups.n, 503);

    /* a group in use is not empty */
    group->pins++;
    assert_false(kube_group_is_empty(group));

    kube_service_index_clear(&index, index.entries_n);
    assert_int_equal(index.groups.n, 0);
    kube_service_index_done(&index, index.entries_n);
    alloc_test_assert_no_leak(&at);
}


/* The lists of all groups, counted, both ways. */
static void
index_check(const kube_service_index_t *index, kube_group_t **groups,
    const unsigned *in)
{
    unsigned              g, n, expected;
    uint32_t              i, prev;
    const kube_member_t  *member;

    for (g = 1; g < GROUPS; g++) {
        n = 0;
        prev = 0;

        for (i = groups[g]->slices; i != 0; i = member->next) {
            member = &index->members[i];
            assert_int_equal(in[i], g);
            assert_int_equal(member->prev, prev);
            assert_ptr_equal(member->group, groups[g]);
            prev = i;
            n++;
        }

        expected = 0;

        for (i = GROUPS + 1; i <= ENTRIES; i++) {
            expected += (in[i] == g);
        }

        assert_int_equal(n, expected);
        assert_int_equal(groups[g]->slices_n, n);
        assert_int_equal(groups[g]->service, in[g] == g ? g : 0);
    }
}


static void
test_index_members(void **state)
{
    char                   name[8];
    unsigned               g, step, in[ENTRIES + 1];
    uint32_t               i;
    alloc_test_t           at;
    kube_group_t          *groups[GROUPS];
    kube_random_t          random;
    kube_service_index_t   index;

    (void) state;

    alloc_test_init(&at);
    kube_random_init(&random, 7);
    memset(in, 0, sizeof(in));
    assert_int_equal(kube_service_index_init(&index, &at.alloc, seed,
                                             ENTRIES), KUBE_OK);

    for (g = 1; g < GROUPS; g++) {
        snprintf(name, sizeof(name), "g%u", g);
        groups[g] = kube_service_index_get(&index, KUBE_STR("shop"),
                                           kube_str(name));
        assert_non_null(groups[g]);
    }

    /* entries up to GROUPS are Services of the group of their number */
    for (i = 1; i <= ENTRIES; i++) {
        index.members[i].resource = (i <= GROUPS)
                                    ? KUBE_RESOURCE_SERVICES
                                    : KUBE_RESOURCE_ENDPOINTSLICES;
        assert_int_equal(kube_member_is_service(&index.members[i]),
                         i <= GROUPS);
    }

    for (step = 0; step < 20000; step++) {
        i = (uint32_t) kube_random_range(&random, 1, ENTRIES);

        if (i == GROUPS) {
            continue;
        }

        if (in[i] != 0) {
            kube_service_index_unlink(&index, i);
            assert_null(index.members[i].group);
            in[i] = 0;

        } else {
            in[i] = (i < GROUPS)
                    ? i : (unsigned) kube_random_range(&random, 1, GROUPS - 1);
            kube_service_index_link(&index, groups[in[i]], i);
        }

        if (step % 50 == 0) {
            index_check(&index, groups, in);
        }
    }

    kube_service_index_done(&index, index.entries_n);
    alloc_test_assert_no_leak(&at);
}


/* Lives that an object can have: N none, S, L, R, D, X refused. */
static const char  *const lives[] = {
    "NSRSRLSRD",        /* in a Service that goes and comes back */
    "NSLRRSSDSR",       /* an orphan that finds its Service */
    "NSLSLDDS",         /* a Service */
    "NLR",              /* found at take-over */
    "NX",               /* refused before it was held */
    "NR"
};


static void
test_index_life(void **state)
{
    size_t                 i;
    const char            *life;
    alloc_test_t           at;
    kube_member_t         *member;
    kube_service_index_t   index;

    static const char  letters[] = "NSLRDX";

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(kube_service_index_init(&index, &at.alloc, seed, 2),
                     KUBE_OK);
    member = &index.members[1];

    for (i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
        assert_int_equal(member->life, KUBE_LIFE_NONE);

        for (life = lives[i] + 1; *life != '\0'; life++) {
            kube_member_set(member, (kube_life_t) (strchr(letters, *life)
                                                   - letters));
            assert_int_equal(letters[member->life], *life);
        }

        /* whatever it was, it ends as nothing, and keeps nothing */
        member->refusal = kube_alloc(&at.alloc, sizeof(kube_refusal_t));
        assert_non_null(member->refusal);
        member->referenced_by = 2;
        kube_service_index_forget(&index, 1);
        assert_null(member->refusal);
        assert_int_equal(member->referenced_by, 0);
    }

    /* clear and done free what a member keeps, too */
    member->refusal = kube_alloc(&at.alloc, sizeof(kube_refusal_t));
    kube_service_index_clear(&index, index.entries_n);
    assert_null(member->refusal);
    member->refusal = kube_alloc(&at.alloc, sizeof(kube_refusal_t));
    kube_service_index_done(&index, index.entries_n);
    alloc_test_assert_no_leak(&at);
}


#define CHAIN  (KUBE_CHAIN_MAX + 8)

/* Services s0 to s(CHAIN - 1) have the rows 1 to CHAIN. */
typedef struct {
    alloc_test_t           at;
    kube_service_index_t   index;
    kube_group_t          *groups[CHAIN];
    uint32_t               slices;            /* made */
} chain_bed_t;


static void
chain_init(chain_bed_t *bed)
{
    char      name[8];
    unsigned  i;

    memset(bed, 0, sizeof(chain_bed_t));
    alloc_test_init(&bed->at);
    assert_int_equal(kube_service_index_init(&bed->index, &bed->at.alloc,
                                             seed, 3 * CHAIN), KUBE_OK);

    for (i = 0; i < CHAIN; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        bed->groups[i] = kube_service_index_get(&bed->index,
                                                KUBE_STR("shop"),
                                                kube_str(name));
        assert_non_null(bed->groups[i]);
        bed->index.members[i + 1].resource = KUBE_RESOURCE_SERVICES;
        kube_service_index_link(&bed->index, bed->groups[i], i + 1);
    }
}


/* A slice that one names has come to another one. */
static void
chain_move(chain_bed_t *bed, unsigned from, unsigned to)
{
    uint32_t  entry;

    entry = CHAIN + ++bed->slices;
    bed->index.members[entry].resource = KUBE_RESOURCE_ENDPOINTSLICES;
    bed->index.members[entry].referenced_by = from + 1;
    kube_service_index_link(&bed->index, bed->groups[to], entry);
}


static void
chain_done(chain_bed_t *bed)
{
    kube_service_index_clear(&bed->index, 3 * CHAIN);
    kube_service_index_done(&bed->index, 3 * CHAIN);
    alloc_test_assert_no_leak(&bed->at);
}


/* Whom a group waits for, as "s3 s1 ". */
static void
chain_text(chain_bed_t *bed, unsigned of, char *text, size_t size)
{
    size_t        len;
    unsigned      i;
    kube_str_t    name;
    kube_chain_t  chain;

    kube_service_index_chain(&bed->index, bed->groups[of], &chain);
    text[0] = '\0';

    for (i = 0, len = 0; i < chain.n && len < size; i++) {
        name = kube_group_name(chain.groups[i]);
        len += (size_t) snprintf(text + len, size - len, "%.*s ",
                                 (int) name.len, name.data);
    }
}


#define CHAIN_OF(bed, of, expected)                                           \
    do {                                                                      \
        char  chain_buf[64];                                                  \
                                                                              \
        chain_text(bed, of, chain_buf, sizeof(chain_buf));                    \
        assert_string_equal(chain_buf, expected);                             \
    } while (0)


/* Who is waited for comes before who waits, and each once. */
static void
test_index_chain(void **state)
{
    unsigned      i;
    chain_bed_t   bed;
    kube_chain_t  chain;

    (void) state;
    chain_init(&bed);
    CHAIN_OF(&bed, 0, "");

    /* its own, and what nobody names, is waited for by nobody */
    chain_move(&bed, 0, 0);
    bed.index.members[CHAIN + ++bed.slices].resource =
                                               KUBE_RESOURCE_ENDPOINTSLICES;
    kube_service_index_link(&bed.index, bed.groups[0], CHAIN + bed.slices);
    CHAIN_OF(&bed, 0, "");

    /* 3 to 1 and 2, these to 0 */
    chain_move(&bed, 1, 0);
    chain_move(&bed, 2, 0);
    chain_move(&bed, 2, 0);
    chain_move(&bed, 3, 1);
    chain_move(&bed, 3, 2);
    CHAIN_OF(&bed, 0, "s3 s2 s1 ");
    CHAIN_OF(&bed, 1, "s3 ");
    CHAIN_OF(&bed, 3, "");

    /* a circle: the others, once each */
    chain_move(&bed, 0, 3);
    CHAIN_OF(&bed, 0, "s3 s2 s1 ");
    CHAIN_OF(&bed, 3, "s2 s1 s0 ");

    /* the Service that named it has gone */
    kube_service_index_unlink(&bed.index, 4);
    CHAIN_OF(&bed, 0, "s2 s1 ");
    chain_done(&bed);

    /* as many as there is place for: the nearest */
    chain_init(&bed);

    for (i = 1; i < CHAIN; i++) {
        chain_move(&bed, i, i - 1);
    }

    kube_service_index_chain(&bed.index, bed.groups[0], &chain);
    assert_int_equal(chain.n, KUBE_CHAIN_MAX);
    assert_ptr_equal(chain.groups[0], bed.groups[KUBE_CHAIN_MAX]);
    assert_ptr_equal(chain.groups[KUBE_CHAIN_MAX - 1], bed.groups[1]);
    chain_done(&bed);
}


static void
test_index_refusal(void **state)
{
    kube_refusal_t  refusal;

    (void) state;

    kube_refusal_set_rv(&refusal, KUBE_STR("1234"));
    assert_true(kube_str_eq(kube_rv_str(&refusal.rv), KUBE_STR("1234")));
    kube_refusal_set_rv(&refusal, KUBE_STR("012"));
    assert_int_equal(refusal.rv.len, 0);
    kube_refusal_set_rv(&refusal, KUBE_STR_NULL);
    assert_int_equal(refusal.rv.len, 0);
}


static kube_rc_t
index_oom(kube_alloc_t *alloc, void *ctx)
{
    char                   name[8];
    unsigned               i;
    kube_rc_t              rc;
    kube_service_index_t   index;

    (void) ctx;

    rc = kube_service_index_init(&index, alloc, seed, 10);

    if (rc != KUBE_OK) {
        return rc;
    }

    /* as many as fit without another table */
    for (i = 0; i < 10 && rc == KUBE_OK; i++) {
        snprintf(name, sizeof(name), "n%u", i);

        if (kube_service_index_get(&index, KUBE_STR("shop"), kube_str(name))
            == NULL)
        {
            rc = KUBE_NOMEM;
        }
    }

    kube_service_index_done(&index, index.entries_n);

    return rc;
}


static void
test_index_oom(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(index_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_index_groups),
        cmocka_unit_test(test_index_members),
        cmocka_unit_test(test_index_life),
        cmocka_unit_test(test_index_chain),
        cmocka_unit_test(test_index_refusal),
        cmocka_unit_test(test_index_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
