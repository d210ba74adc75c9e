#include "viewer/model/scan.h"

#include "pipeline/base/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEG (180 / 3.14159265358979323846)
/* A driver that follows sends lines by then. */
#define BEGINS_NS (5 * OCT_NS_PER_S)

/* ---- the picture from above ---- */

static bool has_picture_from_above(enum oct_scan_pattern pattern)
{
    return pattern != OCT_SCAN_LINE && pattern != OCT_SCAN_CIRCLE;
}

bool oct_view_above_is_kept(const struct oct_view_model *model)
{
    return !model->playback.active && model->scan.above.is_known &&
           !has_picture_from_above(model->daemon.scan.pattern);
}

const struct oct_scan *oct_view_above_scan(const struct oct_view_model *model)
{
    if (model->playback.active)
        return &model->playback.file.scan;
    return model->scan.above.is_known ? &model->scan.above.scan : &model->daemon.scan;
}

static bool is_same_way(const struct oct_scan *a, const struct oct_scan *b)
{
    return a->pattern == b->pattern && a->n_lines == b->n_lines && a->n_bscans == b->n_bscans &&
           a->width_um == b->width_um && a->height_um == b->height_um &&
           a->centre_um[0] == b->centre_um[0] && a->centre_um[1] == b->centre_um[1] &&
           a->angle_deg == b->angle_deg;
}

/* Whether the newest status says of which scan an image is. */
static bool is_told(struct oct_view_model *model, const char *acquisition_id)
{
    struct oct_view_above *a = &model->scan.above;
    if (strcmp(a->next_id, acquisition_id) != 0) {
        snprintf(a->next_id, sizeof(a->next_id), "%s", acquisition_id);
        a->next_ns = model->now_ns;
    }
    return !model->daemon.pending && model->daemon.answer_ns >= a->next_ns;
}

bool oct_view_above_take(struct oct_view_model *model, const struct oct_image_header *header)
{
    const struct oct_view_daemon *d = &model->daemon;
    struct oct_view_above *a = &model->scan.above;
    if (!model->has_control || !d->reachable)
        return true;
    if (d->scans.has_number && strcmp(a->acquisition_id, header->acquisition_id) == 0)
        return true;
    if (d->scans.has_number && !is_told(model, header->acquisition_id))
        return false;
    const bool is_map = has_picture_from_above(d->scan.pattern);
    if (!is_map && a->is_known)
        return false;
    model->enface.forget |= a->is_known && !is_same_way(&a->scan, &d->scan);
    snprintf(a->acquisition_id, sizeof(a->acquisition_id), "%s", header->acquisition_id);
    a->is_known = is_map;
    a->scan = d->scan;
    a->lateral_um = d->lateral_um;
    a->slow_um = d->slow_um;
    return true;
}

/* Its extent in um, and how far it is turned: rows lie as they are scanned, a gridded one as the
 * field. False: it is no map. */
static bool map_of(const struct oct_view_model *model, double size_um[2], double *angle)
{
    const struct oct_view_enface *e = oct_view_model_enface(model);
    const struct oct_scan *s = oct_view_above_scan(model);
    if (e->n_rows == 0 || s->n_bscans == 0 || s->pattern == OCT_SCAN_FILE ||
        !has_picture_from_above(s->pattern))
        return false;
    const bool has_rows = oct_scan_has_rows(s);
    size_um[0] = has_rows ? s->width_um : e->n_lines * e->spacing_um;
    size_um[1] = has_rows ? s->height_um : e->n_bscans * e->spacing_um;
    *angle = has_rows ? s->angle_deg / DEG : 0;
    return size_um[0] > 0 && size_um[1] > 0 && isfinite(size_um[0] + size_um[1]);
}

bool oct_view_above_share(const struct oct_view_model *model, const double um[2], double share[2])
{
    const double *centre = oct_view_above_scan(model)->centre_um;
    double size[2], angle;
    if (!map_of(model, size, &angle))
        return false;
    const double x = um[0] - centre[0], y = um[1] - centre[1];
    share[0] = 0.5 + (x * cos(angle) + y * sin(angle)) / size[0];
    share[1] = 0.5 + (y * cos(angle) - x * sin(angle)) / size[1];
    return true;
}

bool oct_view_above_um(const struct oct_view_model *model, const double share[2], double um[2])
{
    const double *centre = oct_view_above_scan(model)->centre_um;
    double size[2], angle;
    if (!map_of(model, size, &angle))
        return false;
    const double x = (share[0] - 0.5) * size[0], y = (share[1] - 0.5) * size[1];
    um[0] = centre[0] + x * cos(angle) - y * sin(angle);
    um[1] = centre[1] + x * sin(angle) + y * cos(angle);
    return true;
}

/* ---- what runs ---- */

bool oct_view_scan_is_placed(const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    return d->known && !d->scans.is_listed && d->scan.pattern == OCT_SCAN_LINE;
}

static bool is_of_scan(enum oct_view_wish wish)
{
    return wish == OCT_WISH_SCAN || wish == OCT_WISH_SCAN_KEYS;
}

static bool is_asked(const struct oct_view_model *model)
{
    return is_of_scan(model->asked) || oct_view_wishes_find(&model->wishes, OCT_WISH_SCAN) ||
           oct_view_wishes_find(&model->wishes, OCT_WISH_SCAN_KEYS);
}

/* No picture of the scan that runs has come. */
static bool is_new(const struct oct_view_model *model)
{
    const uint64_t changed_ns = model->scan.changed_ns;
    return changed_ns > 0 && model->tally.last_arrival_ns <= changed_ns &&
           model->now_ns < changed_ns + BEGINS_NS;
}

bool oct_view_scan_changes(const struct oct_view_model *model)
{
    return is_asked(model) || (model->daemon.reachable && is_new(model));
}

bool oct_view_scan_is_busy(const struct oct_view_model *model)
{
    return model->daemon.scans.n > 0 && (model->daemon.pending || oct_view_scan_changes(model));
}

bool oct_view_scan_holds_recording(const struct oct_view_model *model,
                                   const struct oct_view_daemon *daemon)
{
    return is_asked(model) && daemon->pending && !daemon->record.active &&
           model->daemon.record.active;
}

void oct_view_scan_hear(struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    struct oct_view_scan *s = &model->scan;
    if (s->has_number && d->scans.has_number && d->scans.number != s->number)
        s->changed_ns = model->now_ns;
    s->has_number = d->scans.has_number;
    s->number = d->scans.number;
    s->rows.n = d->scans.n > 0 ? d->scans.n + 1 : 0;
    s->is_open &= s->rows.n > 0;
    if (oct_view_scan_is_placed(model))
        return;
    s->is_averages &= is_asked(model);
    s->has_before = true;
    s->before_is_listed = d->scans.is_listed;
    memcpy(s->before_name, d->scans.running, sizeof(s->before_name));
    s->before = d->scan;
}

void oct_view_scan_answered(struct oct_view_model *model, const struct oct_view_answer *answer)
{
    struct oct_view_scan *s = &model->scan;
    if (!is_of_scan(answer->wish) || answer->ok || !s->is_averages)
        return;
    /* Without its line Average is none; whether a lost one runs is in the status. */
    model->settings.average = false;
    s->is_averages = answer->unanswered;
    oct_view_wishes_drop(&model->wishes, OCT_WISH_AVERAGE);
}

/* ---- what is asked for ---- */

/* The keys that a line has of its own, of this pattern. */
static void wish_way(struct oct_view_model *model, const struct oct_scan *way)
{
    char json[OCT_VIEW_LABEL_BYTES];
    snprintf(json, sizeof(json),
             "{\"pattern\":\"%s\",\"centre_x_um\":%.1f,\"centre_y_um\":%.1f,\"angle_deg\":%.2f,"
             "\"width_um\":%.1f}",
             oct_scan_pattern_names[way->pattern], way->centre_um[0], way->centre_um[1],
             way->angle_deg, way->width_um);
    oct_view_model_wish(model, OCT_WISH_SCAN_KEYS, json);
}

/* The user leaves what Average scans. */
static void leave_average(struct oct_view_model *model)
{
    model->settings.average &= !model->scan.is_averages;
    model->scan.is_averages = false;
}

void oct_view_scan_back(struct oct_view_model *model)
{
    const struct oct_view_scan *s = &model->scan;
    leave_average(model);
    model->scan.draws = false;
    if (s->has_before && !s->before_is_listed)
        wish_way(model, &s->before);
    else
        oct_view_model_wish(model, OCT_WISH_SCAN, s->before_name);
}

bool oct_view_scan_average(struct oct_view_model *model, bool begins)
{
    const struct oct_view_daemon *d = &model->daemon;
    const struct oct_scan *now = &d->scan;
    const uint32_t b = model->shown.header.bscan;
    struct oct_scan line = {.pattern = OCT_SCAN_LINE, .width_um = now->width_um};
    double first[2], last[2];
    const bool is_straight = now->pattern == OCT_SCAN_RASTER ||
                             now->pattern == OCT_SCAN_RASTER_BOTH ||
                             now->pattern == OCT_SCAN_RADIAL;
    if (!model->has_control || !d->reachable || d->record.active)
        return false;
    if (!begins) {
        const bool ends = model->scan.is_averages && oct_view_scan_is_placed(model);
        if (ends)
            oct_view_scan_back(model);
        return ends;
    }
    if (d->scans.n == 0 || !model->has_picture || model->playback.active || !is_straight ||
        now->n_lines < 2 || b >= now->n_bscans)
        return false;
    oct_scan_position(now, b, 0, first);
    oct_scan_position(now, b, now->n_lines - 1, last);
    for (int axis = 0; axis < 2; axis++)
        line.centre_um[axis] = (first[axis] + last[axis]) / 2;
    line.angle_deg = atan2(last[1] - first[1], last[0] - first[0]) * DEG;
    if (!isfinite(line.angle_deg + line.centre_um[0] + line.centre_um[1]))
        return false;
    model->scan.is_averages = true;
    wish_way(model, &line);
    return true;
}

/* ---- a line that is drawn ---- */

void oct_view_scan_draw(struct oct_view_model *model, const double from[2], const double to[2])
{
    struct oct_view_scan *s = &model->scan;
    s->has_line = s->draws;
    for (int axis = 0; axis < 2; axis++) {
        s->from[axis] = fmin(fmax(from[axis], 0), 1);
        s->to[axis] = fmin(fmax(to[axis], 0), 1);
    }
}

/* The left end of a line is the left one of its B-scan: however it is drawn, no eye is mirrored. */
void oct_view_scan_release(struct oct_view_model *model)
{
    struct oct_view_scan *s = &model->scan;
    const bool is_backwards =
        s->to[0] < s->from[0] || (s->to[0] == s->from[0] && s->to[1] < s->from[1]);
    struct oct_scan line = {.pattern = OCT_SCAN_LINE};
    double a[2], b[2];
    if (!s->has_line)
        return;
    s->has_line = false;
    if (!oct_view_above_um(model, is_backwards ? s->to : s->from, a) ||
        !oct_view_above_um(model, is_backwards ? s->from : s->to, b))
        return;
    for (int axis = 0; axis < 2; axis++)
        line.centre_um[axis] = (a[axis] + b[axis]) / 2;
    line.width_um = hypot(b[0] - a[0], b[1] - a[1]);
    line.angle_deg = atan2(b[1] - a[1], b[0] - a[0]) * DEG;
    if (line.width_um < OCT_VIEW_LEAST_LINE_UM) {
        oct_view_model_say(model, "too short: a line is %.1f mm long or more",
                           OCT_VIEW_LEAST_LINE_UM / 1000);
        return;
    }
    leave_average(model);
    wish_way(model, &line);
}

/* Takes the tool, or says why there is nothing to draw on. */
static void take_tool(struct oct_view_model *model)
{
    double um[2];
    if (!model->has_control)
        oct_view_model_wish(model, OCT_WISH_NONE, "");
    else if (model->enface.n_rows == 0)
        oct_view_model_say(model, "there is no picture from above yet to draw a line on");
    else if (!oct_view_above_um(model, (const double[2]){0, 0}, um))
        oct_view_model_say(model, "%s",
                           model->settings.operators
                               ? "no line can be drawn on this picture from above"
                               : "where this picture from above lies is not known (scan.width_um, "
                                 "scan.height_um, scan.pattern)");
    else {
        model->scan.draws = true;
        if (model->settings.arrangement == OCT_ARRANGEMENT_ALONE)
            model->settings.arrangement = OCT_ARRANGEMENT_TWO;
        oct_view_model_say(model, "draw the line on the picture from above: press, drag, release");
    }
}

/* ---- the list ---- */

bool oct_view_scans_are_shown(const struct oct_view_model *model)
{
    return model->scan.is_open && !model->playback.active && !oct_view_worklist_is_shown(model);
}

const char *oct_view_scans_row(const struct oct_view_model *model, unsigned i)
{
    const struct oct_view_daemon *d = &model->daemon;
    return i < d->scans.n ? d->scans.name[i] : "draw a line";
}

bool oct_view_scans_row_runs(const struct oct_view_model *model, unsigned i)
{
    const struct oct_view_daemon *d = &model->daemon;
    if (i >= d->scans.n)
        return model->scan.draws || oct_view_scan_is_placed(model);
    return d->scans.is_listed && strcmp(d->scans.running, d->scans.name[i]) == 0;
}

void oct_view_scans_choose(struct oct_view_model *model, unsigned i)
{
    const struct oct_view_daemon *d = &model->daemon;
    model->scan.is_open = false;
    model->scan.draws = false;
    if (i >= d->scans.n) {
        take_tool(model);
    } else if (oct_view_scans_row_runs(model, i) && !is_asked(model)) {
        oct_view_model_say(model, "%s runs already", d->scans.name[i]);
    } else {
        leave_average(model);
        oct_view_model_wish(model, OCT_WISH_SCAN, d->scans.name[i]);
    }
}

bool oct_view_scan_cancel(struct oct_view_model *model)
{
    struct oct_view_scan *s = &model->scan;
    const bool had = oct_view_scans_are_shown(model) || s->draws;
    s->is_open = s->draws = s->has_line = false;
    return had;
}

bool oct_view_scan_apply(struct oct_view_model *model, enum oct_view_action action)
{
    struct oct_view_scan *s = &model->scan;
    if (action != OCT_ACTION_SCAN && action != OCT_ACTION_LINE)
        return false;
    if (model->playback.active)
        oct_view_model_say(model, "this is a recording: back to live pictures (V) first");
    else if (action == OCT_ACTION_SCAN && s->rows.n == 0)
        oct_view_model_say(model, "octd has no list of scans%s",
                           model->settings.operators ? "" : " (scan.choices)");
    else if (action == OCT_ACTION_SCAN)
        s->is_open = !s->is_open;
    else if (oct_view_scan_is_placed(model))
        oct_view_scan_back(model);
    else if (s->draws)
        s->draws = s->has_line = false;
    else
        take_tool(model);
    return true;
}
