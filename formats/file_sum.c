#include "formats/file_sum.h"

#include "pipeline/base/crc32c.h"
#include "pipeline/base/file_at.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BUFFER_BYTES ((size_t)256 << 10) /* stays in the second cache */

enum oct_err oct_file_sum_init(struct oct_file_sum *sum, int fd, const char *name,
                               struct oct_error *err)
{
    struct stat st;
    *sum = (struct oct_file_sum){.fd = -1};
    if (fstat(fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read its size", name);
    unsigned char *buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", name);
    *sum = (struct oct_file_sum){.fd = fd,
                                 .name = name,
                                 .size = (uint64_t)st.st_size,
                                 .changed = st.st_mtim,
                                 .buffer = buffer};
    return OCT_OK;
}

enum oct_err oct_file_sum_to(struct oct_file_sum *sum, uint64_t end, struct oct_error *err)
{
    end = end < sum->size ? end : sum->size;
    while (sum->done < end) {
        const uint64_t left = end - sum->done;
        const ssize_t n = oct_file_read_at(sum->fd, sum->buffer,
                                           left < BUFFER_BYTES ? left : BUFFER_BYTES, sum->done);
        if (n < 0)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", sum->name);
        if (n == 0)
            return oct_fail(err, OCT_E_IO, "%s: was cut while it was being read", sum->name);
        sum->crc = oct_crc32c_more(sum->crc, sum->buffer, (size_t)n);
        sum->done += (uint64_t)n;
    }
    return OCT_OK;
}

void oct_file_sum_time(const struct oct_file_sum *sum, char text[32])
{
    struct tm utc;
    text[0] = '\0';
    if (gmtime_r(&sum->changed.tv_sec, &utc))
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void oct_file_sum_finish(struct oct_file_sum *sum)
{
    free(sum->buffer);
    *sum = (struct oct_file_sum){.fd = -1};
}
