/*
 * test_protobuf_frame - items and events of Protocol Buffers whatever the
 * pieces the bytes arrive in, and whatever is wrong with them.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "kube_limits.h"
#include "kube_protobuf_frame.h"
#include "message_test.h"


#define LOG_MAX  2048

/* What a run gave, as text: a word an item, then how it ended. */
typedef struct {
    char    text[LOG_MAX];
    size_t  len;
} frame_log_t;


static void
log_add(frame_log_t *log, const char *format, ...)
{
    int      n;
    va_list  args;

    va_start(args, format);
    n = vsnprintf(log->text + log->len, LOG_MAX - log->len, format, args);
    va_end(args);

    assert_true(n >= 0 && (size_t) n < LOG_MAX - log->len);
    log->len += (size_t) n;
}


static void
log_item(frame_log_t *log, const kube_frame_item_t *item)
{
    const kube_envelope_t  *e;

    e = &item->envelope;

    switch (item->kind) {

    case KUBE_FRAME_KIND:
        log_add(log, "K%.*s ", (int) item->bytes.len, item->bytes.data);
        break;

    case KUBE_FRAME_METADATA:
        log_add(log, "M%zu ", item->bytes.len);
        break;

    case KUBE_FRAME_ITEM:
    case KUBE_FRAME_SKIPPED:
        assert_true(e->protobuf);
        assert_int_equal(e->too_large, item->kind == KUBE_FRAME_SKIPPED);
        assert_int_equal(item->bytes.data == NULL,
                         item->kind == KUBE_FRAME_SKIPPED);
        assert_true(!e->too_large || e->object.data == NULL);

        log_add(log, "%s%s%.*s:%.*s:%zu%s ",
                (item->kind == KUBE_FRAME_ITEM) ? "I" : "S",
                (e->type.len != 0) ? "+" : "",
                (int) e->meta.name.len, e->meta.name.data,
                (int) e->meta.rv.len, e->meta.rv.data, item->size_bytes,
                (e->what != NULL) ? "?" : "");
        break;

    default:
        fail_msg("an item of kind %d", (int) item->kind);
    }
}


/* False: the stream is lost.  A piece lies in memory of its own. */
static bool
frame_piece(kube_protobuf_frame_t *frame, alloc_test_t *at, const char *data,
    size_t len, frame_log_t *log)
{
    char               *copy;
    bool                again;
    kube_rc_t           rc;
    kube_str_t          in;
    kube_frame_item_t   item;

    copy = malloc(len != 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, data, len);
    in = (kube_str_t) { copy, len };
    again = true;

    for ( ;; ) {
        rc = kube_protobuf_frame_next(frame, &in, &item);

        if (rc == KUBE_NOMEM && again) {
            alloc_test_heal(at);
            again = false;
            continue;
        }

        if (rc != KUBE_OK) {
            break;
        }

        log_item(log, &item);
    }

    free(copy);
    assert_true(rc == KUBE_PROTO || (rc == KUBE_AGAIN && in.len == 0));

    return rc == KUBE_AGAIN;
}


/* Pieces of step bytes; 0: cut at a and b. */
static void
frame_run(kube_frame_mode_t mode, kube_str_t bytes, size_t step, size_t a,
    size_t b, size_t fail_at, frame_log_t *log)
{
    bool                    good;
    size_t                  at, n;
    alloc_test_t            alloc;
    kube_protobuf_frame_t  *frame;

    log->len = 0;
    log->text[0] = '\0';

    alloc_test_init(&alloc);
    frame = kube_protobuf_frame_create(&alloc.alloc, mode,
                                       KUBE_OBJECT_BYTES_MIN);
    assert_non_null(frame);

    if (fail_at != 0) {
        alloc_test_fail(&alloc, fail_at, false);
    }

    good = true;

    for (at = 0; at < bytes.len && good; at += n) {
        n = (step != 0) ? step : (at < a) ? a - at : (at < b) ? b - at
                                                             : bytes.len - at;
        n = (n < bytes.len - at) ? n : bytes.len - at;
        good = frame_piece(frame, &alloc, bytes.data + at, n, log);
    }

    /* what is lost stays lost, whatever comes */

    if (!good) {
        assert_false(frame_piece(frame, &alloc, "\0\0\0\0", 4, log));
        assert_false(kube_protobuf_frame_end(frame));
    }

    log_add(log, "%s", !good ? "!"
                       : (mode == KUBE_FRAME_LIST
                          && kube_protobuf_frame_end(frame)) ? "E"
                       : kube_protobuf_frame_partial(frame) ? "~" : ".");

    kube_protobuf_frame_destroy(frame);
    alloc_test_assert_no_leak(&alloc);
}


/* The same however it is cut. */
static void
frame_check(kube_frame_mode_t mode, kube_str_t bytes, const char *expected)
{
    size_t       a, b, step;
    frame_log_t  log;

    frame_run(mode, bytes, bytes.len + 1, 0, 0, 0, &log);

    if (strcmp(log.text, expected) != 0) {
        print_error("%zu bytes, the fifth %02x\n", bytes.len,
                    bytes.len > 4 ? (unsigned char) bytes.data[4] : 0u);
    }

    assert_string_equal(log.text, expected);

    for (a = 0; a <= bytes.len; a++) {
        b = (a * 7) % (bytes.len + 1);
        frame_run(mode, bytes, 0, (a < b) ? a : b, (a < b) ? b : a, 0, &log);
        assert_string_equal(log.text, expected);
    }

    for (step = 1; step < 20; step++) {
        frame_run(mode, bytes, step, 0, 0, 0, &log);
        assert_string_equal(log.text, expected);
    }
}


static void
put_item(message_t *m, unsigned number, const char *name, size_t more)
{
    char       text[MESSAGE_MAX];
    message_t  item;

    item.len = 0;
    message_meta(&item, 1, "shop", name, "u", "7");

    if (more != 0) {
        memset(text, 'x', more);
        message_bytes(&item, 99, (kube_str_t) { text, more });
    }

    message_bytes(m, number, message_str(&item));
}


static void
put_list(message_t *m, const message_t *raw)
{
    message_unknown(m, "v1", "ServiceList", message_str(raw));
}


static void
test_frame_list(void **state)
{
    message_t  m, raw;

    (void) state;

    raw.len = 0;
    message_text(&raw, 1, "meta");
    put_item(&raw, 2, "a", 0);
    put_item(&raw, 2, "b", 200);
    message_text(&raw, 2, "");
    m.len = 0;
    put_list(&m, &raw);
    frame_check(KUBE_FRAME_LIST, message_str(&m),
                "KServiceList M4 Ia:7:17 Ib:7:221 I::0 E");

    /* what is not known, of each wire type, outside and inside */

    raw.len = 0;
    message_text(&raw, 5, "shards");
    message_number(&raw, 6, UINT64_MAX);
    message_put(&raw, "\x39" "12345678\x3d" "1234", 14);
    message_put(&raw, "\x43\x08\x01\x43\x0a\x01z\x44\x44", 9);
    put_item(&raw, 2, "a", 0);
    message_text(&raw, 1, "late");
    m.len = 0;
    put_list(&m, &raw);
    message_put(&m, "\x28\x07\x2a\x03" "end", 7);
    frame_check(KUBE_FRAME_LIST, message_str(&m),
                "KServiceList Ia:7:17 M4 E");

    /* an empty one, and one whose kind comes last */

    raw.len = 0;
    m.len = 0;
    put_list(&m, &raw);
    frame_check(KUBE_FRAME_LIST, message_str(&m), "KServiceList E");

    m.len = 0;
    message_put(&m, KUBE_PROTOBUF_MAGIC, 4);
    message_text(&m, 2, "");
    message_put(&m, "\x0a\x03\x12\x01L", 5);
    frame_check(KUBE_FRAME_LIST, message_str(&m), "KL E");
}


static void
test_frame_watch(void **state)
{
    unsigned   i;
    message_t  m, object, unknown, event;

    (void) state;

    m.len = 0;

    for (i = 0; i < 3; i++) {
        object.len = 0;
        message_meta(&object, 1, "shop", i == 0 ? "a" : "b", "u", "7");
        unknown.len = 0;
        message_unknown(&unknown, "v1", "Service", message_str(&object));
        event.len = 0;
        message_event(&event, i == 2 ? "DELETED" : "ADDED",
                      message_str(&unknown));
        message_length(&m, event.len);
        message_put(&m, event.data, event.len);
    }

    message_length(&m, 0);
    message_length(&m, 2);
    message_put(&m, "\xff\xff", 2);
    frame_check(KUBE_FRAME_WATCH, message_str(&m),
                "I+a:7:53 I+b:7:53 I+b:7:55 I::0 I::2? .");
}


/* A list of the object alone, with an unknown field that is too large. */
static void
frame_large(message_t *object, frame_log_t *log)
{
    char       text[5000];
    message_t  list, items;

    memset(text, 'x', sizeof(text));
    message_bytes(object, 99, (kube_str_t) { text, sizeof(text) });

    items.len = 0;
    message_bytes(&items, 2, message_str(object));
    list.len = 0;
    put_list(&list, &items);
    frame_run(KUBE_FRAME_LIST, message_str(&list), 100, 0, 0, 0, log);
}


/*
 * An event above the limit is known by what stands first in it, and the next
 * one is as good as any.
 */
static void
test_frame_too_large(void **state)
{
    char         text[6000];
    size_t       step;
    message_t    m, raw, object, unknown, event;
    frame_log_t  log;

    (void) state;

    memset(text, 'x', sizeof(text));

    raw.len = 0;
    put_item(&raw, 2, "small", 0);
    put_item(&raw, 2, "large", 5000);
    put_item(&raw, 2, "small", 0);
    m.len = 0;
    put_list(&m, &raw);

    for (step = 1; step < 9000; step = step * 2 + 1) {
        frame_run(KUBE_FRAME_LIST, message_str(&m), step, 0, 0, 0, &log);
        assert_string_equal(log.text, "KServiceList Ismall:7:21 Slarge:7:5025 "
                                      "Ismall:7:21 E");
    }

    /* metadata goes on beyond what is held: what stands before that counts */

    raw.len = 0;
    message_text(&raw, 1, "large");
    message_text(&raw, 3, "shop");
    message_text(&raw, 5, "u");
    message_text(&raw, 6, "7");
    message_bytes(&raw, 12, (kube_str_t) { text, 6000 });
    object.len = 0;
    message_bytes(&object, 1, message_str(&raw));
    unknown.len = 0;
    message_unknown(&unknown, "v1", "Service", message_str(&object));
    event.len = 0;
    message_event(&event, "ADDED", message_str(&unknown));
    m.len = 0;
    message_length(&m, event.len);
    message_put(&m, event.data, event.len);
    message_length(&m, 0);

    for (step = 1; step < 9000; step = step * 2 + 1) {
        frame_run(KUBE_FRAME_WATCH, message_str(&m), step, 0, 0, 0, &log);
        assert_string_equal(log.text, "S+large:7:6064 I::0 .");
    }

    /* a name that is not held whole is none: it would be another object's */

    raw.len = 0;
    message_bytes(&raw, 12, (kube_str_t) { text, KUBE_PROTOBUF_HEAD - 12 });
    message_text(&raw, 6, "7");
    message_text(&raw, 1, "longer-than-it-looks");
    object.len = 0;
    message_bytes(&object, 1, message_str(&raw));
    raw.len = 0;
    message_bytes(&raw, 2, message_str(&object));
    m.len = 0;
    put_list(&m, &raw);
    frame_run(KUBE_FRAME_LIST, message_str(&m), 100, 0, 0, 0, &log);
    assert_string_equal(log.text, "KServiceList S:7:4115 E");

    /* metadata that is there whole ends where it says, and no later */

    object.len = 0;
    message_bytes(&object, 1, KUBE_STR("\x0a\x05large\x32\x7f" "7"));
    frame_large(&object, &log);
    assert_string_equal(log.text, "KServiceList Slarge::5016? E");

    /* nor does what follows on metadata that is wrong name the object */

    object.len = 0;
    message_bytes(&object, 1, KUBE_STR("\x0a\x05large\x32\x7f" "7"));
    message_meta(&object, 1, "shop", "other", "u", "8");
    frame_large(&object, &log);
    assert_string_equal(log.text, "KServiceList Slarge::5037? E");
}


/* What one huge item needed is given back before the next one. */
static void
test_frame_room(void **state)
{
    char                   *text;
    size_t                  size;
    message_t               m, head;
    kube_str_t              in;
    alloc_test_t            at;
    kube_frame_item_t       item;
    kube_protobuf_frame_t  *frame;

    (void) state;

    size = 300u << 10;
    text = calloc(1, size);
    assert_non_null(text);

    alloc_test_init(&at);
    frame = kube_protobuf_frame_create(&at.alloc, KUBE_FRAME_LIST, size);
    assert_non_null(frame);

    head.len = 0;
    message_tag(&head, 2, KUBE_WIRE_BYTES);
    message_varint(&head, size);

    m.len = 0;
    message_put(&m, KUBE_PROTOBUF_MAGIC, KUBE_PROTOBUF_MAGIC_LEN);
    message_tag(&m, 2, KUBE_WIRE_BYTES);
    message_varint(&m, head.len + size + 3);
    message_put(&m, head.data, head.len);

    in = message_str(&m);
    assert_int_equal(kube_protobuf_frame_next(frame, &in, &item), KUBE_AGAIN);

    in = (kube_str_t) { text, size - 1 };
    assert_int_equal(kube_protobuf_frame_next(frame, &in, &item), KUBE_AGAIN);
    assert_true(at.live_bytes >= size - 1);

    in = (kube_str_t) { text, 1 };
    assert_int_equal(kube_protobuf_frame_next(frame, &in, &item), KUBE_OK);
    assert_int_equal(item.size_bytes, size);

    in = KUBE_STR("\x12\x01x");
    assert_int_equal(kube_protobuf_frame_next(frame, &in, &item), KUBE_OK);
    assert_int_equal(item.size_bytes, 1);
    assert_true(at.live_bytes < size / 2);
    assert_true(kube_protobuf_frame_end(frame));

    kube_protobuf_frame_destroy(frame);
    free(text);
    alloc_test_assert_no_leak(&at);
}


/* A list's metadata may have so many bytes, and no more. */
static void
test_frame_metadata(void **state)
{
    char         text[KUBE_LIST_META_BYTES_MAX + 1];
    size_t       n;
    message_t    m;
    frame_log_t  log;

    (void) state;

    memset(text, 'x', sizeof(text));

    for (n = KUBE_LIST_META_BYTES_MAX - 1; n <= sizeof(text); n++) {
        m.len = 0;
        message_put(&m, KUBE_PROTOBUF_MAGIC, KUBE_PROTOBUF_MAGIC_LEN);
        message_tag(&m, 2, KUBE_WIRE_BYTES);
        message_varint(&m, n + 4);
        message_tag(&m, 1, KUBE_WIRE_BYTES);
        message_varint(&m, n);

        /* a message has room for less: the end of it is not there */

        message_put(&m, text, n / 2);
        frame_run(KUBE_FRAME_LIST, message_str(&m), 1000, 0, 0, 0, &log);
        assert_string_equal(log.text,
                            (n <= KUBE_LIST_META_BYTES_MAX) ? "~" : "!");
    }
}


typedef struct {
    kube_frame_mode_t   mode;
    const char         *bytes;
    size_t              len;
    const char         *out;
} frame_case_t;

#define LIST(bytes, out)   { KUBE_FRAME_LIST, bytes, sizeof(bytes) - 1, out }
#define WATCH(bytes, out)  { KUBE_FRAME_WATCH, bytes, sizeof(bytes) - 1, out }

static const frame_case_t  frame_cases[] = {
    LIST("", "."),
    LIST("k8s", "~"),
    LIST("k8s\0", "~"),
    LIST("{\"kind\":\"ServiceList\"}", "!"),
    LIST("k8s\1", "!"),
    LIST("k8s\0\x12\x02\x12", "~"),
    LIST("k8s\0\x12\x02\x12\x00", "I::0 E"),
    LIST("k8s\0\x12\x00\x1a\x00\x22", "E"),
    LIST("k8s\0\x12\x02\x1a\x00", "E"),
    LIST("k8s\0\x12\x09\x19" "12345678", "E"),
    LIST("k8s\0\x12\x05\x1d" "1234", "E"),
    LIST("k8s\0\x1a\x80\x80\x80\x80\x08", "~"),

    /* longer than what it is in */
    LIST("k8s\0\x12\x02\x12\x01x", "!"),
    LIST("k8s\0\x12\x01\x12\x01x", "!"),
    LIST("k8s\0\x12\x03\x12\x05" "abcde", "!"),
    LIST("k8s\0\x12\x01\x18\x01", "!"),
    LIST("k8s\0\x12\x02\x19" "12345678", "!"),
    LIST("k8s\0\x12\x01\x1b\x1c", "!"),
    LIST("k8s\0\x12\x01\x80\x01", "!"),

    /* a list twice, or of another type */
    LIST("k8s\0\x12\x00\x12\x00", "!"),
    LIST("k8s\0\x10\x01", "!"),
    LIST("k8s\0\x12\x02\x10\x01", "!"),
    LIST("k8s\0\x0a\x02\x10\x01\x12\x00", "!"),

    /* numbers and lengths that are none */
    LIST("k8s\0\x02\x00", "!"),
    LIST("k8s\0\x1c", "!"),
    LIST("k8s\0\x1e", "!"),
    LIST("k8s\0\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "!"),
    LIST("k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "!"),
    LIST("k8s\0\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "!"),
    LIST("k8s\0\x0a\x80\x80\x04", "!"),
    LIST("k8s\0\x12\xff\xff\xff\xff\x0f\x12\x81\x80\x80\x80\x01", "!"),

    WATCH("", "."),
    WATCH("\0", "~"),
    WATCH("\0\0\0", "~"),
    WATCH("\0\0\0\1", "~"),
    WATCH("\x10\0\0\1", "!"),
    WATCH("\x0f\0\0\1", "~"),
    WATCH("{\"type\":\"ADDED\"}", "!"),
    WATCH("\0\0\0\2\x08\1\0\0\0\0", "I::2? I::0 ."),
};


static void
test_frame_faults(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(frame_cases) / sizeof(frame_cases[0]); i++) {
        frame_check(frame_cases[i].mode,
                    (kube_str_t) { frame_cases[i].bytes, frame_cases[i].len },
                    frame_cases[i].out);
    }
}


/* A call that fails for want of memory is made again, and nothing is lost. */
static void
test_frame_memory(void **state)
{
    size_t       k, step;
    message_t    m, raw;
    frame_log_t  log;

    (void) state;

    raw.len = 0;
    put_item(&raw, 2, "a", 100);
    put_item(&raw, 2, "b", 6000);
    m.len = 0;
    put_list(&m, &raw);

    for (step = 1; step < 7000; step = step * 3 + 1) {
        for (k = 1; k < 4; k++) {
            frame_run(KUBE_FRAME_LIST, message_str(&m), step, 0, 0, k, &log);
            assert_string_equal(log.text,
                                "KServiceList Ia:7:120 Sb:7:6021 E");
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_frame_list),
        cmocka_unit_test(test_frame_watch),
        cmocka_unit_test(test_frame_too_large),
        cmocka_unit_test(test_frame_room),
        cmocka_unit_test(test_frame_metadata),
        cmocka_unit_test(test_frame_faults),
        cmocka_unit_test(test_frame_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
