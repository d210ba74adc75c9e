#include "viewer/model/archive.h"

#include <stdlib.h>

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

static void start_anew(struct oct_view_history *h, const struct oct_picture_header *header)
{
    oct_view_history_finish(h);
    size_t n = h->budget_bytes / oct_view_picture_bytes(header);
    h->n_slots = n > OCT_VIEW_HISTORY_MOST ? OCT_VIEW_HISTORY_MOST : (unsigned)n;
    h->picture = calloc(h->n_slots ? h->n_slots : 1, sizeof(*h->picture));
    if (!h->picture)
        h->n_slots = 0;
    h->n_lines = header->n_lines;
    h->depth = header->depth;
    h->sample_type = header->sample_type;
}

static const struct oct_view_picture *before(const struct oct_view_history *h, unsigned i)
{
    return &h->picture[(h->next + h->n_slots - 1 - i) % h->n_slots];
}

void oct_view_history_add(struct oct_view_history *h, const struct oct_view_picture *picture)
{
    const struct oct_picture_header *header = &picture->header;

    if (header->n_lines != h->n_lines || header->depth != h->depth ||
        header->sample_type != h->sample_type)
        start_anew(h, header);
    if (h->n_slots == 0)
        return;
    uint64_t apart_ns = span_ns(h) / h->n_slots;
    if (h->n > 0 && picture->arrival_ns - before(h, 0)->arrival_ns < apart_ns)
        return;
    struct oct_view_picture *slot = &h->picture[h->next];
    if (oct_view_picture_set(slot, header, picture->pixels, oct_view_picture_bytes(header), NULL))
        return;
    slot->arrival_ns = picture->arrival_ns;
    h->next = (h->next + 1) % h->n_slots;
    h->n += h->n < h->n_slots;
}

unsigned oct_view_history_count(const struct oct_view_history *h)
{
    /* Arrivals only rise: all pictures behind the first that is too old are too old. */
    unsigned low = 0, high = h->n;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (before(h, 0)->arrival_ns - before(h, middle)->arrival_ns <= span_ns(h))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct oct_view_picture *oct_view_history_at(const struct oct_view_history *h, unsigned i)
{
    return i < oct_view_history_count(h) ? before(h, i) : NULL;
}
