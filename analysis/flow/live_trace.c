/* The analysis `trace`. */
#include "analysis/flow/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const reference_names[] = {"previous", "first", NULL};
static const char *const labels_nm[] = {"time_s", "nm", "sd_nm"};
static const char *const labels_rad[] = {"time_s", "rad", "sd_rad"};
enum { TIME, VALUE, DEVIATION, N_COLUMNS };

#define S struct oct_trace_settings
static const struct oct_param rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "Follow one layer against another, in nm."},
    {OCT_PARAM_OF_FORM("upper", S, upper, &oct_param_flow_slab), OCT_PARAM_LIVE, .standard = "",
     .takes = OCT_PARAM_TAKES_FLOW_SLAB, .meaning = "What is taken to be at rest, as 120:140."},
    {OCT_PARAM_OF_FORM("lower", S, lower, &oct_param_flow_slab), OCT_PARAM_LIVE, .standard = "",
     .takes = OCT_PARAM_TAKES_FLOW_SLAB, .meaning = "What is followed; deeper is positive."},
    {OCT_PARAM_CHOICE("reference", S, reference, reference_names), OCT_PARAM_LIVE,
     .standard = "previous",
     .meaning = "Each B-scan against the one before, or against the first."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have it: /analysis/trace."},
};
#undef S
const struct oct_params oct_trace_params = OCT_PARAMS(rows);

struct oct_analysis {
    struct oct_image_form input;
    struct oct_scan_protocol scan;
    struct oct_spacing spacing;
    double line_rate_hz;
    struct oct_trace_settings settings;
    struct oct_flow_optics optics[2]; /* of a k map: by wavelengths that rise, and that fall */
    struct oct_workers *workers;

    struct oct_flow_trace *trace; /* NULL: the next B-scan is the first */
    uint64_t first_ns;
    double *values; /* [2][rows]: nm, sd */
    struct oct_bscan_info info;
    bool is_due;
};

static bool is_of_lines(const struct oct_analysis *a)
{
    return a->scan.line_repeats == a->input.dims[0];
}

static uint32_t n_rows(const struct oct_analysis *a)
{
    return is_of_lines(a) ? a->input.dims[0] : 1;
}

/* ---- the first B-scan ---- */

static enum oct_err begin(struct oct_analysis *a, const struct oct_image_frame *bscan,
                          struct oct_error *err)
{
    const uint32_t m = a->input.dims[0], depth = a->input.dims[1];
    const struct oct_flow_optics *optics = &a->optics[a->settings.wavelengths == OCT_FLOW_FALLING];
    const struct oct_flow_trace_setup setup = {
        .n_lines = m,
        .depth = depth,
        .is_of_lines = is_of_lines(a),
        .reference = a->settings.reference,
        .rad_um = optics->rad_um,
        .rho2 = optics->has_rho ? optics->rho2 : NULL,
        .workers = a->workers,
    };
    struct oct_flow_span *spans = malloc(2 * (size_t)m * sizeof(*spans));
    enum oct_err e = spans ? oct_flow_find_spans(&a->settings.upper, &a->settings.lower,
                                                 &a->spacing, bscan, spans, err)
                           : oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    e = e ? e : oct_flow_trace_create(&a->trace, &setup, spans, spans + m, err);
    a->first_ns = bscan->info.time_ns;
    free(spans);
    return e;
}

/* ---- B-scans ---- */

static enum oct_err trace_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!a->settings.enabled)
        return OCT_OK;
    if (!a->trace)
        e = begin(a, bscan, err);
    e = e ? e
          : oct_flow_trace_put(a->trace, bscan->complex_values, a->values, a->values + n_rows(a),
                               err);
    a->info = bscan->info;
    a->is_due = !e;
    return e;
}

static enum oct_err trace_take(struct oct_analysis *a, struct oct_image_frame *result,
                               struct oct_error *err)
{
    const double begin_s = 1e-9 * (double)(a->info.time_ns - a->first_ns);
    (void)err;
    if (!a->is_due)
        return OCT_E_AGAIN;
    for (uint32_t i = 0; i < n_rows(a); i++) {
        float *row = (float *)result->pixels + (size_t)i * N_COLUMNS;
        row[TIME] = (float)(begin_s + (a->line_rate_hz > 0 ? i / a->line_rate_hz : 0));
        row[VALUE] = (float)a->values[i];
        row[DEVIATION] = (float)a->values[n_rows(a) + i];
    }
    result->info = a->info;
    a->is_due = false;
    return OCT_OK;
}

static void trace_reset(struct oct_analysis *a)
{
    oct_flow_trace_destroy(a->trace);
    a->trace = NULL;
    a->is_due = false;
}

/* ---- settings, and life ---- */

static enum oct_err check_layers(const struct oct_trace_settings *s, uint32_t depth,
                                 struct oct_error *err)
{
    return s->enabled ? oct_flow_check_spans(&s->upper, &s->lower, depth, err) : OCT_OK;
}

static enum oct_err trace_configure(struct oct_analysis *a, const void *settings,
                                    struct oct_error *err)
{
    const enum oct_err e = check_layers(settings, a->input.dims[1], err);
    if (e)
        return e;
    trace_reset(a);
    memcpy(&a->settings, settings, sizeof(a->settings));
    return OCT_OK;
}

static bool trace_is_at_rest(const struct oct_analysis *a)
{
    return !a->settings.enabled;
}

static void trace_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    oct_flow_trace_destroy(a->trace);
    free(a->values);
    free(a);
}

static enum oct_err trace_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                 struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = NULL;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    a->input = *setup->input;
    a->spacing = setup->spacing;
    a->line_rate_hz = setup->line_rate_hz;
    a->workers = setup->workers;
    a->scan = oct_flow_scan(&setup->scan);
    memcpy(&a->settings, setup->settings, sizeof(a->settings));
    a->values = calloc(2 * (size_t)n_rows(a), sizeof(*a->values));
    enum oct_err e = a->values ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
    e = e ? e : check_layers(&a->settings, a->input.dims[1], err);
    for (unsigned falls = 0; falls < 2 && !e; falls++)
        e = oct_flow_optics_init(&a->optics[falls], setup->plan, NULL, a->settings.refractive_index,
                                 falls, err);
    if (e) {
        trace_destroy(a);
        return e;
    }
    *form = (struct oct_image_form){
        .name = "trace",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {n_rows(a), N_COLUMNS},
        .spacing_um = {NAN, NAN},
        .axes = {"row", "column"},
        .labels = isfinite(a->optics[0].rad_um) ? labels_nm : labels_rad,
    };
    *out = a;
    return OCT_OK;
}

static enum oct_err trace_check(const void *settings, const struct oct_analysis_setup *setup,
                                struct oct_error *err)
{
    return check_layers(settings, setup->input->dims[1], err);
}

static void trace_join(void *settings, const struct oct_analysis_session *session)
{
    struct oct_trace_settings *s = settings;
    s->refractive_index = session->refractive_index;
    s->wavelengths = session->flow ? session->flow->wavelengths : OCT_FLOW_RISING;
}

const struct oct_analysis_ops oct_trace_cpu = {
    .name = "trace",
    .backend = "cpu",
    .meaning = "Movement of one layer against another in nm: one row a B-scan, or an A-line.",
    .input = OCT_STAGE_COMPLEX,
    .settings_bytes = sizeof(struct oct_trace_settings),
    .keys = {{.params = &oct_trace_params}},
    .section = "Phase traces of a layer: topic and dataset `trace`.",
    .join = trace_join,
    .check = trace_check,
    .create = trace_create,
    .run =
        {
            .push = trace_push,
            .take = trace_take,
            .reset = trace_reset,
            .configure = trace_configure,
            .is_at_rest = trace_is_at_rest,
            .destroy = trace_destroy,
        },
};
