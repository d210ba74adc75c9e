#include "viewer/model/guide.h"

#include "numeric/order.h"
#include "pipeline/base/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where the tissue lies ---- */

#define MOST_LINES 64u
#define GROUPS 16u
#define MOST_BINS 128u
#define LEAST 16u /* A-lines, depths */
#define MOST_DB 300.0
#define DB_TO_E 0.23025850929940457

/* The spread of a cell of one pixel of noise alone, half of whose neighbours tell nothing new: what
 * spreads more is tissue, of which a picture can be full. */
#define PIXEL_SIGMA_DB 6.1
#define SIGMAS 5.0     /* of noise: less is no tissue */
#define OF_BRIGHT 0.25 /* of the way from the floor to the brightest cells: neither is less */
#define N_BRIGHT 8u
#define LEAST_CELLS 3u /* of a group: fewer are a line, no tissue */
/* What a group's tissue is the top and bottom of, as shares of what stands above; and of which
 * groups they are taken. */
#define TOP 0.05
#define BOTTOM 0.95
#define BELOW_DB                                                                                   \
    6.0 /* under the brightest cells: what counts for the bottom, as the choroid fades \
                        far below the retina */
#define OUTER 0.2
#define GAP 0.12   /* of the depth: what lies further apart is not one tissue */
#define AT_EDGE 2u /* bins: tissue that reaches these reaches the picture's edge */
/* Tissue that reaches the lower edge and is bright in less than this share of its upper part has
 * lost its bright lower layers beyond the edge: the choroid is not so much thicker than the
 * retina. */
#define LEAST_RETINA 0.4

struct cells {
    uint32_t n_bins;
    double mean[GROUPS][MOST_BINS]; /* dB */
    double floor_db, sigma_db, most_sigma_db;
};

/* Cut off, so that sums of what hostile pictures hold are finite. */
static double intensity_of(double value, bool log)
{
    const double most = 1e30;
    if (log)
        return (double)expf((float)(fmin(MOST_DB, fmax(-MOST_DB, value)) * DB_TO_E));
    return fmin(most, fmax(0, value));
}

/* ---- from pixels to cells ---- */

/* Adds an A-line to the sums of its group. Of floats, those that are no number are left out. */
static void add_line(const struct oct_view_picture *picture, const double *table, bool log,
                     uint32_t line, uint32_t n_bins, double *sum, uint32_t *n)
{
    const uint32_t depth = picture->header.depth;
    const uint8_t *u8 = (const uint8_t *)picture->pixels + (size_t)line * depth;
    const float *f32 = (const float *)picture->pixels + (size_t)line * depth;
    for (uint32_t b = 0; b < n_bins; b++) {
        const uint32_t from = (uint32_t)((uint64_t)b * depth / n_bins);
        const uint32_t to = (uint32_t)((uint64_t)(b + 1) * depth / n_bins);
        for (uint32_t d = from; d < to; d++) {
            if (!table && isnan(f32[d]))
                continue;
            sum[b] += table ? table[u8[d]] : intensity_of((double)f32[d], log);
            n[b]++;
        }
    }
}

static bool fill_cells(const struct oct_view_picture *picture, bool log, struct cells *cells)
{
    const struct oct_picture_header *h = &picture->header;
    const uint32_t n_lines = h->n_lines < MOST_LINES ? h->n_lines : MOST_LINES;
    const bool is_u8 = h->sample_type == OCT_SAMPLE_U8;
    double table[256];
    uint32_t n[GROUPS][MOST_BINS] = {{0}}, least = UINT32_MAX;
    if (!picture->pixels || h->n_lines < LEAST || h->depth < LEAST)
        return false;
    for (unsigned i = 0; i < 256; i++) /* what 8-bit pixels mean */
        table[i] = intensity_of(h->lo + i / 255.0 * (h->hi - h->lo), log);
    cells->n_bins = h->depth < MOST_BINS ? h->depth : MOST_BINS;
    for (uint32_t i = 0; i < n_lines; i++) {
        const uint32_t line = (uint32_t)((2 * (uint64_t)i + 1) * h->n_lines / (2 * n_lines));
        const uint32_t group = i * GROUPS / n_lines;
        add_line(picture, is_u8 ? table : NULL, log, line, cells->n_bins, cells->mean[group],
                 n[group]);
    }
    for (unsigned g = 0; g < GROUPS; g++)
        for (uint32_t b = 0; b < cells->n_bins; b++) {
            if (n[g][b] == 0)
                return false;
            cells->mean[g][b] = 10 * log10(fmax(cells->mean[g][b] / n[g][b], 1e-30));
            least = n[g][b] < least ? n[g][b] : least;
        }
    cells->most_sigma_db = PIXEL_SIGMA_DB / sqrt(least);
    return true;
}

/* ---- noise ---- */

static void find_noise(struct cells *cells)
{
    const uint32_t n_bins = cells->n_bins, n_dark = n_bins / 4;
    double row[MOST_BINS] = {0}, sorted[MOST_BINS] = {0}, sum = 0, squares = 0;
    uint32_t n = 0;
    for (uint32_t b = 0; b < n_bins; b++) {
        row[b] = 0;
        for (unsigned g = 0; g < GROUPS; g++)
            row[b] += cells->mean[g][b] / GROUPS;
        sorted[b] = row[b];
    }
    oct_doubles_sort(sorted, n_bins);
    for (uint32_t b = 0; b < n_bins; b++) {
        if (row[b] > sorted[n_dark - 1])
            continue;
        sum += row[b];
        n++;
        for (unsigned g = 0; g < GROUPS; g++)
            squares += (cells->mean[g][b] - row[b]) * (cells->mean[g][b] - row[b]);
    }
    cells->floor_db = sum / n;
    cells->sigma_db = fmin(sqrt(squares / ((double)n * (GROUPS - 1))), cells->most_sigma_db);
}

/* ---- tissue ---- */

struct column {
    bool found;
    double bright_db, top, bottom;
};

/* Bins first .. last - 1. */
struct run {
    uint32_t first, last, n; /* n: how many of them stand above the limit */
    double weight;           /* of all that does */
};

/* The heaviest tissue: without lines at zero delay, reflections and what floats before it. */
static struct run find_tissue(const double *above, uint32_t n_bins)
{
    const uint32_t gap = (uint32_t)ceil(GAP * n_bins);
    struct run best = {.n = 0}, run = {.n = 0};
    for (uint32_t b = 0; b < n_bins; b++) {
        if (!(above[b] > 0))
            continue;
        if (run.n == 0 || b - run.last > gap)
            run = (struct run){.first = b};
        run.last = b + 1;
        run.n++;
        run.weight += above[b];
        if (run.weight > best.weight)
            best = run;
    }
    return best;
}

/* Where `share` of what stands above the limit is reached, as a share of the depth. */
static double place_of(const double *above, const struct run *run, uint32_t n_bins, double share)
{
    double sum = 0;
    for (uint32_t b = run->first; b < run->last; b++) {
        if (above[b] > 0 && sum + above[b] >= share * run->weight)
            return (b + (share * run->weight - sum) / above[b]) / n_bins;
        sum += above[b];
    }
    return (double)run->last / n_bins;
}

/* The lower border of what stands `over` above the floor; 1: it is cut off. */
static double bottom_of(const struct cells *cells, const double *mean, struct run run, double over)
{
    double above[MOST_BINS];
    run.weight = 0;
    for (uint32_t b = run.first; b < run.last; b++) {
        above[b] = fmax(0, mean[b] - cells->floor_db - over);
        run.weight += above[b];
    }
    const double bottom = place_of(above, &run, cells->n_bins, BOTTOM);
    const double top = (double)run.first / cells->n_bins;
    const bool reaches_edge = run.last > cells->n_bins - AT_EDGE;
    return reaches_edge && bottom - top < LEAST_RETINA * (1 - top) ? 1 : bottom;
}

static struct column look_at(const struct cells *cells, const double *mean)
{
    const uint32_t n_bins = cells->n_bins, n_bright = n_bins < N_BRIGHT ? n_bins : N_BRIGHT;
    double sorted[MOST_BINS] = {0}, above[MOST_BINS], bright = 0;
    struct column column = {.found = false};
    for (uint32_t b = 0; b < n_bins; b++)
        sorted[b] = mean[b] - cells->floor_db;
    oct_doubles_sort(sorted, n_bins);
    for (uint32_t i = 0; i < n_bright; i++)
        bright += sorted[n_bins - 1 - i] / n_bright;
    const double over = fmax(SIGMAS * cells->sigma_db, OF_BRIGHT * bright);
    for (uint32_t b = 0; b < n_bins; b++)
        above[b] = fmax(0, mean[b] - cells->floor_db - over);
    const struct run run = find_tissue(above, n_bins);
    column.found = run.n >= LEAST_CELLS;
    if (column.found) {
        column.bright_db = bright;
        column.top = run.first < AT_EDGE ? 0 : place_of(above, &run, n_bins, TOP);
        column.bottom = bottom_of(cells, mean, run, fmax(over, bright - BELOW_DB));
    }
    return column;
}

bool oct_view_sight_of(const struct oct_view_picture *picture, bool log,
                       struct oct_view_sight *sight)
{
    struct cells cells = {.n_bins = 0};
    double top[GROUPS], bottom[GROUPS];
    unsigned n = 0;
    *sight = (struct oct_view_sight){.top = NAN, .bottom = NAN};
    if (!fill_cells(picture, log, &cells))
        return false;
    find_noise(&cells);
    for (unsigned g = 0; g < GROUPS; g++) {
        const struct column column = look_at(&cells, cells.mean[g]);
        if (!column.found)
            continue;
        sight->signal_db += column.bright_db / GROUPS;
        top[n] = column.top;
        bottom[n++] = column.bottom;
    }
    sight->covered = (double)n / GROUPS;
    if (n == 0)
        return true;
    oct_doubles_sort(top, n);
    oct_doubles_sort(bottom, n);
    sight->top = top[(unsigned)(OUTER * n)];
    sight->bottom = bottom[n - 1 - (unsigned)(OUTER * n)];
    return true;
}

/* ---- the guide ---- */

#define SMOOTH_S 1.0
#define ANEW_NS (2 * OCT_NS_PER_S) /* after so long without a picture */
#define NEAR_NS OCT_NS_PER_S       /* a spectrum this far from a picture speaks of it */
#define MOTION_NS OCT_NS_PER_S

/* signal: none at the first, all from the second on. */
#define NO_SIGNAL_DB 2.0
#define FULL_SIGNAL_DB 22.0
#define MOST_SATURATED 0.02
#define OF_A_JUMP 0.7
#define OF_ROOM 0.85    /* of the way from a line to the edge: further, the tissue may be cut off */
#define LEAST_ROOM 0.02 /* of the depth */
#define LEAST_COVERED 0.10 /* with less tissue, its place is not known */

/* The number changes, and a move is asked for, by more than it takes to keep it. */
#define TO_CHANGE 0.7
#define TO_MOVE 0.03
#define TO_STAY 0.01
#define COVERED_BY_TISSUE 0.5 /* of a picture: there is some */
#define LEAST_THICKNESS 0.06  /* of the depth: a mirror has 0.03, a retina 0.2 */
#define COVERED_TO_MOVE 0.3

static double share(double x)
{
    return fmin(1, fmax(0, x));
}

/* ---- what is known of the moment of a picture ---- */

void oct_view_guide_take_spectrum(struct oct_view_guide *guide,
                                  const struct oct_view_spectrum *spectrum, uint32_t n_lines)
{
    const double n = (double)spectrum->n_samples * n_lines;
    uint16_t most = 0;
    if (guide->held || n == 0 || spectrum->limit == 0)
        return;
    for (uint32_t i = 0; i < spectrum->n_samples; i++)
        most = spectrum->sample[i] > most ? spectrum->sample[i] : most;
    const unsigned at = guide->n_light++ % OCT_VIEW_GUIDE_SPECTRA;
    guide->light[at].arrival_ns = spectrum->arrival_ns;
    guide->light[at].saturated = share((double)spectrum->n_saturated / n);
    guide->light[at].used = share((double)most / spectrum->limit);
}

static void find_light(const struct oct_view_guide *guide, uint64_t at_ns,
                       struct oct_view_guide_measures *now)
{
    uint64_t nearest_ns = NEAR_NS;
    for (unsigned i = 0; i < OCT_VIEW_GUIDE_SPECTRA && i < guide->n_light; i++) {
        const uint64_t ns = guide->light[i].arrival_ns;
        const uint64_t apart_ns = ns > at_ns ? ns - at_ns : at_ns - ns;
        if (apart_ns >= nearest_ns)
            continue;
        nearest_ns = apart_ns;
        now->saturated = guide->light[i].saturated;
        now->used = guide->light[i].used;
    }
}

static void find_motion(const struct oct_view_quality *quality, uint64_t at_ns,
                        struct oct_view_guide_measures *now)
{
    const uint64_t last = at_ns / OCT_VIEW_TIMELINE_BIN_NS;
    const uint64_t n_bins = MOTION_NS / OCT_VIEW_TIMELINE_BIN_NS;
    unsigned n = 0, n_blinks = 0, n_jumps = 0;
    for (uint64_t bin = last >= n_bins ? last - n_bins + 1 : 0; bin <= last; bin++) {
        const struct oct_view_moment *m = oct_view_quality_moment(quality, bin);
        n += m != NULL;
        n_blinks += m && m->marks & OCT_MARK_BLINK;
        n_jumps += m && m->marks & OCT_MARK_MOTION;
    }
    if (n == 0)
        return;
    now->blinks = (double)n_blinks / n;
    now->jumps = n_jumps;
}

/* Of a picture in playback the rest is not known: it is of what comes now. */
static struct oct_view_guide_measures measure(const struct oct_view_model *model, bool is_recorded)
{
    const struct oct_view_guide *guide = &model->guide;
    const uint64_t at_ns = model->shown.arrival_ns;
    struct oct_view_guide_measures now = {
        .saturated = NAN, .used = NAN, .blinks = NAN, .jumps = NAN};
    oct_view_sight_of(&model->shown, model->contrast.log, &now.sight);
    if (!is_recorded) {
        find_light(guide, at_ns, &now);
        find_motion(guide->held ? &guide->quality : &model->quality, at_ns, &now);
    }
    return now;
}

/* ---- steady ---- */

static void smooth_one(double *value, double now, double pace)
{
    *value = isnan(now) || isnan(*value) ? now : *value + pace * (now - *value);
}

static void smooth(struct oct_view_guide_measures *m, const struct oct_view_guide_measures *now,
                   double pace)
{
    m->sight.covered += pace * (now->sight.covered - m->sight.covered);
    m->sight.signal_db += pace * (now->sight.signal_db - m->sight.signal_db);
    if (now->sight.covered > 0) { /* in a blink the tissue stays where it was */
        smooth_one(&m->sight.top, now->sight.top, pace);
        smooth_one(&m->sight.bottom, now->sight.bottom, pace);
    }
    smooth_one(&m->saturated, now->saturated, pace);
    smooth_one(&m->used, now->used, pace);
    smooth_one(&m->blinks, now->blinks, pace);
    smooth_one(&m->jumps, now->jumps, pace);
}

/* ---- the parts ---- */

/* The lines, further apart for tissue that needs more room, and how far it lies off them. */
static void find_place(struct oct_view_guide *g)
{
    const struct oct_view_sight *s = &g->measured.sight;
    const double band = OCT_VIEW_GUIDE_LOWER - OCT_VIEW_GUIDE_UPPER, thick = s->bottom - s->top;
    g->upper = OCT_VIEW_GUIDE_UPPER;
    g->lower = OCT_VIEW_GUIDE_LOWER;
    g->off = NAN;
    g->part[OCT_GUIDE_PLACE] = NAN;
    if (isnan(thick) || s->covered < LEAST_COVERED)
        return;
    if (thick > band) {
        g->upper *= (1 - thick) / (1 - band);
        g->lower = g->upper + thick;
    }
    g->off = s->top < g->upper ? s->top - g->upper : fmax(0, s->bottom - g->lower);
    const double room = g->off < 0 ? g->upper : 1 - g->lower;
    g->part[OCT_GUIDE_PLACE] = share(1 - fabs(g->off) / fmax(OF_ROOM * room, LEAST_ROOM));
}

static void find_parts(struct oct_view_guide *g)
{
    const struct oct_view_guide_measures *m = &g->measured;
    find_place(g);
    g->part[OCT_GUIDE_SIGNAL] =
        share((m->sight.signal_db - NO_SIGNAL_DB) / (FULL_SIGNAL_DB - NO_SIGNAL_DB));
    g->part[OCT_GUIDE_LIGHT] =
        isnan(m->saturated) ? NAN : share(1 - sqrt(m->saturated / MOST_SATURATED));
    g->part[OCT_GUIDE_MOTION] =
        isnan(m->blinks) ? NAN : share((1 - m->blinks) * pow(OF_A_JUMP, m->jumps));
    g->index = 10;
    for (unsigned i = 0; i < OCT_GUIDE_N_PARTS; i++)
        g->index *= isnan(g->part[i]) ? 1 : g->part[i];
}

/* ---- when ---- */

static bool is_held(enum oct_view_show show)
{
    return show == OCT_SHOW_FROZEN || show == OCT_SHOW_PLAYBACK;
}

void oct_view_guide_see(struct oct_view_model *model)
{
    struct oct_view_guide *g = &model->guide;
    const struct oct_view_picture *p = &model->shown;
    const enum oct_view_show show = oct_view_show(model);
    const bool held = is_held(show);
    /* Whether the picture has no past to be smoothed with. */
    const bool anew = !g->known || held || g->held || p->arrival_ns < g->arrival_ns ||
                      p->arrival_ns - g->arrival_ns > ANEW_NS ||
                      strcmp(p->header.acquisition_id, g->acquisition_id) != 0;
    if (!model->has_picture || (g->known && g->serial == model->serial && g->held == held))
        return;
    if (held && !g->held)
        g->quality = model->quality;
    g->held = held;
    const struct oct_view_guide_measures now = measure(model, show == OCT_SHOW_PLAYBACK);
    const double dt_s = anew ? 0 : (double)(p->arrival_ns - g->arrival_ns) / (double)OCT_NS_PER_S;
    if (anew)
        g->measured = now;
    else
        smooth(&g->measured, &now, 1 - exp(-dt_s / SMOOTH_S));
    find_parts(g);
    if (strcmp(p->header.acquisition_id, g->acquisition_id) != 0)
        g->seen_tissue = false;
    g->seen_tissue = g->seen_tissue || (now.sight.covered >= COVERED_BY_TISSUE &&
                                        now.sight.bottom - now.sight.top >= LEAST_THICKNESS);
    const double least = !anew && g->move != OCT_GUIDE_STAY ? TO_STAY : TO_MOVE;
    g->move = !(fabs(g->off) > least) || g->measured.sight.covered < COVERED_TO_MOVE
                  ? OCT_GUIDE_STAY
              : g->off > 0 ? OCT_GUIDE_CLOSER
                           : OCT_GUIDE_AWAY;
    if (anew || fabs(g->index - g->number) > TO_CHANGE)
        g->number = (int)lround(g->index);
    g->known = true;
    g->serial = model->serial;
    g->arrival_ns = p->arrival_ns;
    memcpy(g->acquisition_id, p->header.acquisition_id, sizeof(g->acquisition_id));
}

static bool is_of_an_eye(const struct oct_view_model *model)
{
    return model->guide.seen_tissue || model->settings.operators ||
           oct_view_patient_eye(model)[0] != '\0';
}

bool oct_view_guide_leads(const struct oct_view_model *model)
{
    const enum oct_view_show show = oct_view_show(model);
    return model->settings.guide && model->guide.known && is_of_an_eye(model) &&
           (show == OCT_SHOW_LIVE || show == OCT_SHOW_AVERAGED);
}

bool oct_view_guide_has_number(const struct oct_view_model *model)
{
    if (model->playback.active && model->playback.file.what[0])
        return false; /* no eye was looked at */
    return oct_view_guide_leads(model) ||
           (model->settings.guide && model->guide.known && is_of_an_eye(model) &&
            model->has_picture && is_held(oct_view_show(model)));
}

/* ---- what it says ---- */

/* The instrument moves in air: a depth pixel's spacing in the eye times the eye's index. */
#define EYES_INDEX 1.36
#define GOOD_PART 0.7 /* less asks for something */
#define LITTLE_LIGHT 0.25

void oct_view_guide_move_text(const struct oct_view_model *model,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES])
{
    const struct oct_view_guide *g = &model->guide;
    const char *word = g->move == OCT_GUIDE_CLOSER ? "closer" : "away";
    const double mm = fabs(g->off) * model->shown.header.depth *
                      oct_view_model_scale(model).axial_um * EYES_INDEX / 1000;
    text[0] = '\0';
    if (g->move != OCT_GUIDE_STAY && mm >= 0.1)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s %.1f mm", word, mm);
    else if (g->move != OCT_GUIDE_STAY)
        snprintf(text, OCT_VIEW_GUIDE_TEXT_BYTES, "%s%s", isfinite(mm) ? "a little " : "", word);
}

const char *oct_view_guide_part_name(enum oct_view_guide_part part)
{
    static const char *const names[OCT_GUIDE_N_PARTS] = {
        [OCT_GUIDE_SIGNAL] = "signal",
        [OCT_GUIDE_LIGHT] = "light",
        [OCT_GUIDE_PLACE] = "place",
        [OCT_GUIDE_MOTION] = "motion",
    };
    return names[part];
}

/* What to do about a part of less than GOOD_PART; "": nothing. */
static const char *remedy_of(const struct oct_view_guide *g, enum oct_view_guide_part part)
{
    const struct oct_view_guide_measures *m = &g->measured;
    if (part == OCT_GUIDE_SIGNAL && m->sight.covered < 0.05)
        return "look for the retina: slowly closer, then away";
    if (g->part[part] >= GOOD_PART)
        return "";
    if (part == OCT_GUIDE_SIGNAL)
        return m->used < LITTLE_LIGHT   ? "more light: the camera's range is hardly used"
               : m->sight.covered < 0.8 ? "centre the pupil: part of the picture is dark"
                                        : "focus, centre the pupil, clean the lens";
    if (part == OCT_GUIDE_LIGHT)
        return "less light on the reference arm, or a shorter exposure";
    return m->blinks > 1 - pow(GOOD_PART, m->jumps) ? "let the patient blink, then keep open"
                                                    : "let the patient look at the target";
}

void oct_view_guide_part_text(const struct oct_view_model *model, enum oct_view_guide_part part,
                              char text[OCT_VIEW_GUIDE_TEXT_BYTES],
                              char remedy[OCT_VIEW_GUIDE_TEXT_BYTES])
{
    static const char *const why[OCT_GUIDE_N_PARTS] = {
        [OCT_GUIDE_SIGNAL] = "not known",
        [OCT_GUIDE_LIGHT] = "not known: no spectrum of this moment",
        [OCT_GUIDE_PLACE] = "not known: no tissue is seen",
        [OCT_GUIDE_MOTION] = "not known: octd says nothing of this moment",
    };
    const struct oct_view_guide *g = &model->guide;
    const struct oct_view_guide_measures *m = &g->measured;
    const bool is_known = g->known && !isnan(g->part[part]);
    const size_t n = OCT_VIEW_GUIDE_TEXT_BYTES;
    snprintf(remedy, n, "%s", is_known ? remedy_of(g, part) : "");
    if (!is_known)
        snprintf(text, n, "%s", why[part]);
    else if (part == OCT_GUIDE_SIGNAL && m->sight.covered < 0.05)
        snprintf(text, n, "no tissue is seen");
    else if (part == OCT_GUIDE_SIGNAL)
        snprintf(text, n, "%.0f dB above the noise", m->sight.signal_db);
    else if (part == OCT_GUIDE_LIGHT && m->saturated > 0)
        snprintf(text, n, "%.2g %% of the camera's samples at its limit", 100 * m->saturated);
    else if (part == OCT_GUIDE_LIGHT)
        snprintf(text, n, "no sample at the camera's limit");
    else if (part == OCT_GUIDE_MOTION)
        snprintf(text, n, "%.0f jump%s in a second, blinks %.0f %% of it", m->jumps,
                 lround(m->jumps) == 1 ? "" : "s", 100 * m->blinks);
    else
        snprintf(text, n, "tissue from %.0f to %.0f %% of the depth", 100 * m->sight.top,
                 100 * m->sight.bottom);
    if (is_known && part == OCT_GUIDE_PLACE)
        oct_view_guide_move_text(model, remedy);
}
