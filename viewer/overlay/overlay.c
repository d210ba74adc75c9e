/* Which results are taken, drawn and lead the picture; and the keys that switch them. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

void oct_view_overlay_lead(struct oct_view_model *model, enum oct_view_leader of,
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

/* Where that B-scan lies: averages move the newest one. */
struct oct_view_rectf oct_view_overlay_place(const struct oct_draw *draw,
                                             const struct oct_view_model *model,
                                             const char *acquisition_id, uint64_t frame_num)
{
    struct oct_view_rectf place = oct_draw_place(draw);
    double lines, depth;

    oct_view_overlay_belongs(model, acquisition_id, frame_num, &lines, &depth);
    place.x += lines / model->shown.header.n_lines * place.w;
    place.y += depth / model->shown.header.depth * place.h;
    return place;
}

/* ---- the table ---- */

static const struct oct_view_overlay guide_lines = {.draw = oct_draw_guide_lines};
static const struct oct_view_overlay marks = {.draw = oct_draw_marks};

const struct oct_view_overlay *const oct_view_overlays[] = {
    &oct_view_overlay_average,
    &oct_view_overlay_sharpened,
    &oct_view_overlay_layers,
    &guide_lines,
    &oct_view_overlay_enface,
    &oct_view_overlay_slab,
    &marks,
    &oct_view_overlay_cones,
    &oct_view_overlay_cells,
    &oct_view_overlay_rolloff,
};
const size_t oct_view_n_overlays = sizeof(oct_view_overlays) / sizeof(oct_view_overlays[0]);

/* ---- keys ---- */

#define OFFERED_NS (4 * OCT_NS_PER_S)

bool *oct_view_overlay_setting(struct oct_view_model *model, const struct oct_view_overlay *o)
{
    return o->setting_name ? (bool *)((char *)&model->settings + o->setting) : NULL;
}

/* What keeps a switch that is on from showing something now; "": nothing is known to. */
static const char *but(const struct oct_view_model *model, enum oct_view_action action)
{
    if (action == OCT_ACTION_ROLLOFF && model->settings.arrangement != OCT_ARRANGEMENT_FOUR)
        return ": in the profile, which L shows";
    if (action == OCT_ACTION_CELLS && model->daemon.reachable && model->cells.n == 0)
        return ": none now";
    return "";
}

static void toggle(struct oct_view_model *model, const struct oct_view_overlay *o)
{
    bool *on = oct_view_overlay_setting(model, o);
    const char *besides = but(model, o->action); /* of cells that came until now */

    *on = !*on;
    if (o->action == OCT_ACTION_CELLS && !model->frozen)
        model->cells = (struct oct_view_cells){.n = 0}; /* no tails over the time without */
    oct_view_model_say(model, "%s%s", *on ? o->drawn : o->not_drawn, *on ? besides : "");
    model->lead = (struct oct_view_lead){.is_steady = false}; /* found anew */
}

/* octd is there and does not compute it. */
static void offer(struct oct_view_model *model, const struct oct_view_overlay *o, bool runs)
{
    struct oct_view_offer *offer = &model->offer;
    const bool again = offer->action == o->action && model->now_ns < offer->until_ns;
    char key[OCT_VIEW_LABEL_BYTES];

    *offer = (struct oct_view_offer){.action = o->action};
    snprintf(key, sizeof(key), "%s.enabled", o->topic);
    if (!runs) {
        oct_view_model_say(model, "octd %s: analysis.run lacks %s", o->what, o->topic);
    } else if (again) {
        *oct_view_overlay_setting(model, o) = true;
        oct_view_model_say(model, "octd is asked for %s = yes", key);
        oct_view_model_wish(model, OCT_WISH_ENABLE, key);
    } else {
        offer->until_ns = model->now_ns + OFFERED_NS;
        oct_view_model_say(model, "octd %s: %c again sets %s = yes", o->what, o->key, key);
    }
}

bool oct_view_overlay_apply(struct oct_view_model *model, enum oct_view_action action)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_overlay *o = NULL;

    for (size_t i = 0; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->setting_name && oct_view_overlays[i]->action == action)
            o = oct_view_overlays[i];
    if (!o)
        return false;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, o->topic);
    if (d->reachable && d->analyses_told && (!row || row->at_rest))
        offer(model, o, row != NULL);
    else
        toggle(model, o);
    if (d->reachable && row && row->failing && *oct_view_overlay_setting(model, o))
        oct_view_model_say(model, "octd cannot compute %s: %s", o->topic, row->error);
    return true;
}
