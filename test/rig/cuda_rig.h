/* What the tests on the stand-in for CUDA (test/cuda_host/) share. It fails the cmocka test where
 * something was not given back. */
#ifndef OCT_TEST_RIG_CUDA_RIG_H
#define OCT_TEST_RIG_CUDA_RIG_H

#include "test/cuda_host/cuda_host.h"

#define MEMORY ((size_t)1 << 30)
/* A busy machine is no device that hangs, nor one that the sanitizer makes slow. */
#if defined(__SANITIZE_THREAD__)
#define PATIENCE_MS 600000
#define DEADLINE_MS 4000
#else
#define PATIENCE_MS 60000
#define DEADLINE_MS 150
#endif

/* The clock. */
double seconds(void);

/* Memory, streams and events: now; and, where threads still go on, in the end. */
void check_nothing_left(void);
void wait_until_nothing_left(void);

/* A machine with one device on which nothing goes wrong: lets go on what hangs, until the threads
 * that hung have ended and given everything back. */
void let_go(void);

#endif
