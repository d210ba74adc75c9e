/* The CRC-32C of a file's bytes, taken while something else reads the file: each part is read again
 * soon after, out of the page cache, so that a disk is read once and in order. One thread uses a
 * sum at a time. */
#ifndef OCT_FORMATS_FILE_SUM_H
#define OCT_FORMATS_FILE_SUM_H

#include "pipeline/base/err.h"

#include <stdint.h>
#include <time.h>

struct oct_file_sum {
    int fd; /* the caller's */
    const char *name;
    uint64_t size, done;
    struct timespec changed; /* the file's time of modification */
    uint32_t crc;            /* of the first `done` bytes */
    unsigned char *buffer;
};

/* fd: a plain file; name: for messages, borrowed. OCT_E_IO, OCT_E_NO_MEMORY: *sum is empty then. */
enum oct_err oct_file_sum_init(struct oct_file_sum *sum, int fd, const char *name,
                               struct oct_error *err);

/* Adds what lies before `end` (at most the size) and is not yet in. OCT_E_IO: it cannot be read, or
 * has become shorter. */
enum oct_err oct_file_sum_to(struct oct_file_sum *sum, uint64_t end, struct oct_error *err);

/* UTC, ISO 8601, to the second: of `changed`. */
void oct_file_sum_time(const struct oct_file_sum *sum, char text[32]);

/* Of an empty one too. */
void oct_file_sum_finish(struct oct_file_sum *sum);

#endif
