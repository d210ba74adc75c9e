#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "pipeline/volume/hdf5_lock.h"

#include "pipeline/base/utf8.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

/* Address space. 24 MiB were too few where malloc has no room for an arena of the thread and maps a
 * page for each of libhdf5's pieces; 32 were enough. */
#define NEEDS_BYTES ((size_t)64 << 20)

/* The mutable things at file scope: libhdf5's state is global, so its lock must be too. */
static pthread_mutex_t hdf5_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Runs before any other call of libhdf5. Turns off its handler at exit, which walks through all
 * open objects and crashes on a file that failed; owners close every file, so it has nothing to do.
 * Turns off plug-ins too, so that no code is loaded because a file names a filter. */
static void set_up(void)
{
    H5dont_atexit();
    H5PLset_loading_state(0);
}

void oct_hdf5_lock(void)
{
    pthread_mutex_lock(&hdf5_mutex);
    pthread_once(&once, set_up);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void oct_hdf5_unlock(void)
{
    pthread_mutex_unlock(&hdf5_mutex);
}

void oct_hdf5_close(const int64_t *objects, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (objects[i] >= 0)
            H5Idec_ref(objects[i]);
}

bool oct_hdf5_has_memory(void)
{
    void *memory =
        mmap(NULL, NEEDS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, NEEDS_BYTES) == 0;
}

struct reason {
    char *text;
    size_t text_bytes;
};

char *oct_hdf5_printable(char *text)
{
    oct_utf8_make_line(text);
    return text;
}

/* H5E_WALK_UPWARD begins where the fault was found; a positive value ends the walk. */
static herr_t keep_first(unsigned n, const H5E_error2_t *entry, void *data)
{
    (void)n;
    struct reason *reason = data;
    if (!entry->desc || !entry->desc[0])
        return 0;
    snprintf(reason->text, reason->text_bytes, "%s", entry->desc);
    oct_hdf5_printable(reason->text);
    return 1;
}

const char *oct_hdf5_reason(char *text, size_t text_bytes)
{
    struct reason reason = {text, text_bytes};
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
    return text;
}
