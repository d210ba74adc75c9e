#include "viewer/model/archive.h"

#include "pipeline/base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tally ---- */

/* Long enough for a steady figure, short enough to follow a change of the scan. */
#define RATE_WINDOW_NS (OCT_NS_PER_S / 2)

void oct_view_tally_add(struct oct_view_tally *tally, const struct oct_picture_header *header,
                        uint64_t now_ns)
{
    const bool goes_on =
        tally->n_received > 0 && header->frame_num > tally->last_frame_num &&
        strncmp(tally->acquisition_id, header->acquisition_id, sizeof(tally->acquisition_id)) == 0;
    const uint64_t gap = goes_on ? header->frame_num - tally->last_frame_num - 1 : 0;
    const uint64_t window_ns = now_ns - tally->window_start_ns;
    tally->n_skipped = gap > UINT64_MAX - tally->n_skipped ? UINT64_MAX : tally->n_skipped + gap;
    tally->n_window += tally->n_received > 0;
    if (tally->n_received == 0) {
        tally->window_start_ns = now_ns;
    } else if (window_ns >= RATE_WINDOW_NS) {
        tally->rate_hz = (double)tally->n_window * (double)OCT_NS_PER_S / (double)window_ns;
        tally->window_start_ns = now_ns;
        tally->n_window = 0;
    }
    tally->n_received++;
    tally->last_frame_num = header->frame_num;
    tally->last_arrival_ns = now_ns;
    memcpy(tally->acquisition_id, header->acquisition_id, sizeof(tally->acquisition_id));
}

double oct_view_tally_rate_hz(const struct oct_view_tally *tally)
{
    if (tally->rate_hz > 0)
        return tally->rate_hz;
    /* The first measurement still runs: say what it has so far. */
    uint64_t window_ns = tally->last_arrival_ns - tally->window_start_ns;
    if (tally->n_window == 0 || window_ns == 0)
        return 0;
    return (double)tally->n_window * (double)OCT_NS_PER_S / (double)window_ns;
}

/* ---- the quality ---- */

/* A hostile number may be anything; what is kept is finite, and so are differences of it. */
#define MOST 1e9

static double number(const struct oct_view_image *row, const char *label, double otherwise)
{
    double value = oct_image_header_value(&row->header, row->values, label);
    return isfinite(value) ? fmin(fmax(value, -MOST), MOST) : otherwise;
}

static uint64_t count(const struct oct_view_image *row, const char *label, uint64_t otherwise)
{
    double value = number(row, label, -1);
    return value >= 0 ? (uint64_t)value : otherwise;
}

enum oct_err oct_view_quality_check(const struct oct_image_header *header, struct oct_error *err)
{
    if (!oct_view_image_is_row(header))
        return oct_fail(err, OCT_E_FORMAT, "%.40s: a quality is one row of labelled f32 numbers",
                        header->dataset);
    return OCT_OK;
}

void oct_view_quality_add(struct oct_view_quality *q, const struct oct_view_image *row)
{
    const uint64_t bin = row->arrival_ns / OCT_VIEW_TIMELINE_BIN_NS;
    struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];
    if (oct_view_quality_check(&row->header, NULL) || oct_view_image_bytes(&row->header) == 0)
        return;
    q->marks = (number(row, "blink", 0) > 0.5 ? OCT_MARK_BLINK : 0u) |
               (number(row, "motion", 0) > 0.5 ? OCT_MARK_MOTION : 0u) |
               (number(row, "missing", 0) > 0.5 ? OCT_MARK_MISSING : 0u);
    q->snr_db = number(row, "snr_smooth_db", q->snr_db);
    q->sharpness = number(row, "sharpness_smooth", q->sharpness);
    q->level_db = number(row, "level_db", q->level_db);
    q->n_blinks = count(row, "blinks", q->n_blinks);
    q->n_motions = count(row, "motions", q->n_motions);
    if (!q->known || m->bin != bin)
        *m = (struct oct_view_moment){bin, NAN, NAN, 0};
    /* fminf ignores a NaN beside a number. */
    m->snr_db = fminf(m->snr_db, (float)number(row, "snr_db", NAN));
    m->sharpness = fminf(m->sharpness, (float)number(row, "sharpness", NAN));
    m->marks |= q->marks;
    q->known = true;
}

const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *q,
                                                      uint64_t bin)
{
    const struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];
    return q->known && m->bin == bin ? m : NULL;
}

/* ---- the history ---- */

/* False: there is none, or no memory. */
static bool copy(const struct oct_view_picture *from, struct oct_view_picture *to)
{
    if (!from || oct_view_picture_set(to, &from->header, from->pixels,
                                      oct_view_picture_bytes(&from->header), NULL))
        return false;
    to->arrival_ns = from->arrival_ns;
    return true;
}

void oct_view_history_finish(struct oct_view_history *h)
{
    for (unsigned i = 0; i < h->n_slots; i++)
        oct_view_picture_finish(&h->picture[i]);
    free(h->picture);
    *h = (struct oct_view_history){.budget_bytes = h->budget_bytes, .span_ns = h->span_ns};
}

static uint64_t span_ns(const struct oct_view_history *h)
{
    return h->span_ns ? h->span_ns : OCT_VIEW_HISTORY_NS;
}

static const struct oct_view_picture *before(const struct oct_view_history *h, unsigned i)
{
    return &h->picture[(h->next + h->n_slots - 1 - i) % h->n_slots];
}

void oct_view_history_add(struct oct_view_history *h, const struct oct_view_picture *picture)
{
    const struct oct_picture_header *header = &picture->header;
    if (header->n_lines != h->n_lines || header->depth != h->depth ||
        header->sample_type != h->sample_type) {
        oct_view_history_finish(h);
        const size_t n = h->budget_bytes / oct_view_picture_bytes(header);
        h->n_slots = n > OCT_VIEW_HISTORY_MOST ? OCT_VIEW_HISTORY_MOST : (unsigned)n;
        h->picture = calloc(h->n_slots ? h->n_slots : 1, sizeof(*h->picture));
        h->n_slots = h->picture ? h->n_slots : 0;
        h->n_lines = header->n_lines;
        h->depth = header->depth;
        h->sample_type = header->sample_type;
    }
    if (h->n_slots == 0)
        return;
    uint64_t apart_ns = span_ns(h) / h->n_slots;
    if (h->n > 0 && picture->arrival_ns - before(h, 0)->arrival_ns < apart_ns)
        return;
    if (!copy(picture, &h->picture[h->next]))
        return;
    h->next = (h->next + 1) % h->n_slots;
    h->n += h->n < h->n_slots;
}

unsigned oct_view_history_count(const struct oct_view_history *h)
{
    unsigned n = 0;
    while (n < h->n && before(h, 0)->arrival_ns - before(h, n)->arrival_ns <= span_ns(h))
        n++;
    return n;
}

const struct oct_view_picture *oct_view_history_at(const struct oct_view_history *h, unsigned i)
{
    return i < oct_view_history_count(h) ? before(h, i) : NULL;
}

/* ---- the archive ---- */

struct oct_view_archive {
    pthread_mutex_t mutex; /* guards all below */
    struct oct_view_history history, moment;
    struct oct_view_quality quality;
    struct {
        struct oct_view_of of;
        struct oct_view_average average;
    } averages[OCT_VIEW_MOST_AVERAGES]; /* a ring */
    uint64_t n_averages;
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
    pthread_mutex_lock(&a->mutex);
    if (!a->frozen) {
        const uint64_t at = a->n_averages++ % OCT_VIEW_MOST_AVERAGES;
        a->averages[at].of = oct_view_of_image(&image->header);
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

unsigned oct_view_archive_freeze(struct oct_view_archive *a, bool frozen, uint64_t arrival_ns)
{
    unsigned n = 0;
    pthread_mutex_lock(&a->mutex);
    a->frozen = frozen;
    const unsigned n_kept = oct_view_history_count(&a->history);
    while (n < n_kept && before(&a->history, n)->arrival_ns > arrival_ns)
        n++;
    pthread_mutex_unlock(&a->mutex);
    return n;
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
    const bool got = copy(oct_view_history_at(&a->history, i), picture);
    pthread_mutex_unlock(&a->mutex);
    return got;
}

bool oct_view_archive_find(struct oct_view_archive *a, const struct oct_view_of *of,
                           struct oct_view_picture *picture)
{
    const struct oct_view_picture *found = NULL;
    pthread_mutex_lock(&a->mutex);
    const unsigned n = oct_view_history_count(&a->moment);
    for (unsigned i = 0; i < n && !found; i++) {
        const struct oct_view_picture *kept = before(&a->moment, i);
        if (kept->header.frame_num == of->frame_num &&
            strcmp(kept->header.acquisition_id, of->acquisition_id) == 0)
            found = kept;
    }
    const bool got = copy(found, picture);
    pthread_mutex_unlock(&a->mutex);
    return got;
}

bool oct_view_archive_average(struct oct_view_archive *a, const struct oct_view_of *of,
                              struct oct_view_average *average)
{
    bool got = false;
    pthread_mutex_lock(&a->mutex);
    for (uint64_t i = 0; i < OCT_VIEW_MOST_AVERAGES && i < a->n_averages && !got; i++) {
        got = a->averages[i].of.frame_num == of->frame_num &&
              strcmp(a->averages[i].of.acquisition_id, of->acquisition_id) == 0;
        if (got)
            *average = a->averages[i].average;
    }
    pthread_mutex_unlock(&a->mutex);
    return got;
}
