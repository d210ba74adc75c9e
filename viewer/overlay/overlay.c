/* Which results are taken, drawn and lead the picture; and the keys that switch them. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct oct_view_overlay oct_view_overlay_guide_lines = {.draw = oct_draw_guide_lines};
const struct oct_view_overlay oct_view_overlay_marks = {.draw = oct_draw_marks};

const struct oct_view_overlay *const oct_view_overlays[] = {
#define OVERLAY(name) &oct_view_overlay_##name,
#include "viewer/model/overlays.h"
#undef OVERLAY
};
const size_t oct_view_n_overlays = sizeof(oct_view_overlays) / sizeof(oct_view_overlays[0]);
_Static_assert(sizeof(oct_view_overlays) / sizeof(oct_view_overlays[0]) <= OCT_VIEW_MOST_OVERLAYS,
               "the model has a state for each");

void *oct_view_overlay_state(const struct oct_view_model *model, const struct oct_view_overlay *o)
{
    size_t i = 0;
    assert(o->state_bytes <= OCT_VIEW_OVERLAY_BYTES);
    while (i + 1 < oct_view_n_overlays && oct_view_overlays[i] != o)
        i++;
    return (void *)model->overlay_states[i];
}

bool *oct_view_overlay_setting(struct oct_view_model *model, const struct oct_view_overlay *o)
{
    return o->setting_name ? (bool *)((char *)&model->settings + o->setting) : NULL;
}

/* ---- which picture ---- */

/* Results are steady that come as often as this, or as the pictures of a slower scanner. */
#define STEADY_NS (OCT_NS_PER_S / 4)
#define MOST_STEADY_S 10.0

struct oct_view_of oct_view_of_image(const struct oct_image_header *header)
{
    struct oct_view_of of = {.frame_num = header->frame_num};
    memcpy(of.acquisition_id, header->acquisition_id, sizeof(of.acquisition_id));
    return of;
}

static bool is_shown(const struct oct_view_model *model, const struct oct_view_of *of)
{
    const struct oct_picture_header *h = &model->shown.header;
    return h->frame_num == of->frame_num && strcmp(h->acquisition_id, of->acquisition_id) == 0;
}

static bool is_fresh(const struct oct_view_model *model, uint64_t at_ns)
{
    const uint64_t came_ns = model->lead.came_ns;
    const double rate_hz = oct_view_tally_rate_hz(&model->tally);
    /* Flow is of places, of several B-scans each. */
    const double n = model->lead.of == oct_view_overlay_flow.leads ? model->daemon.repeats : 1;
    const double s = rate_hz > 0 ? fmin(1.5 * fmax(n, 1) / rate_hz, MOST_STEADY_S) : 0;
    const uint64_t ns = (uint64_t)(s * (double)OCT_NS_PER_S);
    return came_ns > 0 && (at_ns < came_ns || at_ns - came_ns <= (ns > STEADY_NS ? ns : STEADY_NS));
}

/* Notes that a result came of this B-scan, at that time. */
static void lead(struct oct_view_model *model, unsigned leads, const struct oct_view_of *of,
                 uint64_t arrival_ns)
{
    struct oct_view_lead *lead = &model->lead;
    const bool goes_on = is_fresh(model, arrival_ns);
    struct oct_view_picture kept = {0};
    if (model->frozen || model->playback.active || !model->archive ||
        (goes_on && leads > lead->of) ||
        (model->settings.average && oct_view_average_comes(model)) ||
        !oct_view_archive_find(model->archive, of, &kept))
        return;
    *lead = (struct oct_view_lead){leads, goes_on && leads == lead->of, arrival_ns};
    if (lead->is_steady && !is_shown(model, of))
        oct_view_model_show_bscan(model, &kept);
    oct_view_picture_finish(&kept);
}

void oct_view_overlay_take(struct oct_view_model *model, const struct oct_view_overlay *o,
                           struct oct_view_image *image)
{
    const struct oct_view_of of = oct_view_of_image(&image->header);
    const bool *setting = oct_view_overlay_setting(model, o);
    /* Cells may be those of a volume. */
    const bool is_bscan =
        o->leads > 0 && oct_image_header_number(&image->header, "is_bscan", 0) != 0;
    if ((setting && !*setting) || (is_bscan && model->frozen && !is_shown(model, &of)))
        return;
    o->take(model, image);
    if (is_bscan)
        lead(model, o->leads, &of, image->arrival_ns);
}

bool oct_view_overlay_leads(const struct oct_view_model *model)
{
    return !model->frozen && !model->playback.active && model->lead.is_steady &&
           is_fresh(model, model->now_ns);
}

bool oct_view_overlay_belongs(const struct oct_view_model *model, const struct oct_view_of *of,
                              double *lines, double *depth)
{
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_average average = model->average;
    /* The shown average may have that B-scan of before its newest one in its mean. */
    const bool is_in_mean =
        of->frame_num < h->frame_num && (double)(h->frame_num - of->frame_num) < average.averaged;
    *lines = *depth = 0;
    if (!model->has_picture || strcmp(of->acquisition_id, h->acquisition_id) != 0)
        return false;
    if (average.arrival_ns == 0)
        return of->frame_num == h->frame_num;
    if (of->frame_num != h->frame_num &&
        !(is_in_mean && model->archive && oct_view_archive_average(model->archive, of, &average)))
        return false;
    if (fabs(average.shift_lines) <= h->n_lines) /* a NaN compares false */
        *lines = average.shift_lines;
    if (fabs(average.shift_depth) <= h->depth)
        *depth = average.shift_depth;
    return !oct_view_average_left_out(&average);
}

bool oct_view_overlay_is_drawn(const struct oct_view_model *model, const struct oct_view_of *of)
{
    const bool is_slow =
        oct_view_tally_rate_hz(&model->tally) * (double)STEADY_NS < (double)OCT_NS_PER_S;
    double lines, depth;
    return (model->frozen || model->playback.active || is_slow || model->average.arrival_ns > 0 ||
            oct_view_overlay_leads(model)) &&
           oct_view_overlay_belongs(model, of, &lines, &depth);
}

struct oct_view_rectf oct_view_overlay_place(const struct oct_draw *draw,
                                             const struct oct_view_model *model,
                                             const struct oct_view_of *of)
{
    struct oct_view_rectf place = oct_draw_layout(draw)->place;
    double lines, depth;
    oct_view_overlay_belongs(model, of, &lines, &depth);
    place.x += lines / model->shown.header.n_lines * place.w;
    place.y += depth / model->shown.header.depth * place.h;
    return place;
}

/* ---- keys ---- */

#define OFFERED_NS (4 * OCT_NS_PER_S)

static void toggle(struct oct_view_model *model, const struct oct_view_overlay *o)
{
    bool *on = oct_view_overlay_setting(model, o);
    const char *but = ""; /* what keeps it from showing something now */
    *on = !*on;
    if (o->action == OCT_ACTION_ROLLOFF && model->settings.arrangement != OCT_ARRANGEMENT_FOUR)
        but = ": in the profile, which L shows";
    if (o->action == OCT_ACTION_CELLS && model->daemon.reachable && model->cells.n == 0)
        but = ": none now";
    if (o->action == OCT_ACTION_CELLS && !model->frozen)
        model->cells = (struct oct_view_cells){.n = 0}; /* no tails over the time without */
    oct_view_model_say(model, "%s%s", *on ? o->drawn : o->not_drawn, *on ? but : "");
    model->lead = (struct oct_view_lead){.is_steady = false}; /* found anew */
}

static bool computes(const struct oct_view_model *model, const struct oct_view_overlay *o)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, o->topic);
    return !d->reachable || !d->analyses_told || (row && !row->at_rest);
}

/* One key draws flow, then the velocity, of what octd computes, then neither. Returns what is drawn
 * now, or (neither is computed) what to offer. */
static const struct oct_view_overlay *next_flow(struct oct_view_model *model)
{
    static const struct oct_view_overlay *const both[] = {&oct_view_overlay_flow,
                                                          &oct_view_overlay_velocity};
    struct oct_view_settings *s = &model->settings;
    unsigned next = s->velocity ? 2 : s->flow ? 1 : 0;
    if (!computes(model, both[0]) && !computes(model, both[1]))
        return both[0];
    while (next < 2 && !computes(model, both[next]))
        next++;
    s->flow = next == 0;
    s->velocity = next == 1;
    model->lead = (struct oct_view_lead){.is_steady = false};
    oct_view_model_say(model, "%s", next < 2 ? both[next]->drawn : both[0]->not_drawn);
    return next < 2 ? both[next] : NULL;
}

/* octd is there and does not compute it. */
static void offer(struct oct_view_model *model, const struct oct_view_overlay *o, bool runs)
{
    struct oct_view_offer *offer = &model->offer;
    const bool again = offer->action == o->action && model->now_ns < offer->until_ns;
    char key[OCT_VIEW_LABEL_BYTES];
    *offer = (struct oct_view_offer){.action = o->action};
    snprintf(key, sizeof(key), "%s.enabled", o->topic);
    if (o == &oct_view_overlay_flow && model->daemon.repeats == 1) {
        oct_view_model_say(model, "flow is seen between B-scans of one place: set scan.repeats to "
                                  "2 or more");
    } else if (!runs) {
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

/* Borders: none, then ILM and RPE, for which octd begins to search, then all seven, then none, and
 * octd's search ends. Where octd does not answer, what is drawn alone changes. */
static void cycle_layers(struct oct_view_model *model)
{
    struct oct_view_settings *s = &model->settings;
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, "surfaces");
    /* While it records octd takes no keys. */
    const bool asks =
        d->reachable && d->analyses_told && !d->record.active && !model->playback.active;
    model->lead = (struct oct_view_lead){.is_steady = false}; /* found anew */
    if (asks && !row) {
        s->layers = s->all_layers = false;
        oct_view_model_say(model, "octd finds no layers: analysis.run lacks surfaces");
        return;
    }
    const bool begins = !s->layers || (asks && row->at_rest);
    const bool ends = !begins && s->all_layers;
    s->all_layers = !begins && !ends;
    s->layers = !ends;
    oct_view_model_say(model, "%s",
                       ends            ? "layers are not drawn"
                       : s->all_layers ? "all seven borders of the retina's layers"
                                       : "the retina's layers, as octd finds them: ILM and RPE");
    if (!asks || (!ends && !(begins && row->at_rest)))
        return;
    oct_view_model_wish(model, ends ? OCT_WISH_DISABLE : OCT_WISH_ENABLE, "surfaces.enabled");
    /* The next press counts from here, whatever the next status says. */
    model->daemon.analysis[row - d->analysis].at_rest = ends;
}

/* Begins in octd what it does not compute, and draws it; ends it. */
static void run(struct oct_view_model *model, const struct oct_view_overlay *o, bool on)
{
    const struct oct_view_analysis *row = oct_view_daemon_analysis(&model->daemon, o->topic);
    char key[OCT_VIEW_LABEL_BYTES];
    *oct_view_overlay_setting(model, o) = on;
    if (row->at_rest != on)
        return;
    snprintf(key, sizeof(key), "%s.enabled", o->topic);
    oct_view_model_wish(model, on ? OCT_WISH_ENABLE : OCT_WISH_DISABLE, key);
    /* The next press counts from here, whatever the next status says. */
    model->daemon.analysis[row - model->daemon.analysis].at_rest = !on;
}

const struct oct_view_overlay *oct_view_overlay_more(const struct oct_view_model *model)
{
    static const struct oct_view_overlay *const both[] = {&oct_view_overlay_cells,
                                                          &oct_view_overlay_rolloff};
    for (unsigned i = 0; i < 2; i++) {
        const struct oct_view_analysis *row =
            oct_view_daemon_analysis(&model->daemon, both[i]->topic);
        const bool is_drawn = i ? model->settings.rolloff : model->settings.cells;
        if (row && !row->at_rest && is_drawn)
            return both[i];
    }
    return NULL;
}

/* One button begins cells, then a mirror in their place, then ends that, of what octd runs. */
static void cycle_more(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_overlay *now = oct_view_overlay_more(model), *next = NULL;
    const bool has_cells = oct_view_daemon_analysis(d, oct_view_overlay_cells.topic);
    const bool has_mirror = oct_view_daemon_analysis(d, oct_view_overlay_rolloff.topic);
    if (!d->reachable || d->record.active || (!has_cells && !has_mirror)) {
        oct_view_model_say(model, d->record.active
                                      ? "while it records octd begins nothing new"
                                      : "octd follows no cells and measures no mirror");
        return;
    }
    if (!now && has_cells)
        next = &oct_view_overlay_cells;
    else if (now != &oct_view_overlay_rolloff && has_mirror)
        next = &oct_view_overlay_rolloff;
    if (now)
        run(model, now, false);
    if (next)
        run(model, next, true);
    if (next == &oct_view_overlay_rolloff)
        model->settings.arrangement = OCT_ARRANGEMENT_FOUR;   /* it stands in the profile */
    model->lead = (struct oct_view_lead){.is_steady = false}; /* found anew */
    oct_view_model_say(model, "%s", next ? next->drawn : now->not_drawn);
}

void oct_view_overlay_apply(struct oct_view_model *model, enum oct_view_action action)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_view_overlay *o = NULL;
    for (size_t i = 0; i < oct_view_n_overlays; i++)
        if (oct_view_overlays[i]->setting_name && oct_view_overlays[i]->action == action)
            o = oct_view_overlays[i];
    if (action == OCT_ACTION_FLOW)
        o = next_flow(model);
    if (action == OCT_ACTION_LAYERS)
        cycle_layers(model);
    if (action == OCT_ACTION_MORE)
        cycle_more(model);
    if (!o)
        return;
    const struct oct_view_analysis *row = oct_view_daemon_analysis(d, o->topic);
    if (action == OCT_ACTION_LAYERS)
        ; /* done */
    else if (!computes(model, o))
        offer(model, o, row != NULL);
    else if (action != OCT_ACTION_FLOW)
        toggle(model, o);
    if (d->reachable && row && row->failing && *oct_view_overlay_setting(model, o))
        oct_view_model_say(model, "octd cannot compute %s: %s", o->topic, row->error);
}
