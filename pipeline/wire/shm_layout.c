#define _GNU_SOURCE /* F_OFD_SETLK */
#include "pipeline/wire/shm_layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "shared memory holds samples and numbers as they lie in memory, which must be little-endian"
#endif

bool oct_shm_is_endpoint(const char *text)
{
    return strncmp(text, OCT_SHM_SCHEME, strlen(OCT_SHM_SCHEME)) == 0;
}

const char *oct_shm_bad_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    size_t n = strlen(name);
    if (n == 0)
        return "has no name after shm://";
    if (n >= OCT_SHM_NAME_BYTES)
        return "has a name of more than 64 characters";
    if (strspn(name, allowed) != n || name[0] == '.')
        return "has a name with other characters than letters, digits, '_', '-' and inner '.'";
    return NULL;
}

void oct_shm_object_of(const char *name, char *object)
{
    snprintf(object, OCT_SHM_PATH_BYTES, "/octd.%s", name);
}

void oct_shm_socket_of(const char *name, char *endpoint)
{
    snprintf(endpoint, OCT_SHM_PATH_BYTES, "ipc:///dev/shm/octd.%s.sock", name);
}

uint64_t oct_shm_slots_offset(uint32_t n_slots)
{
    uint64_t words = (uint64_t)n_slots * sizeof(uint64_t);
    return OCT_SHM_PAGE + (words + OCT_SHM_PAGE - 1) / OCT_SHM_PAGE * OCT_SHM_PAGE;
}

uint64_t oct_shm_file_bytes(uint32_t n_slots, uint64_t slot_bytes)
{
    uint64_t offset = oct_shm_slots_offset(n_slots);
    if (n_slots == 0 || slot_bytes > (INT64_MAX - offset) / n_slots)
        return 0;
    return offset + n_slots * slot_bytes;
}

uint64_t oct_shm_tag(uint32_t epoch, uint64_t sequence)
{
    return (uint64_t)epoch << 32 | (sequence & 0x7fffffffu) << 1 | 1;
}

void oct_shm_descriptor_encode(const struct oct_shm_descriptor *d,
                               uint8_t bytes[OCT_SHM_DESCRIPTOR_BYTES])
{
    memset(bytes, 0, OCT_SHM_DESCRIPTOR_BYTES);
    memcpy(bytes, &d->instance, 8);
    memcpy(bytes + 8, &d->slot, 4);
}

bool oct_shm_descriptor_decode(struct oct_shm_descriptor *d, const void *bytes, size_t n_bytes)
{
    uint32_t reserved = 0;
    *d = (struct oct_shm_descriptor){0};
    if (n_bytes != OCT_SHM_DESCRIPTOR_BYTES)
        return false;
    memcpy(&d->instance, bytes, 8);
    memcpy(&d->slot, (const uint8_t *)bytes + 8, 4);
    memcpy(&reserved, (const uint8_t *)bytes + 12, 4);
    return reserved == 0;
}

static struct flock byte_of_file(short type, uint64_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

bool oct_shm_lock(int fd, uint64_t byte)
{
    struct flock lock = byte_of_file(F_WRLCK, byte);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

void oct_shm_unlock(int fd, uint64_t byte)
{
    struct flock lock = byte_of_file(F_UNLCK, byte);
    fcntl(fd, F_OFD_SETLK, &lock);
}

bool oct_shm_is_locked(int fd, uint64_t byte)
{
    struct flock lock = byte_of_file(F_WRLCK, byte);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
