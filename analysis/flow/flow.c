/* Settings of all, and the analysis `flow`. */
#include "analysis/flow/flow.h"

#include "analysis/flow/group.h"
#include "pipeline/base/log.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_UM OCT_TRACE_DEPTH_UM /* of a pixel where it is not known */

const char *const oct_flow_methods[] = {"complex", "cdv", "ssada", "amplitude", NULL};
static const char *const wavelengths_names[] = {"rising", "falling", NULL};

#define S struct oct_flow_settings
static const struct oct_param rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "Find what moves between the B-scans of a place (scan.repeats)."},
    {OCT_PARAM_CHOICE("method", S, method, oct_flow_methods), OCT_PARAM_LIVE, .is_option = true,
     .standard = "complex",
     .meaning = "Coherent decorrelation less noise; cdv, ssada: as other devices; amplitude: "
                "without phases."},
    {OCT_PARAM("window_um", S, window_um), OCT_PARAM_LIVE, .is_option = true, .least = 0.5,
     .most = 100, .standard = "4", .unit = "um",
     .meaning = "Sigma of the window along A-lines and depth; of unknown spacing: 1 A-line "
                "(velocity: 2), 3 px."},
    {OCT_PARAM("min_z", S, min_z), OCT_PARAM_LIVE, .is_option = true, .least = 0, .most = 100,
     .standard = "3", .meaning = "What is shown as flow: in standard deviations of still tissue."},
    {OCT_PARAM("projection", S, projection), OCT_PARAM_LIVE, .is_option = true, .least = 0,
     .most = 1, .standard = "0.35",
     .meaning = "Share of the flow above that is taken from what lies below; 0: none."},
    {OCT_PARAM_OF_FORM("slab", S, slab, &oct_param_flow_slab), OCT_PARAM_LIVE, .standard = "",
     .takes = OCT_PARAM_TAKES_FLOW_SLAB,
     .meaning = "Depths of the topic angiogram, as ilm:ilm+80 or 120:180; empty: all."},
    {OCT_PARAM("max_bulk", S, max_bulk), OCT_PARAM_LIVE, .is_option = true, .least = 0, .most = 2,
     .standard = "0.3",
     .meaning = "A place whose tissue decorrelates more has moved, and stays out of angiograms."},
    {OCT_PARAM_CHOICE("wavelengths", S, wavelengths, wavelengths_names), OCT_PARAM_LIVE,
     .is_option = true, .standard = "rising",
     .meaning = "Along the samples, where a k map does not tell: the sign of velocities."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have both: /analysis/flow, /analysis/angiogram."},
};
#undef S
const struct oct_params oct_flow_params = OCT_PARAMS(rows);

static const struct oct_image_number flow_numbers[] = {
    {"bulk_decorrelation", 1},
    {"shift_px", 2},
    {"snr_db", 1},
    {"pairs", 1},
    {"tau_us", 1},
    {"moved", 1},
};
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what all share ---- */

struct oct_scan_protocol oct_flow_scan(const struct oct_scan_protocol *scan)
{
    return (struct oct_scan_protocol){.repeats = scan->repeats ? scan->repeats : 1,
                                      .interleave = scan->interleave ? scan->interleave : 1,
                                      .line_repeats = scan->line_repeats ? scan->line_repeats : 1};
}

static double clamp_sigma(double sigma)
{
    return sigma < OCT_FLOW_MOST_SIGMA ? sigma : OCT_FLOW_MOST_SIGMA;
}

void oct_flow_sigma(const struct oct_spacing *spacing, double window_um, unsigned n_lines,
                    double sigma[2])
{
    const bool is_known = spacing->line_um > 0 && spacing->depth_um > 0;
    sigma[0] = is_known ? clamp_sigma(window_um / spacing->line_um) : n_lines;
    sigma[1] = is_known ? clamp_sigma(window_um / spacing->depth_um) : 3;
}

static double depth_um_of(const struct oct_spacing *spacing)
{
    return spacing->depth_um > 0 ? spacing->depth_um : DEPTH_UM;
}

struct oct_flow_place_setup
oct_flow_place_setup_of(const struct oct_flow_settings *settings, uint32_t n_lines, uint32_t depth,
                        unsigned n_repeats, const struct oct_spacing *spacing,
                        const struct oct_flow_optics *optics, struct oct_workers *workers)
{
    double sigma[2];
    oct_flow_sigma(spacing, settings->window_um, OCT_FLOW_D_LINES, sigma);
    return (struct oct_flow_place_setup){
        .n_lines = n_lines,
        .depth = depth,
        .n_repeats = n_repeats,
        .method = settings->method,
        .sigma_lines = sigma[0],
        .sigma_depth = sigma[1],
        .max_bulk = settings->max_bulk,
        .projection = settings->projection,
        .projection_px = OCT_FLOW_PROJECTION_UM / depth_um_of(spacing),
        .optics = optics,
        .workers = workers,
    };
}

enum oct_err oct_flow_check(const char *name, uint32_t n_lines, uint32_t depth,
                            const struct oct_scan_protocol *scan, struct oct_error *err)
{
    if (scan->repeats < 2 || scan->repeats > OCT_FLOW_MOST_REPEATS)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: scan.repeats is %u: flow is seen between 2 to %u B-scans of a place",
                        name, scan->repeats > 1 ? scan->repeats : 1, OCT_FLOW_MOST_REPEATS);
    if (n_lines < OCT_FLOW_LEAST_SIZE || depth < OCT_FLOW_LEAST_SIZE)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: B-scans of %u A-lines and %u depths are too small: %u of each are "
                        "needed",
                        name, n_lines, depth, OCT_FLOW_LEAST_SIZE);
    return OCT_OK;
}

/* ---- the state ---- */

/* What there is while the analysis is not at rest; else all zero. */
struct parts {
    struct oct_flow_group group;
    const struct oct_flow_engine_ops *ops;
    struct oct_flow_engine *engine;

    struct oct_flow_layers *layers; /* NULL: the slab needs none */
    void *shown;                    /* [K][M][D] as pictures are */
    float *rows;                    /* [K][M + 1], what lies beside them (flow.h) */
    struct oct_bscan_info info;
    double numbers[OCT_FLOW_N_NUMBERS];
    bool is_due;
};

struct oct_analysis {
    struct oct_image_form input;
    struct oct_scan_protocol scan;
    struct oct_spacing spacing;
    struct oct_flow_settings settings;
    struct oct_flow_optics optics[2]; /* of a k map: by wavelengths that rise, and that fall */
    struct oct_workers *workers;
    char *gpus;
    unsigned deadline_ms;
    bool keeps_groups;
    _Atomic(const char *) running;
    struct parts parts;
};

static size_t n_values(const struct oct_analysis *a)
{
    return (size_t)a->input.dims[0] * a->input.dims[1];
}

static unsigned n_of_group(const struct oct_analysis *a)
{
    return a->scan.repeats * a->scan.interleave;
}

static void finish_parts(struct parts *p)
{
    oct_flow_group_finish(&p->group);
    if (p->ops)
        p->ops->destroy(p->engine);
    oct_flow_layers_destroy(p->layers);
    free(p->shown);
    free(p->rows);
    *p = (struct parts){.shown = NULL};
}

static bool is_of_layers(const struct oct_flow_settings *settings)
{
    return settings->slab.kind == OCT_FLOW_SLAB_LAYERS;
}

static enum oct_err open_images(const struct oct_analysis *a, struct parts *p,
                                const struct oct_flow_settings *s, struct oct_error *err)
{
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1], k = a->scan.interleave;
    p->shown = malloc(k * n_values(a) * sizeof(float));
    p->rows = malloc(OCT_FLOW_N_BESIDE(k, n_lines) * sizeof(float));
    if (!p->shown || !p->rows)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    return is_of_layers(s) ? oct_flow_layers_create(&p->layers, n_lines, depth, &a->spacing, err)
                           : OCT_OK;
}

static enum oct_err open_parts(struct oct_analysis *a, struct parts *p,
                               const struct oct_flow_settings *s, struct oct_error *err)
{
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    const struct oct_flow_engine_setup setup = {
        .place =
            oct_flow_place_setup_of(s, n_lines, depth, a->scan.repeats, &a->spacing,
                                    &a->optics[s->wavelengths == OCT_FLOW_FALLING], a->workers),
        .n_places = a->scan.interleave,
        .shows = !is_of_layers(s),
        .gpus = a->gpus,
        .deadline_ms = a->deadline_ms,
        .keeps = a->keeps_groups,
    };
    enum oct_err e = oct_flow_check("flow", n_lines, depth, &a->scan, err);
    e = e ? e : oct_flow_group_init(&p->group, 0, 0, &a->scan, err);
    e = e ? e : oct_flow_engine_select(&p->ops, &p->engine, s->cpu ? "cpu" : "auto", &setup, err);
    return e ? e : open_images(a, p, s, err);
}

static void note_running(struct oct_analysis *a)
{
    const struct parts *p = &a->parts;
    const bool says = p->engine && p->ops->running;
    atomic_store(&a->running, says ? p->ops->running(p->engine) : "cpu");
}

static enum oct_err make_parts(struct oct_analysis *a, const struct oct_flow_settings *s,
                               struct oct_error *err)
{
    struct parts parts = {.shown = NULL};
    const enum oct_err e = s->enabled ? open_parts(a, &parts, s, err) : OCT_OK;
    if (e) {
        finish_parts(&parts);
        return e;
    }
    finish_parts(&a->parts);
    a->parts = parts;
    note_running(a);
    return OCT_OK;
}

/* ---- a group becomes images ---- */

static void clear_group(struct parts *p)
{
    oct_flow_group_clear(&p->group);
    p->ops->clear(p->engine);
}

static void note_place(struct oct_analysis *a, const struct oct_flow_found *found)
{
    double *numbers = a->parts.numbers;
    for (unsigned r = 0; r < a->scan.repeats; r++)
        for (unsigned axis = 0; axis < 2; axis++) {
            double *most = &numbers[OCT_FLOW_SHIFT_LINES + axis];
            *most = fabs(found->shift[r][axis]) > fabs(*most) ? found->shift[r][axis] : *most;
        }
    numbers[OCT_FLOW_BULK] = fmax(numbers[OCT_FLOW_BULK], found->bulk);
    numbers[OCT_FLOW_SNR_DB] = fmin(numbers[OCT_FLOW_SNR_DB], found->snr_db);
    numbers[OCT_FLOW_PAIRS] = fmin(numbers[OCT_FLOW_PAIRS], found->n_pairs);
    numbers[OCT_FLOW_MOVED] = fmax(numbers[OCT_FLOW_MOVED], found->moved);
}

/* Shows a place of which the maps are kept, because its slab lies between layers. */
static void show_place(struct oct_analysis *a, const struct oct_flow_found *found,
                       const struct oct_flow_show *show)
{
    struct parts *p = &a->parts;
    const struct oct_flow_kernels *kernels = oct_flow_kernels_best();
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    const float *position[OCT_N_LAYERS] = {NULL};
    oct_flow_layers_find(p->layers, found->intensity, &p->group.newest, position);
    for (uint32_t j = 0; j < n_lines; j++) {
        const size_t at = (size_t)j * depth;
        uint32_t first, end;
        oct_flow_slab_span(&a->settings.slab, depth, depth_um_of(&a->spacing), position, j, &first,
                           &end);
        kernels->show(found->d + at, found->projected + at, show->min_z, depth,
                      show->values ? show->values + at : NULL,
                      show->bytes ? show->bytes + at : NULL);
        show->row[j] = oct_flow_slab_largest(found->projected + at, first, end);
    }
}

static enum oct_err find_place(struct oct_analysis *a, unsigned k, struct oct_flow_found *found,
                               struct oct_error *err)
{
    struct parts *p = &a->parts;
    const bool is_f32 = a->input.type == OCT_SAMPLE_F32;
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    const size_t at = k * n_values(a);
    struct oct_flow_show show = {
        .min_z = (float)a->settings.min_z,
        .values = is_f32 ? (float *)p->shown + at : NULL,
        .bytes = is_f32 ? NULL : (uint8_t *)p->shown + at,
        .row = p->rows + k * (n_lines + 1),
    };
    if (!p->layers)
        oct_flow_slab_span(&a->settings.slab, depth, depth_um_of(&a->spacing), NULL, 0, &show.first,
                           &show.end);
    const enum oct_err e = p->ops->find(p->engine, k, p->layers ? NULL : &show, found, err);
    if (!e && p->layers)
        show_place(a, found, &show);
    if (!e)
        show.row[n_lines] = found->moved;
    return e;
}

static enum oct_err find_places(struct oct_analysis *a, struct oct_error *err)
{
    struct parts *p = &a->parts;
    enum oct_err e = OCT_OK;
    memset(p->numbers, 0, sizeof(p->numbers));
    p->numbers[OCT_FLOW_SNR_DB] = p->numbers[OCT_FLOW_PAIRS] = NAN; /* fmin leaves NaN */
    p->numbers[OCT_FLOW_TAU_US] = 1e6 * oct_flow_group_tau_s(&p->group);
    for (unsigned k = 0; k < p->group.n_places && !e; k++) {
        struct oct_flow_found found;
        e = find_place(a, k, &found, err);
        e = e ? e : oct_flow_group_check(&p->group, k, found.n_pairs, err);
        if (!e)
            note_place(a, &found);
    }
    note_running(a);
    p->info = p->group.newest;
    p->is_due = !e;
    clear_group(p);
    return e;
}

static enum oct_err flow_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                              struct oct_error *err)
{
    struct parts *p = &a->parts;
    enum oct_err e = OCT_OK;
    if (!p->engine)
        return OCT_OK;
    if (oct_flow_group_is_other(&p->group, &bscan->info))
        e = find_places(a, err); /* its last B-scans were lost */
    const unsigned i = oct_flow_group_put(&p->group, bscan, a->workers);
    const enum oct_err put = p->ops->put(p->engine, i, bscan, e ? NULL : err);
    e = e ? e : put;
    note_running(a);
    /* One image a push: a group that begins with its last B-scan waits for the next. */
    if (!e && !p->is_due && oct_flow_group_is_whole(&p->group))
        e = find_places(a, err);
    return e;
}

static void flow_end(struct oct_analysis *a)
{
    struct parts *p = &a->parts;
    struct oct_error err;
    if (p->engine && p->group.n > 0 && !p->is_due && find_places(a, &err))
        oct_log(OCT_LOG_WARNING, "flow: at the end: %s", err.text);
}

static enum oct_err flow_take(struct oct_analysis *a, struct oct_image_frame *result,
                              struct oct_error *err)
{
    struct parts *p = &a->parts;
    const size_t n = a->scan.interleave * n_values(a);
    (void)err;
    if (!p->is_due)
        return OCT_E_AGAIN;
    memcpy(result->pixels, p->shown,
           n * (a->input.type == OCT_SAMPLE_F32 ? sizeof(float) : sizeof(uint8_t)));
    if (result->values)
        memcpy(result->values, p->rows,
               OCT_FLOW_N_BESIDE(a->scan.interleave, a->input.dims[0]) * sizeof(float));
    memcpy(result->numbers, p->numbers, sizeof(p->numbers));
    result->info = p->info;
    p->is_due = false;
    return OCT_OK;
}

static void flow_reset(struct oct_analysis *a)
{
    struct parts *p = &a->parts;
    if (!p->engine)
        return;
    clear_group(p);
    p->is_due = false;
}

/* ---- settings, and life ---- */

/* But for what is looked at when an image is made, and by the publisher and the recorder. */
static bool needs_parts_anew(const struct oct_analysis *a, const struct oct_flow_settings *wanted)
{
    const struct oct_flow_settings *s = &a->settings;
    return wanted->enabled != s->enabled || wanted->method != s->method ||
           wanted->window_um != s->window_um || wanted->projection != s->projection ||
           wanted->max_bulk != s->max_bulk || wanted->wavelengths != s->wavelengths ||
           wanted->refractive_index != s->refractive_index || wanted->cpu != s->cpu ||
           is_of_layers(wanted) != is_of_layers(s);
}

static enum oct_err flow_configure(struct oct_analysis *a, const void *settings,
                                   struct oct_error *err)
{
    const struct oct_flow_settings *wanted = settings;
    const enum oct_err e = needs_parts_anew(a, wanted) ? make_parts(a, wanted, err) : OCT_OK;
    if (!e)
        a->settings = *wanted;
    return e;
}

static bool flow_is_at_rest(const struct oct_analysis *a)
{
    return !a->settings.enabled;
}

static const char *flow_running(const struct oct_analysis *a)
{
    return atomic_load(&((struct oct_analysis *)a)->running);
}

static void flow_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(&a->parts);
    free(a->gpus);
    free(a);
}

static enum oct_err create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                           struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    enum oct_err e = OCT_OK;
    *out = NULL;
    if (!a || (setup->gpus && !(a->gpus = strdup(setup->gpus)))) {
        free(a);
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    }
    a->input = *setup->input;
    a->scan = oct_flow_scan(&setup->scan);
    a->spacing = setup->spacing;
    a->workers = setup->workers;
    a->deadline_ms = setup->deadline_ms;
    a->keeps_groups = setup->keeps_groups;
    atomic_init(&a->running, "cpu");
    memcpy(&a->settings, setup->settings, sizeof(a->settings));
    for (unsigned falls = 0; falls < 2 && !e; falls++)
        e = oct_flow_optics_init(&a->optics[falls], setup->plan, NULL, a->settings.refractive_index,
                                 falls, err);
    e = e ? e : make_parts(a, &a->settings, err);
    if (e)
        flow_destroy(a);
    else
        *out = a;
    return e;
}

static enum oct_err flow_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, struct oct_error *err)
{
    const struct oct_image_form *input = setup->input;
    const enum oct_err e = create(out, setup, err);
    if (e)
        return e;
    *form = (struct oct_image_form){
        .name = "flow",
        .quantity = OCT_QUANTITY_DECORRELATION,
        .type = input->type,
        .rank = 2,
        .dims = {input->dims[0], input->dims[1]},
        .spacing_um = {input->spacing_um[0], input->spacing_um[1]},
        .axes = {"line", "depth"},
        .bscans_an_image = n_of_group(*out),
        .numbers = flow_numbers,
        .n_numbers = N_OF(flow_numbers),
        .n_beside = OCT_FLOW_N_BESIDE((*out)->scan.interleave, input->dims[0]),
    };
    if ((*out)->scan.interleave > 1) {
        form->rank = 3;
        form->dims[2] = form->dims[1];
        form->dims[1] = form->dims[0];
        form->dims[0] = (*out)->scan.interleave;
        form->axes[2] = form->axes[1];
        form->axes[1] = form->axes[0];
        form->axes[0] = "place";
        form->spacing_um[2] = form->spacing_um[1];
        form->spacing_um[1] = form->spacing_um[0];
        form->spacing_um[0] = setup->spacing.bscan_um * (*out)->scan.repeats;
    }
    return OCT_OK;
}

enum oct_err oct_flow_settings_check(const void *settings, const struct oct_analysis_setup *setup,
                                     struct oct_error *err)
{
    const struct oct_flow_settings *s = settings;
    const uint32_t depth = setup->input->dims[1];
    if (!s->enabled)
        return OCT_OK;
    const enum oct_err e = oct_flow_check("flow", setup->input->dims[0], depth, &setup->scan, err);
    return e ? e : oct_flow_slab_check(&s->slab, "flow.slab", depth, err);
}

static void flow_join(void *settings, const struct oct_analysis_session *session)
{
    struct oct_flow_settings *s = settings;
    s->refractive_index = session->refractive_index;
    s->cpu = session->cpu;
}

const struct oct_analysis_ops oct_flow_cpu = {
    .name = "flow",
    .backend = "cpu",
    .meaning = "What moves between the B-scans of a place: one picture of it a place.",
    .input = OCT_STAGE_COMPLEX,
    .settings_bytes = sizeof(struct oct_flow_settings),
    .keys = {{.params = &oct_flow_params}},
    .section = "Blood flow: topics and datasets `flow`, `angiogram`; needs scan.repeats.",
    .join = flow_join,
    .check = oct_flow_settings_check,
    .wants_groups = true,
    .create = flow_create,
    .run =
        {
            .push = flow_push,
            .take = flow_take,
            .end = flow_end,
            .reset = flow_reset,
            .configure = flow_configure,
            .is_at_rest = flow_is_at_rest,
            .running = flow_running,
            .destroy = flow_destroy,
        },
};
