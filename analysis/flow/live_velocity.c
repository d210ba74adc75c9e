/* The analysis `velocity`. */
#include "analysis/flow/flow.h"
#include "analysis/flow/group.h"
#include "analysis/flow/velocity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const between_names[] = {"lines", "bscans", NULL};

#define S struct oct_velocity_settings
static const struct oct_param rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "Find how fast tissue and blood move along the beam, by their phase."},
    {OCT_PARAM_CHOICE("between", S, between, between_names), .when = OCT_CONFIG_IDLE,
     .standard = "lines",
     .meaning = "A-lines one after another, or B-scans of a place (scan.repeats): slow flow."},
    {OCT_PARAM("min_coherence", S, min_coherence), OCT_PARAM_LIVE, .least = 0, .most = 1,
     .standard = "0.3", .meaning = "Velocities that are less sure are not shown."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have it: /analysis/velocity."},
};
#undef S
const struct oct_params oct_velocity_params = OCT_PARAMS(rows);

/* Where speeds become ambiguous, and what is known of the time between. */
enum { LIMIT, TAU_US };
static const struct oct_image_number numbers[] = {{"ambiguous_mm_s", 1}, {"tau_us", 1}};

struct oct_analysis {
    struct oct_image_form input;
    struct oct_scan_protocol scan;
    struct oct_spacing spacing;
    double line_rate_hz;
    struct oct_velocity_settings settings;
    struct oct_flow_optics optics[2]; /* of a k map: by wavelengths that rise, and that fall */
    struct oct_workers *workers;
    bool is_of_bscans; /* fixed, as the form is */

    /* While it is not at rest. */
    struct oct_flow_velocity *velocity;
    struct oct_flow_group group; /* of lines: one B-scan */
    float *v;                    /* [K][rows][D] */
    struct oct_bscan_info info;
    double tau_s;
    bool is_due;
};

static uint32_t n_rows(const struct oct_analysis *a)
{
    return a->is_of_bscans ? a->input.dims[0] : a->input.dims[0] / a->scan.line_repeats;
}

static unsigned n_places(const struct oct_analysis *a)
{
    return a->is_of_bscans ? a->scan.interleave : 1;
}

static const struct oct_flow_optics *optics_of(const struct oct_analysis *a)
{
    return &a->optics[a->settings.wavelengths == OCT_FLOW_FALLING];
}

/* ---- parts ---- */

static void finish_parts(struct oct_analysis *a)
{
    oct_flow_velocity_destroy(a->velocity);
    oct_flow_group_finish(&a->group);
    free(a->v);
    a->velocity = NULL;
    a->v = NULL;
    a->is_due = false;
}

static enum oct_err open_parts(struct oct_analysis *a, struct oct_error *err)
{
    static const struct oct_scan_protocol one = {1, 1, 1};
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    struct oct_spacing spacing = a->spacing;
    double sigma[2];
    spacing.line_um *= a->is_of_bscans ? 1 : a->scan.line_repeats;
    oct_flow_sigma(&spacing, a->settings.window_um, OCT_FLOW_VELOCITY_LINES, sigma);
    const struct oct_flow_velocity_setup setup = {
        .n_lines = n_lines,
        .depth = depth,
        .line_repeats = a->is_of_bscans ? 1 : a->scan.line_repeats,
        .sigma_lines = sigma[0],
        .sigma_depth = sigma[1],
        .min_coherence = a->settings.min_coherence,
        .workers = a->workers,
    };
    enum oct_err e =
        a->is_of_bscans ? oct_flow_check("velocity", n_lines, depth, &a->scan, err) : OCT_OK;
    e = e ? e : oct_flow_velocity_create(&a->velocity, &setup, err);
    e = e ? e
          : oct_flow_group_init(&a->group, n_lines, depth, a->is_of_bscans ? &a->scan : &one, err);
    a->v = e ? NULL : malloc(sizeof(float) * n_places(a) * n_rows(a) * depth);
    return e || a->v ? e : oct_fail(err, OCT_E_NO_MEMORY, "velocity: out of memory");
}

/* ---- B-scans ---- */

static enum oct_err find(struct oct_analysis *a, struct oct_error *err)
{
    const size_t n = (size_t)n_rows(a) * a->input.dims[1];
    enum oct_err e = OCT_OK;
    a->tau_s = a->is_of_bscans       ? oct_flow_group_tau_s(&a->group)
               : a->line_rate_hz > 0 ? 1 / a->line_rate_hz
                                     : 0;
    const double per_rad = oct_flow_mm_s_per_rad(optics_of(a), a->tau_s);
    for (unsigned k = 0; k < n_places(a) && !e; k++) {
        const struct oct_flow_bscan *repeats[OCT_FLOW_MOST_REPEATS];
        oct_flow_group_repeats(&a->group, k, repeats);
        if (a->is_of_bscans)
            e = oct_flow_velocity_bscans(a->velocity, repeats, a->group.n_repeats, per_rad,
                                         a->v + k * n, err);
        else
            oct_flow_velocity_lines(a->velocity, repeats[0], per_rad, a->v);
    }
    a->info = a->group.newest;
    a->is_due = !e;
    oct_flow_group_clear(&a->group);
    return e;
}

static enum oct_err velocity_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                  struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!a->velocity)
        return OCT_OK;
    if (oct_flow_group_is_other(&a->group, &bscan->info))
        e = find(a, err);
    oct_flow_group_put(&a->group, bscan, a->workers);
    if (!e && !a->is_due && oct_flow_group_is_whole(&a->group))
        e = find(a, err);
    return e;
}

static enum oct_err velocity_take(struct oct_analysis *a, struct oct_image_frame *result,
                                  struct oct_error *err)
{
    const double limit = oct_flow_mm_s_per_rad(optics_of(a), a->tau_s);
    (void)err;
    if (!a->is_due)
        return OCT_E_AGAIN;
    memcpy(result->pixels, a->v, sizeof(float) * n_places(a) * n_rows(a) * a->input.dims[1]);
    result->info = a->info;
    result->numbers[LIMIT] = 3.14159265358979323846 * fabs(limit);
    result->hi = isfinite(limit) ? result->numbers[LIMIT] : 1; /* else all of it is NaN */
    result->lo = -result->hi;
    result->numbers[TAU_US] = 1e6 * a->tau_s;
    a->is_due = false;
    return OCT_OK;
}

static void velocity_end(struct oct_analysis *a)
{
    if (a->velocity && a->group.n > 0 && !a->is_due)
        find(a, NULL);
}

static void velocity_reset(struct oct_analysis *a)
{
    a->is_due = false;
    if (a->velocity)
        oct_flow_group_clear(&a->group);
}

/* ---- settings, and life ---- */

static enum oct_err velocity_configure(struct oct_analysis *a, const void *settings,
                                       struct oct_error *err)
{
    struct oct_analysis next = *a;
    memcpy(&next.settings, settings, sizeof(next.settings));
    next.velocity = NULL;
    next.group = (struct oct_flow_group){.n = 0};
    next.v = NULL;
    next.is_due = false;
    const enum oct_err e = next.settings.enabled ? open_parts(&next, err) : OCT_OK;
    if (e) {
        finish_parts(&next);
        return e;
    }
    finish_parts(a);
    *a = next;
    return OCT_OK;
}

static void velocity_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(a);
    free(a);
}

static bool velocity_is_at_rest(const struct oct_analysis *a)
{
    return !a->velocity;
}

static void describe(const struct oct_analysis *a, struct oct_image_form *form)
{
    const struct oct_spacing *s = &a->spacing;
    const bool has_unit = isfinite(a->optics[0].rad_um);
    *form = (struct oct_image_form){
        .name = "velocity",
        .quantity = has_unit ? OCT_QUANTITY_VELOCITY : OCT_QUANTITY_PHASE,
        .type = OCT_SAMPLE_F32,
        .numbers = numbers,
        .n_numbers = sizeof(numbers) / sizeof(numbers[0]),
        .bscans_an_image = a->is_of_bscans ? a->scan.repeats * a->scan.interleave : 0,
    };
    if (n_places(a) > 1) {
        form->dims[form->rank] = n_places(a);
        form->spacing_um[form->rank] = s->bscan_um * a->scan.repeats;
        form->axes[form->rank++] = "place";
    }
    form->dims[form->rank] = n_rows(a);
    form->spacing_um[form->rank] = s->line_um * (double)(a->input.dims[0] / n_rows(a));
    form->axes[form->rank++] = "line";
    form->dims[form->rank] = a->input.dims[1];
    form->spacing_um[form->rank] = s->depth_um;
    form->axes[form->rank++] = "depth";
}

static enum oct_err velocity_create(struct oct_analysis **out,
                                    const struct oct_analysis_setup *setup,
                                    struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    enum oct_err e = OCT_OK;
    *out = NULL;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "velocity: out of memory");
    a->input = *setup->input;
    a->spacing = setup->spacing;
    a->line_rate_hz = setup->line_rate_hz;
    a->workers = setup->workers;
    a->scan = oct_flow_scan(&setup->scan);
    memcpy(&a->settings, setup->settings, sizeof(a->settings));
    a->is_of_bscans = a->settings.between == OCT_FLOW_BSCANS_OF_PLACE;
    for (unsigned falls = 0; falls < 2 && !e; falls++)
        e = oct_flow_optics_init(&a->optics[falls], setup->plan, NULL, a->settings.refractive_index,
                                 falls, err);
    if (!e && a->settings.enabled)
        e = open_parts(a, err);
    if (e) {
        velocity_destroy(a);
        return e;
    }
    describe(a, form);
    *out = a;
    return OCT_OK;
}

static enum oct_err velocity_check(const void *settings, const struct oct_analysis_setup *setup,
                                   struct oct_error *err)
{
    const struct oct_velocity_settings *s = settings;
    return s->enabled && s->between == OCT_FLOW_BSCANS_OF_PLACE
               ? oct_flow_check("velocity", setup->input->dims[0], setup->input->dims[1],
                                &setup->scan, err)
               : OCT_OK;
}

static void velocity_join(void *settings, const struct oct_analysis_session *session)
{
    struct oct_velocity_settings *s = settings;
    s->refractive_index = session->refractive_index;
    s->window_um = session->flow ? session->flow->window_um : 4;
    s->wavelengths = session->flow ? session->flow->wavelengths : OCT_FLOW_RISING;
}

const struct oct_analysis_ops oct_velocity_cpu = {
    .name = "velocity",
    .backend = "cpu",
    .meaning = "How fast what lies in a voxel moves along the beam; one picture a B-scan or place.",
    .input = OCT_STAGE_COMPLEX,
    .settings_bytes = sizeof(struct oct_velocity_settings),
    .keys = {{.params = &oct_velocity_params}},
    .section = "Doppler: topic and dataset `velocity`. Its window is flow.window_um.",
    .join = velocity_join,
    .check = velocity_check,
    .create = velocity_create,
    .run =
        {
            .push = velocity_push,
            .take = velocity_take,
            .end = velocity_end,
            .reset = velocity_reset,
            .configure = velocity_configure,
            .is_at_rest = velocity_is_at_rest,
            .destroy = velocity_destroy,
        },
};
