#include "viewer/model/archive.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_view_archive {
    pthread_mutex_t mutex; /* guards all below */
    struct oct_view_history history, moment;
    struct oct_view_quality quality;
    struct {
        uint64_t frame_num;
        struct oct_view_average average;
    } averages[OCT_VIEW_MOST_AVERAGES]; /* a ring */
    uint64_t n_averages;
    char averages_of[64]; /* their acquisition */
    bool frozen;
};

struct oct_view_archive *oct_view_archive_create(size_t budget_bytes)
{
    struct oct_view_archive *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    pthread_mutex_init(&a->mutex, NULL);
    a->history.budget_bytes = budget_bytes;
    a->moment.budget_bytes = budget_bytes / 4;
    a->moment.span_ns = OCT_VIEW_MOMENT_NS;
    return a;
}

void oct_view_archive_destroy(struct oct_view_archive *a)
{
    if (!a)
        return;
    oct_view_history_finish(&a->history);
    oct_view_history_finish(&a->moment);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

void oct_view_archive_add(struct oct_view_archive *a, const struct oct_view_picture *picture)
{
    pthread_mutex_lock(&a->mutex);
    if (!a->frozen) {
        oct_view_history_add(&a->history, picture);
        oct_view_history_add(&a->moment, picture);
    }
    pthread_mutex_unlock(&a->mutex);
}

void oct_view_archive_add_average(struct oct_view_archive *a, const struct oct_view_image *image)
{
    const struct oct_image_header *h = &image->header;

    pthread_mutex_lock(&a->mutex);
    if (strcmp(a->averages_of, h->acquisition_id) != 0)
        a->n_averages = 0;
    snprintf(a->averages_of, sizeof(a->averages_of), "%s", h->acquisition_id);
    if (!a->frozen) {
        const uint64_t at = a->n_averages++ % OCT_VIEW_MOST_AVERAGES;
        a->averages[at].frame_num = h->frame_num;
        oct_view_average_read(&a->averages[at].average, image);
    }
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

/* Under the mutex. */
static bool copy(const struct oct_view_picture *kept, struct oct_view_picture *picture)
{
    const bool got =
        kept && oct_view_picture_set(picture, &kept->header, kept->pixels,
                                     oct_view_picture_bytes(&kept->header), NULL) == OCT_OK;
    if (got)
        picture->arrival_ns = kept->arrival_ns;
    return got;
}

bool oct_view_archive_get(struct oct_view_archive *a, unsigned i, struct oct_view_picture *picture)
{
    pthread_mutex_lock(&a->mutex);
    const bool got = copy(oct_view_history_at(&a->history, i), picture);
    pthread_mutex_unlock(&a->mutex);
    return got;
}

unsigned oct_view_archive_since(struct oct_view_archive *a, uint64_t arrival_ns)
{
    unsigned n = 0;

    pthread_mutex_lock(&a->mutex);
    const unsigned n_kept = oct_view_history_count(&a->history);
    while (n < n_kept && oct_view_history_at(&a->history, n)->arrival_ns > arrival_ns)
        n++;
    pthread_mutex_unlock(&a->mutex);
    return n;
}

bool oct_view_archive_find(struct oct_view_archive *a, const char *acquisition_id,
                           uint64_t frame_num, struct oct_view_picture *picture)
{
    const struct oct_view_picture *found = NULL;

    pthread_mutex_lock(&a->mutex);
    const unsigned n = oct_view_history_count(&a->moment);
    for (unsigned i = 0; i < n && !found; i++) {
        const struct oct_view_picture *kept = oct_view_history_at(&a->moment, i);
        if (kept->header.frame_num == frame_num &&
            strcmp(kept->header.acquisition_id, acquisition_id) == 0)
            found = kept;
    }
    const bool got = copy(found, picture);
    pthread_mutex_unlock(&a->mutex);
    return got;
}

bool oct_view_archive_average(struct oct_view_archive *a, const char *acquisition_id,
                              uint64_t frame_num, struct oct_view_average *average)
{
    bool got = false;

    pthread_mutex_lock(&a->mutex);
    const bool is_of = strcmp(a->averages_of, acquisition_id) == 0;
    const uint64_t n =
        a->n_averages < OCT_VIEW_MOST_AVERAGES ? a->n_averages : OCT_VIEW_MOST_AVERAGES;
    for (uint64_t i = 0; i < n && is_of && !got; i++) {
        got = a->averages[i].frame_num == frame_num;
        if (got)
            *average = a->averages[i].average;
    }
    pthread_mutex_unlock(&a->mutex);
    return got;
}
