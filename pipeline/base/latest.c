#include "pipeline/base/latest.h"

#include <stdlib.h>
#include <string.h>

#define IS_NEW 4u /* beside the number of the copy */

bool oct_latest_init(struct oct_latest *latest, size_t bytes)
{
    *latest = (struct oct_latest){.bytes = bytes, .back = 0, .front = 1};
    atomic_init(&latest->between, 2);
    latest->copies = calloc(3, bytes);
    return latest->copies != NULL;
}

void oct_latest_finish(struct oct_latest *latest)
{
    free(latest->copies);
    latest->copies = NULL;
}

void oct_latest_write(struct oct_latest *latest, const void *value)
{
    memcpy(latest->copies + latest->back * latest->bytes, value, latest->bytes);
    latest->back = atomic_exchange(&latest->between, latest->back | IS_NEW) & ~IS_NEW;
}

bool oct_latest_read(struct oct_latest *latest, void *value)
{
    const bool is_new = (atomic_load(&latest->between) & IS_NEW) != 0;
    if (is_new)
        latest->front = atomic_exchange(&latest->between, latest->front) & ~IS_NEW;
    memcpy(value, latest->copies + latest->front * latest->bytes, latest->bytes);
    return is_new;
}
