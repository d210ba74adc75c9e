#include "viewer/model/overlay.h"

#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <string.h>

/* Results are steady that come as often as this, or as the pictures of a slower scanner. */
#define STEADY_NS (OCT_NS_PER_S / 4)
#define MOST_STEADY_S 10.0

static bool is_same(const struct oct_picture_header *shown, const char *acquisition_id,
                    uint64_t frame_num)
{
    return shown->frame_num == frame_num && strcmp(shown->acquisition_id, acquisition_id) == 0;
}

static uint64_t steady_ns(const struct oct_view_model *model)
{
    const double rate_hz = oct_view_tally_rate_hz(&model->tally);
    const double s = rate_hz > 0 ? fmin(1.5 / rate_hz, MOST_STEADY_S) : 0;
    const uint64_t ns = (uint64_t)(s * (double)OCT_NS_PER_S);
    return ns > STEADY_NS ? ns : STEADY_NS;
}

static bool is_fresh(const struct oct_view_model *model, uint64_t at_ns)
{
    const uint64_t came_ns = model->lead.came_ns;
    return came_ns > 0 && (at_ns < came_ns || at_ns - came_ns <= steady_ns(model));
}

bool oct_view_overlay_takes(const struct oct_view_model *model,
                            const struct oct_image_header *header)
{
    return !model->frozen ||
           is_same(&model->shown.header, header->acquisition_id, header->frame_num);
}

void oct_view_overlay_lead(struct oct_view_model *model, enum oct_view_overlay of,
                           const struct oct_image_header *header, uint64_t arrival_ns)
{
    struct oct_view_lead *lead = &model->lead;
    const bool goes_on = is_fresh(model, arrival_ns);
    struct oct_view_picture kept = {0};

    if (model->frozen || model->playback.active || !model->archive || (goes_on && of > lead->of) ||
        (model->settings.average && oct_view_average_comes(model)))
        return;
    if (!oct_view_archive_find(model->archive, header->acquisition_id, header->frame_num, &kept))
        return;
    *lead = (struct oct_view_lead){of, goes_on && of == lead->of, arrival_ns};
    if (lead->is_steady &&
        !is_same(&model->shown.header, header->acquisition_id, header->frame_num))
        oct_view_model_show_bscan(model, &kept);
    oct_view_picture_finish(&kept);
}

bool oct_view_overlay_leads(const struct oct_view_model *model)
{
    return !model->frozen && !model->playback.active && model->lead.is_steady &&
           is_fresh(model, model->now_ns);
}

/* Whether the shown average may have that B-scan of before its newest one in its mean. */
static bool is_in_mean(const struct oct_view_model *model, uint64_t frame_num)
{
    const uint64_t newest = model->shown.header.frame_num;
    return frame_num < newest && (double)(newest - frame_num) < model->average.averaged;
}

bool oct_view_overlay_belongs(const struct oct_view_model *model, const char *acquisition_id,
                              uint64_t frame_num, double *lines, double *depth)
{
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_average of = model->average;

    *lines = *depth = 0;
    if (!model->has_picture || model->playback.active ||
        strcmp(acquisition_id, h->acquisition_id) != 0)
        return false;
    if (of.arrival_ns == 0)
        return frame_num == h->frame_num;
    if (frame_num != h->frame_num &&
        !(is_in_mean(model, frame_num) && model->archive &&
          oct_view_archive_average(model->archive, acquisition_id, frame_num, &of)))
        return false;
    if (fabs(of.shift_lines) <= h->n_lines) /* a NaN compares false */
        *lines = of.shift_lines;
    if (fabs(of.shift_depth) <= h->depth)
        *depth = of.shift_depth;
    return !oct_view_average_left_out(&of);
}

bool oct_view_overlay_is_drawn(const struct oct_view_model *model, const char *acquisition_id,
                               uint64_t frame_num)
{
    const bool is_slow =
        oct_view_tally_rate_hz(&model->tally) * (double)STEADY_NS < (double)OCT_NS_PER_S;
    double lines, depth;

    return (model->frozen || is_slow || model->average.arrival_ns > 0 ||
            oct_view_overlay_leads(model)) &&
           oct_view_overlay_belongs(model, acquisition_id, frame_num, &lines, &depth);
}
