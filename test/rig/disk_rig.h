/* A disk that waits and fails when told to. pwrite, fdatasync and fsync of the program and of
 * libhdf5 come here, as these stand before the C library's in the link; a test that names
 * `disk_calls` brings them in. A call whose stand-in is NULL is the C library's own. */
#ifndef OCT_TEST_RIG_DISK_RIG_H
#define OCT_TEST_RIG_DISK_RIG_H

#include <sys/types.h>

struct disk_calls {
    ssize_t (*pwrite)(int fd, const void *data, size_t bytes, off_t offset);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
};

/* Set before the first call, as in main; any thread calls. */
extern struct disk_calls disk_calls;

/* What the kernel does. */
ssize_t disk_pwrite(int fd, const void *data, size_t bytes, off_t offset);
int disk_fdatasync(int fd);
int disk_fsync(int fd);

#endif
