#include "analysis/rolloff/rolloff.h"

#include "analysis/rolloff/mirror.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UM_PER_MM 1e3
#define MOST_BEHIND 2u /* the newest counts: the operator looks at it while turning a screw */

static const char *const labels[OCT_ROLLOFF_N_COLUMNS] = {
    [OCT_ROLLOFF_POINT_DEPTH_PX] = "depth_px", [OCT_ROLLOFF_POINT_DEPTH_UM] = "depth_um",
    [OCT_ROLLOFF_POINT_PEAK_DB] = "peak_db",   [OCT_ROLLOFF_POINT_FWHM_PX] = "fwhm_px",
    [OCT_ROLLOFF_POINT_FWHM_UM] = "fwhm_um",   [OCT_ROLLOFF_POINT_SNR_DB] = "snr_db",
};
static const struct oct_image_objects objects = {.name = "curve", .keys = labels};

static const struct oct_image_number numbers[OCT_ROLLOFF_N_NUMBERS] = {
    [OCT_ROLLOFF_STATE] = {"state", 1},
    [OCT_ROLLOFF_DEPTH_PX] = {"depth_px", 1},
    [OCT_ROLLOFF_DEPTH_UM] = {"depth_um", 1},
    [OCT_ROLLOFF_PEAK_DB] = {"peak_db", 1},
    [OCT_ROLLOFF_FWHM_PX] = {"fwhm_px", 1},
    [OCT_ROLLOFF_FWHM_UM] = {"fwhm_um", 1},
    [OCT_ROLLOFF_FWHM_TISSUE_UM] = {"fwhm_tissue_um", 1},
    [OCT_ROLLOFF_NOISE_DB] = {"noise_db", 1},
    [OCT_ROLLOFF_SNR_DB] = {"snr_db", 1},
    [OCT_ROLLOFF_SIDE_LOBE_DB] = {"side_lobe_db", 1},
    [OCT_ROLLOFF_SIDE_LOBE_PX] = {"side_lobe_px", 1},
    [OCT_ROLLOFF_DYNAMIC_RANGE_DB] = {"dynamic_range_db", 1},
    [OCT_ROLLOFF_TILT_PX] = {"tilt_px", 1},
    [OCT_ROLLOFF_POINTS] = {"points", 1},
    [OCT_ROLLOFF_DB_PER_MM] = {"db_per_mm", 1},
    [OCT_ROLLOFF_DB_PER_100PX] = {"db_per_100px", 1},
    [OCT_ROLLOFF_ZERO_DB] = {"zero_db", 1},
    [OCT_ROLLOFF_MINUS_6DB_PX] = {"minus_6db_px", 1},
    [OCT_ROLLOFF_MINUS_6DB_UM] = {"minus_6db_um", 1},
    [OCT_ROLLOFF_RMS_DB] = {"rms_db", 1},
};

#define S struct oct_rolloff_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "A mirror is measured; needs dc=file or none unless its fringes move in a B-scan."},
    {OCT_PARAM("first_px", S, first_px), OCT_PARAM_LIVE, .least = 0, .most = 65536,
     .standard = "20", .unit = "pixels",
     .meaning = "Depths before it are not looked at: what remains of DC."},
    {OCT_PARAM("min_snr_db", S, min_snr_db), OCT_PARAM_LIVE, .least = 0, .most = 200,
     .standard = "15", .unit = "dB", .meaning = "Peak over noise that makes a mirror."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the numbers and the curve too: /analysis/rolloff."},
};
#undef S
const struct oct_params oct_rolloff_params = OCT_PARAMS(param_rows);

struct curve {
    uint32_t depth; /* pixels: 64 parts of it */
    bool has[OCT_ROLLOFF_MOST_POINTS];
    struct oct_rolloff_point part[OCT_ROLLOFF_MOST_POINTS];
};

struct oct_analysis {
    struct oct_rolloff_settings settings;
    struct oct_mirror_setup search;
    double tissue_um;      /* of a depth pixel; NaN: not known */
    double *sums;          /* [depth] */
    float *line;           /* [depth] */
    struct oct_mirror now; /* of the newest B-scan */
    struct curve curve;
    bool has_result;
};

/* ---- the curve ---- */

/* Forgets all points. depth above 0. */
static void clear_curve(struct curve *curve, uint32_t depth)
{
    memset(curve, 0, sizeof(*curve));
    curve->depth = depth;
}

/* Keeps the point where it is the largest of its part; one outside the picture is none. */
static void add_to_curve(struct curve *curve, const struct oct_rolloff_point *point)
{
    const double share = point->depth_px / curve->depth;
    if (!(share >= 0 && share < 1) || !isfinite(point->peak_db))
        return;
    const unsigned i = (unsigned)(share * OCT_ROLLOFF_MOST_POINTS);
    if (curve->has[i] && curve->part[i].peak_db >= point->peak_db)
        return;
    curve->has[i] = true;
    curve->part[i] = *point;
}

/* Copies the points in the order of their depths; returns how many there are. */
static unsigned points_of(const struct curve *curve,
                          struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS])
{
    unsigned n = 0;
    for (unsigned i = 0; i < OCT_ROLLOFF_MOST_POINTS; i++)
        if (curve->has[i])
            points[n++] = curve->part[i];
    return n;
}

struct oct_rolloff_line oct_rolloff_fit(const struct oct_rolloff_point *points, unsigned n,
                                        double first_px)
{
    struct oct_rolloff_line line = {n, NAN, NAN, NAN, NAN};
    double x = 0, y = 0, xx = 0, xy = 0, squares = 0;
    if (n < OCT_ROLLOFF_LEAST_POINTS)
        return line;
    for (unsigned i = 0; i < n; i++) {
        x += points[i].depth_px / n;
        y += points[i].peak_db / n;
    }
    for (unsigned i = 0; i < n; i++) {
        const double dx = points[i].depth_px - x;
        xx += dx * dx;
        xy += dx * (points[i].peak_db - y);
    }
    if (!(xx > 0))
        return line;
    line.db_per_px = xy / xx;
    line.zero_db = y - line.db_per_px * (x + first_px);
    for (unsigned i = 0; i < n; i++) {
        const double off = points[i].peak_db - y - line.db_per_px * (points[i].depth_px - x);
        squares += off * off;
    }
    line.rms_db = sqrt(squares / n);
    line.minus_6db_px = line.db_per_px < 0 ? -6 / line.db_per_px : NAN;
    return line;
}

/* ---- the contract's functions ---- */

static enum oct_err rolloff_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                 struct oct_error *err)
{
    (void)err;
    oct_mirror_measure(&a->now, &a->search, bscan->values, a->sums, a->line);
    if (a->now.state == OCT_MIRROR_FOUND) {
        const struct oct_rolloff_point point = {a->now.depth_px, a->now.peak_db, a->now.fwhm_px,
                                                a->now.snr_db};
        add_to_curve(&a->curve, &point);
    }
    a->has_result = true;
    return OCT_OK;
}

static double air_um(const struct oct_analysis *a)
{
    return a->tissue_um * a->settings.refractive_index;
}

static void tell_mirror(const struct oct_analysis *a, double *to)
{
    const struct oct_mirror *m = &a->now;
    to[OCT_ROLLOFF_STATE] = m->state;
    to[OCT_ROLLOFF_DEPTH_PX] = m->depth_px;
    to[OCT_ROLLOFF_DEPTH_UM] = (m->depth_px + a->settings.crop_first) * air_um(a);
    to[OCT_ROLLOFF_PEAK_DB] = m->peak_db;
    to[OCT_ROLLOFF_FWHM_PX] = m->fwhm_px;
    to[OCT_ROLLOFF_FWHM_UM] = m->fwhm_px * air_um(a);
    to[OCT_ROLLOFF_FWHM_TISSUE_UM] = m->fwhm_px * a->tissue_um;
    to[OCT_ROLLOFF_NOISE_DB] = m->noise_db;
    to[OCT_ROLLOFF_SNR_DB] = m->snr_db;
    to[OCT_ROLLOFF_SIDE_LOBE_DB] = m->side_lobe_db;
    to[OCT_ROLLOFF_SIDE_LOBE_PX] = m->side_lobe_px;
    to[OCT_ROLLOFF_DYNAMIC_RANGE_DB] = m->dynamic_range_db;
    to[OCT_ROLLOFF_TILT_PX] = m->tilt_px;
}

static void tell_line(const struct oct_analysis *a, const struct oct_rolloff_line *line, double *to)
{
    to[OCT_ROLLOFF_POINTS] = line->n;
    to[OCT_ROLLOFF_DB_PER_MM] = line->db_per_px / air_um(a) * UM_PER_MM;
    to[OCT_ROLLOFF_DB_PER_100PX] = line->db_per_px * 100;
    to[OCT_ROLLOFF_ZERO_DB] = line->zero_db;
    to[OCT_ROLLOFF_MINUS_6DB_PX] = line->minus_6db_px - a->settings.crop_first;
    to[OCT_ROLLOFF_MINUS_6DB_UM] = line->minus_6db_px * air_um(a);
    to[OCT_ROLLOFF_RMS_DB] = line->rms_db;
}

static void tell_point(const struct oct_analysis *a, const struct oct_rolloff_point *p, float *row)
{
    row[OCT_ROLLOFF_POINT_DEPTH_PX] = (float)p->depth_px;
    row[OCT_ROLLOFF_POINT_DEPTH_UM] = (float)((p->depth_px + a->settings.crop_first) * air_um(a));
    row[OCT_ROLLOFF_POINT_PEAK_DB] = (float)p->peak_db;
    row[OCT_ROLLOFF_POINT_FWHM_PX] = (float)p->fwhm_px;
    row[OCT_ROLLOFF_POINT_FWHM_UM] = (float)(p->fwhm_px * air_um(a));
    row[OCT_ROLLOFF_POINT_SNR_DB] = (float)p->snr_db;
}

static enum oct_err rolloff_take(struct oct_analysis *a, struct oct_image_frame *result,
                                 struct oct_error *err)
{
    struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS];
    (void)err;
    if (!a->has_result)
        return OCT_E_AGAIN;
    a->has_result = false;
    const unsigned n = points_of(&a->curve, points);
    const struct oct_rolloff_line line = oct_rolloff_fit(points, n, a->settings.crop_first);
    tell_mirror(a, result->numbers);
    tell_line(a, &line, result->numbers);
    for (unsigned i = 0; i < n; i++)
        tell_point(a, &points[i], (float *)result->pixels + i * OCT_ROLLOFF_N_COLUMNS);
    result->dims[0] = n;
    return OCT_OK;
}

static void rolloff_reset(struct oct_analysis *a)
{
    a->has_result = false;
    clear_curve(&a->curve, a->search.depth);
}

static enum oct_err check_settings(const struct oct_rolloff_settings *s, struct oct_error *err)
{
    const enum oct_err e = oct_params_check(&oct_rolloff_params, s, "rolloff", err);
    if (e || (s->refractive_index >= 1 && isfinite(s->refractive_index)))
        return e;
    return oct_fail(err, OCT_E_CONFIG, "rolloff: a refractive index of %g: it takes 1 or more",
                    s->refractive_index);
}

static void use_settings(struct oct_analysis *a, const struct oct_rolloff_settings *s)
{
    a->settings = *s;
    a->search.first_px = s->first_px;
    a->search.crop_first = s->crop_first;
    a->search.min_snr_db = s->min_snr_db;
}

static enum oct_err rolloff_configure(struct oct_analysis *a, const void *settings,
                                      struct oct_error *err)
{
    enum oct_err e = check_settings(settings, err);
    if (!e)
        use_settings(a, settings);
    return e;
}

static bool rolloff_is_at_rest(const struct oct_analysis *a)
{
    return !a->settings.enabled;
}

static void rolloff_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    free(a->sums);
    free(a->line);
    free(a);
}

static void describe(struct oct_image_form *form)
{
    *form = (struct oct_image_form){
        .name = "rolloff",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {OCT_ROLLOFF_MOST_POINTS, OCT_ROLLOFF_N_COLUMNS},
        .spacing_um = {NAN, NAN},
        .axes = {"point", "column"},
        .labels = labels,
        .numbers = numbers,
        .n_numbers = OCT_ROLLOFF_N_NUMBERS,
        .objects = &objects,
    };
}

static enum oct_err rolloff_create(struct oct_analysis **out,
                                   const struct oct_analysis_setup *setup,
                                   struct oct_image_form *form, struct oct_error *err)
{
    const uint32_t depth = setup->input->dims[1];
    *out = NULL;
    enum oct_err e = check_settings(setup->settings, err);
    if (e)
        return e;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a || !(a->sums = malloc(depth * sizeof(*a->sums))) ||
        !(a->line = malloc(depth * sizeof(*a->line)))) {
        rolloff_destroy(a);
        return oct_fail(err, OCT_E_NO_MEMORY, "rolloff: out of memory");
    }
    a->search = (struct oct_mirror_setup){
        .n_lines = setup->input->dims[0],
        .depth = depth,
        .is_db = setup->input->quantity == OCT_QUANTITY_INTENSITY_DB,
    };
    a->tissue_um = setup->spacing.depth_um;
    use_settings(a, setup->settings);
    rolloff_reset(a);
    describe(form);
    *out = a;
    return OCT_OK;
}

static void rolloff_join(void *settings, const struct oct_analysis_session *session)
{
    struct oct_rolloff_settings *s = settings;
    s->crop_first = session->crop_first;
    s->refractive_index = session->refractive_index;
}

const struct oct_analysis_ops oct_rolloff_cpu = {
    .name = "rolloff",
    .backend = "cpu",
    .meaning = "Axial width of a mirror, and how its peak falls with depth, B-scan by B-scan.",
    .input = OCT_STAGE_VALUES,
    .settings_bytes = sizeof(struct oct_rolloff_settings),
    .keys = {{.params = &oct_rolloff_params}},
    .section = "Axial width and roll-off of a mirror, live: topic and dataset `rolloff`.",
    .join = rolloff_join,
    .most_behind = MOST_BEHIND,
    .create = rolloff_create,
    .run =
        {
            .push = rolloff_push,
            .take = rolloff_take,
            .reset = rolloff_reset,
            .configure = rolloff_configure,
            .is_at_rest = rolloff_is_at_rest,
            .destroy = rolloff_destroy,
        },
};
