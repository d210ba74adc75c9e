/* What every cmocka test file includes: cmocka's own needs, in its order. */
#ifndef OCT_TEST_TAP_H
#define OCT_TEST_TAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
