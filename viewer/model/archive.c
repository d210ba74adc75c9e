#include "viewer/model/archive.h"

#include <pthread.h>
#include <stdlib.h>

struct oct_view_archive {
    pthread_mutex_t mutex; /* guards all below */
    struct oct_view_history history;
    struct oct_view_quality quality;
    bool frozen;
};

struct oct_view_archive *oct_view_archive_create(size_t budget_bytes)
{
    struct oct_view_archive *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    pthread_mutex_init(&a->mutex, NULL);
    a->history.budget_bytes = budget_bytes;
    return a;
}

void oct_view_archive_destroy(struct oct_view_archive *a)
{
    if (!a)
        return;
    oct_view_history_finish(&a->history);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

void oct_view_archive_add(struct oct_view_archive *a, const struct oct_view_picture *picture)
{
    pthread_mutex_lock(&a->mutex);
    if (!a->frozen)
        oct_view_history_add(&a->history, picture);
    pthread_mutex_unlock(&a->mutex);
}

void oct_view_archive_add_quality(struct oct_view_archive *a, const struct oct_view_image *row)
{
    pthread_mutex_lock(&a->mutex);
    oct_view_quality_add(&a->quality, row);
    pthread_mutex_unlock(&a->mutex);
}

void oct_view_archive_freeze(struct oct_view_archive *a, bool frozen)
{
    pthread_mutex_lock(&a->mutex);
    a->frozen = frozen;
    pthread_mutex_unlock(&a->mutex);
}

void oct_view_archive_copy_quality(struct oct_view_archive *a, struct oct_view_quality *quality)
{
    pthread_mutex_lock(&a->mutex);
    *quality = a->quality;
    pthread_mutex_unlock(&a->mutex);
}

unsigned oct_view_archive_count(struct oct_view_archive *a)
{
    pthread_mutex_lock(&a->mutex);
    unsigned n = oct_view_history_count(&a->history);
    pthread_mutex_unlock(&a->mutex);
    return n;
}

bool oct_view_archive_get(struct oct_view_archive *a, unsigned i, struct oct_view_picture *picture)
{
    pthread_mutex_lock(&a->mutex);
    const struct oct_view_picture *kept = oct_view_history_at(&a->history, i);
    bool got = kept && oct_view_picture_set(picture, &kept->header, kept->pixels,
                                            oct_view_picture_bytes(&kept->header), NULL) == OCT_OK;
    if (got)
        picture->arrival_ns = kept->arrival_ns;
    pthread_mutex_unlock(&a->mutex);
    return got;
}
