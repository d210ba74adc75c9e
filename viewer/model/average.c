#include "viewer/model/average.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SILENT_NS (2 * OCT_NS_PER_S)

enum oct_err oct_view_average_check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->rank == 2 && header->dims[0] > 0 && header->n_labels == 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT, "average: it is no picture of A-lines and depths");
}

void oct_view_average_take(struct oct_view_average *average, struct oct_view_image *image,
                           struct oct_view_picture *picture)
{
    const struct oct_image_header *h = &image->header;
    const struct oct_view_picture kept = *picture;

    *average = (struct oct_view_average){
        .averaged = oct_image_header_number(h, "averaged", 0),
        .rejected = oct_image_header_number(h, "rejected", 0),
        .score = oct_image_header_number(h, "score", 0),
        .arrival_ns = image->arrival_ns,
    };
    *picture = (struct oct_view_picture){
        .header = {.frame_num = h->frame_num,
                   .sample_type = h->type,
                   .n_lines = h->dims[0],
                   .depth = h->dims[1],
                   .time_ns = h->time_ns,
                   .missing_lines = h->missing_lines,
                   .lo = h->lo,
                   .hi = h->hi,
                   .volume = h->volume,
                   .bscan = h->bscan},
        .pixels = image->values,
        .capacity_bytes = image->capacity_bytes,
        .arrival_ns = image->arrival_ns,
    };
    memcpy(picture->header.acquisition_id, h->acquisition_id,
           sizeof(picture->header.acquisition_id));
    image->values = kept.pixels;
    image->capacity_bytes = kept.capacity_bytes;
}

bool oct_view_average_text(const struct oct_view_model *model, char *text, size_t n_bytes)
{
    const struct oct_view_average *a = &model->average;
    const struct oct_view_daemon *d = &model->daemon;
    bool came = a->arrival_ns > 0 && model->now_ns < a->arrival_ns + SILENT_NS;
    char of[16] = "", score[16] = "";

    if (d->known && d->average_bscans <= 1) {
        snprintf(text, n_bytes, "average: off (octctl set average.bscans 16)");
        return true;
    }
    if (!came && !model->frozen) {
        snprintf(text, n_bytes, "average: none comes");
        return true;
    }
    if (d->known)
        snprintf(of, sizeof(of), "/%.0f", d->average_bscans);
    if (isfinite(a->score))
        snprintf(score, sizeof(score), "  %.2f", a->score);
    snprintf(text, n_bytes, "average %.0f%s%s", isfinite(a->averaged) ? a->averaged : 0, of, score);
    return a->score < d->average_min_score;
}
