#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/base/file_at.h"

#include <errno.h>
#include <unistd.h>

ssize_t oct_file_read_at(int fd, void *bytes, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got =
            TEMP_FAILURE_RETRY(pread(fd, (char *)bytes + done, n - done, (off_t)(offset + done)));
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

bool oct_file_write_at(int fd, const void *bytes, size_t n, uint64_t offset)
{
    for (size_t done = 0; done < n;) {
        const ssize_t put = TEMP_FAILURE_RETRY(
            pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done)));
        if (put == 0)
            errno = EIO;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}
