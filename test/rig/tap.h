/* What every cmocka test file includes: cmocka's own needs, in its order, and how a case is
 * written.
 *
 *     TEST(rows_are_read_in_any_order)
 *     {
 *         assert_int_equal(...);
 *     }
 *
 * A test program is one such file: its cases run in their order, in an empty folder that is
 * removed after them. A file with a main of its own runs them by test_run, all others by that of
 * test/rig/main.c. */
#ifndef OCT_TEST_RIG_TAP_H
#define OCT_TEST_RIG_TAP_H

#include "pipeline/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Between a setup and a teardown of cmocka's: int (void **state). */
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    static const struct CMUnitTest case_##name                                                     \
        __attribute__((used, no_reorder, aligned(sizeof(void *)), section("test_cases"))) = {      \
            #name, name, setup, teardown, NULL};                                                   \
    static void name(void **state)

/* With `it`, which is opened before the case and closed after it: of a test's own
 *     #define RIG_TEST(name) TEST_ON(name, struct rig, r, open_rig(r), close_rig(r)) */
#define TEST_ON(name, type, it, open, close)                                                       \
    static void name##_on(type *it);                                                               \
    TEST(name)                                                                                     \
    {                                                                                              \
        type thing, *it = &thing;                                                                  \
        open;                                                                                      \
        name##_on(it);                                                                             \
        close;                                                                                     \
    }                                                                                              \
    static void name##_on(type *it)

/* Before the first case and after the last. */
#define TEST_GROUP(setup, teardown)                                                                \
    int (*const test_group_setup)(void **) = setup;                                                \
    int (*const test_group_teardown)(void **) = teardown
extern int (*const test_group_setup)(void **) __attribute__((weak));
extern int (*const test_group_teardown)(void **) __attribute__((weak));

/* How many failed. */
int test_run(void);

/* must(oct_volume_sync(writer, &failure)): the case fails with what `failure` says, or goes on. */
#define must(call)                                                                                 \
    do {                                                                                           \
        struct oct_error failure = {.text = ""};                                                   \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, failure.text);                                               \
    } while (0)

/* The same of what must be refused, by this code and with these words. */
#define must_fail(call, code, words)                                                               \
    do {                                                                                           \
        struct oct_error failure = {.text = ""};                                                   \
        const enum oct_err got = call;                                                             \
        if (got != (code) || !strstr(failure.text, words))                                         \
            fail_msg("%s: %d: %s", #call, (int)got, failure.text);                                 \
    } while (0)

/* Time limit of waits for events that must happen eventually: it ends a test that hangs and does
 * not judge speed, so a busy machine must not reach it. */
#define TEST_PATIENCE_MS 60000
#define TEST_PATIENCE_US (UINT64_C(1000) * TEST_PATIENCE_MS)
#define TEST_PATIENCE_NS (UINT64_C(1000000) * TEST_PATIENCE_MS)

#endif
