/* What every cmocka test file includes: cmocka's own needs, in its order. */
#ifndef OCT_TEST_RIG_TAP_H
#define OCT_TEST_RIG_TAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Time limit of waits for events that must happen eventually: it ends a test that hangs and does
 * not judge speed, so a busy machine must not reach it. */
#define TEST_PATIENCE_MS 60000
#define TEST_PATIENCE_US (UINT64_C(1000) * TEST_PATIENCE_MS)
#define TEST_PATIENCE_NS (UINT64_C(1000000) * TEST_PATIENCE_MS)

#endif
