/* What every cmocka test file includes: cmocka's own needs, in its order. */
#ifndef OCT_TEST_RIG_TAP_H
#define OCT_TEST_RIG_TAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* How long to wait for what only has to happen in the end: it ends a test that hangs, it judges no
 * pace, and a busy machine must not reach it. */
#define TEST_PATIENCE_MS 60000
#define TEST_PATIENCE_US (UINT64_C(1000) * TEST_PATIENCE_MS)
#define TEST_PATIENCE_NS (UINT64_C(1000000) * TEST_PATIENCE_MS)

#endif
