/* Bytes of an open file at an offset, all of them: interrupted and partial calls go on. No state;
 * any thread. */
#ifndef OCT_PIPELINE_BASE_FILE_AT_H
#define OCT_PIPELINE_BASE_FILE_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How many were read, fewer than n at the file's end alone; -1: errno says why. */
ssize_t oct_file_read_at(int fd, void *bytes, size_t n, uint64_t offset);

/* False: errno says why. */
bool oct_file_write_at(int fd, const void *bytes, size_t n, uint64_t offset);

#endif
