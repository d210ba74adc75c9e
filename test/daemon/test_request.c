/* What comes in, bounded before it is taken apart: a request's text, a message's parts. */
#include "daemon/request.h"
#include "pipeline/base/utf8.h"
#include "pipeline/net/parts.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>

/* ---- requests ---- */

static bool is_taken(const char *text, size_t n, const char *why)
{
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_request_check(text, n, &err);
    if (e)
        assert_non_null(strstr(err.text, why));
    return e == OCT_OK;
}

/* n times `piece` between `head` and `tail`. */
static size_t repeat(char *text, size_t bytes, const char *head, const char *piece, unsigned n,
                     const char *tail)
{
    size_t used = (size_t)snprintf(text, bytes, "%s", head);
    while (n-- > 0)
        used += (size_t)snprintf(text + used, bytes - used, "%s", piece);
    used += (size_t)snprintf(text + used, bytes - used, "%s", tail);
    assert_true(used < bytes);
    return used;
}

TEST(requests_are_bounded_in_bytes_values_and_depth)
{
    static char text[OCT_REQUEST_BYTES * 2];
    size_t n;
    /* The longest value of a key, written with escapes. */
    n = repeat(text, sizeof(text), "{\"cmd\":\"set\",\"key\":\"record.pseudonym\",\"value\":\"",
               "\\u00e4", 1023, "\"}");
    assert_true(is_taken(text, n, ""));
    n = repeat(text, sizeof(text), "", " ", OCT_REQUEST_BYTES, "");
    assert_true(is_taken(text, n, ""));
    assert_false(is_taken(text, n + 1, "8193 bytes long: at most 8192"));
    n = repeat(text, sizeof(text), "{\"cmd\":\"status\"", ",\"\":0", 30, "}");
    assert_true(is_taken(text, n, ""));
    n = repeat(text, sizeof(text), "{\"cmd\":\"status\"", ",\"\":0", 31, "}");
    assert_false(is_taken(text, n, "more than 64 names and values"));
    n = repeat(text, sizeof(text), "{\"cmd\":\"status\",\"a\":[0", ",0", 100, "]}");
    assert_false(is_taken(text, n, "more than 64 names and values"));
    n = repeat(text, sizeof(text), "", "[]", 65, "");
    assert_false(is_taken(text, n, "more than 64 names and values"));
    assert_true(is_taken("{\"a\":[[[]]]}", 12, ""));
    assert_false(is_taken("{\"a\":[[[[]]]]}", 14, "more than 4 brackets"));
    /* Within a string they are text. */
    n = repeat(text, sizeof(text), "{\"cmd\":\"\\\"", "[,:{", 500, "\\\\\"}");
    assert_true(is_taken(text, n, ""));
}

TEST(requests_are_utf8_and_hold_no_zero)
{
    assert_true(is_taken("{\"a\":\"M\xc3\xbcller\"}", 15, ""));
    assert_false(is_taken("{\"a\":\"M\xfcller\"}", 14, "not UTF-8 at byte 7"));
    assert_false(is_taken("{\"a\":\"M\xc3", 8, "not UTF-8 at byte 7")); /* and never past its end */
    assert_false(is_taken("{}\0{}", 5, "a zero"));
    assert_false(is_taken("{\"a\":\"\\u0000\"}", 14, "a zero"));
    assert_true(is_taken("{\"a\":\"\\\\u0000\"}", 15, ""));
    assert_int_equal(oct_utf8_valid_bytes("\xe2\x82\xac\xe2\x82", 5), 3);
    assert_int_equal(oct_utf8_valid_bytes("\0a", 2), 2);
    char name[] = "/data/M\xfcller\n\xe2\x82\xac";
    oct_utf8_repair(name);
    assert_string_equal(name, "/data/M?ller\n\xe2\x82\xac");
}

/* ---- parts ---- */

struct stream {
    unsigned char bytes[4096];
    size_t n;
};

static void add(struct stream *s, const void *bytes, size_t n)
{
    memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
}

/* As libzmq greets: version 3.1 or 2. */
static struct stream greeting(unsigned version)
{
    struct stream s = {.n = 0};
    add(&s, "\xff\0\0\0\0\0\0\0\1\x7f", 10);
    if (version == 3)
        add(&s, "\3\1NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 23);
    else
        add(&s, "\1\7", 2);
    s.n = version == 3 ? 64 : 12;
    return s;
}

static void add_frame(struct stream *s, unsigned flags, unsigned n_bytes)
{
    unsigned char head[9] = {(unsigned char)flags, (unsigned char)n_bytes};
    bool is_long = flags & 2;
    if (is_long) {
        head[1] = 0;
        head[7] = (unsigned char)(n_bytes >> 8);
        head[8] = (unsigned char)n_bytes;
    }
    add(s, head, is_long ? 9 : 2);
    s->n += n_bytes; /* zeros */
}

/* In pieces of n bytes, so that every boundary is crossed. */
static bool passes(const struct stream *s, size_t n)
{
    struct oct_parts parts = oct_parts_begin(OCT_CALLERS_CAMERA);
    for (size_t at = 0; at < s->n; at += n)
        if (!oct_parts_take(&parts, s->bytes + at, s->n - at < n ? s->n - at : n))
            return false;
    return true;
}

static void check_everywhere(const struct stream *s, bool want)
{
    static const size_t pieces[] = {1, 2, 3, 7, 64, 4096};
    for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++)
        assert_int_equal(passes(s, pieces[k]), want);
}

TEST(messages_are_bounded_in_parts)
{
    for (unsigned version = 2; version <= 3; version++) {
        struct stream s = greeting(version), one_more;
        add_frame(&s, 4, 41);               /* READY */
        for (unsigned k = 0; k < 20; k++) { /* lines: many messages of two parts */
            add_frame(&s, 1, 64);
            add_frame(&s, k % 2 ? 2 : 0, k % 2 ? 0 : 100);
        }
        add_frame(&s, 3, 700);
        add_frame(&s, 2, 300);
        for (int k = 0; k < OCT_PARTS_MOST - 1; k++)
            add_frame(&s, 1, 0);
        one_more = s;
        add_frame(&s, 0, 0);
        add_frame(&s, 0, 5);
        check_everywhere(&s, true);
        add_frame(&one_more, 4, 3); /* a command in between begins no new message */
        check_everywhere(&one_more, true);
        add_frame(&one_more, 1, 0);
        check_everywhere(&one_more, false);
    }
}

TEST(streams_of_another_kind_end)
{
    struct stream s = {.n = 0}, long_one = greeting(3);
    add(&s, "GET / HTTP/1.1\r\n", 16);
    check_everywhere(&s, false);
    s.n = 0;
    add(&s, "\xff\0\0\0\0\0\0\0\1\x7e\1", 11); /* no signature: version 1 */
    check_everywhere(&s, false);
    add(&long_one, "\2\0\1\0\0\0\0\0\0", 9); /* 2^48 bytes */
    check_everywhere(&long_one, false);
    struct stream old = greeting(2);
    struct oct_parts viewer = oct_parts_begin(OCT_CALLERS_VIEWERS);
    assert_false(oct_parts_take(&viewer, old.bytes, old.n)); /* whose subscriptions are nobody's */
    struct oct_parts others = {0};
    assert_true(oct_parts_take(&others, "GET", 3)); /* whom nobody follows */
}
