#include "pipeline/hdf5_lock.h"

#include <pthread.h>
#include <stdio.h>

/* The one mutable thing at file scope: libhdf5's state is global, so its lock must be too. */
static pthread_mutex_t hdf5_mutex = PTHREAD_MUTEX_INITIALIZER;

void oct_hdf5_lock(void)
{
    pthread_mutex_lock(&hdf5_mutex);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void oct_hdf5_unlock(void)
{
    pthread_mutex_unlock(&hdf5_mutex);
}

struct reason {
    char *text;
    size_t text_bytes;
};

/* H5E_WALK_UPWARD begins where the fault was found; a positive value ends the walk. */
static herr_t keep_first(unsigned n, const H5E_error2_t *entry, void *data)
{
    (void)n;
    struct reason *reason = data;
    if (!entry->desc || !entry->desc[0])
        return 0;
    snprintf(reason->text, reason->text_bytes, "%s", entry->desc);
    return 1;
}

const char *oct_hdf5_reason(char *text, size_t text_bytes)
{
    struct reason reason = {text, text_bytes};
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
    return text;
}
