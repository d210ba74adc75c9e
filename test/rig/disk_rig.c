#define _GNU_SOURCE /* syscall, SYS_pwrite64 */
#include "test/rig/disk_rig.h"

#include <sys/syscall.h>
#include <unistd.h>

struct disk_calls disk_calls;

ssize_t disk_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

int disk_fdatasync(int fd)
{
    return (int)syscall(SYS_fdatasync, fd);
}

int disk_fsync(int fd)
{
    return (int)syscall(SYS_fsync, fd);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return (disk_calls.pwrite ? disk_calls.pwrite : disk_pwrite)(fd, data, bytes, offset);
}

int fdatasync(int fd)
{
    return (disk_calls.fdatasync ? disk_calls.fdatasync : disk_fdatasync)(fd);
}

int fsync(int fd)
{
    return (disk_calls.fsync ? disk_calls.fsync : disk_fsync)(fd);
}
