/* Puts the parts together: threads over B-scans, A-lines within them. */
#include "synth/retina.h"

#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "pipeline/plan/geometry.h"
#include "synth/model.h"

#include <fftw3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CONE_BEAM_MAX_UM 8.0    /* coarser beams see no cones */
#define CONE_AREA_MAX_UM2 1.0e7 /* beyond it the mosaic takes longer than the volume */

/* The motion of a volume: of each B-scan, and unless that is all, of each A-line. */
struct track {
    double *bscan_um; /* [V][3] */
    double *line_um;  /* [V][M][3] or NULL */
    double *blink;    /* [V][M] or NULL */
};

/* What one thread needs to make A-lines. */
struct bench {
    struct oct_scatter scatter;
    fftwf_complex *field; /* [OCT_K_GRID] */
    float amplitude[OCT_N_CELLS], mirror[OCT_N_CELLS], shadow[OCT_N_CELLS];
    float re[OCT_N_CELLS], im[OCT_N_CELLS];
    double time; /* of the A-line, in volumes */
};

struct oct_retina {
    const struct oct_scan *scan; /* borrowed; NULL: an even raster */
    struct oct_retina_params params;
    struct oct_retina_facts facts;
    struct oct_eye eye;
    struct oct_camera camera;
    struct oct_vessels vessels;
    struct oct_retina_cones cones;
    bool has_cones;
    struct oct_cell_paths floating; /* with params.cells.n_cells */
    double *cone_table;
    double beam_um, bscan_s;
    struct track track; /* of volume `traced` */
    uint64_t traced;
    struct oct_workers *workers; /* NULL: one thread */
    struct bench *benches;       /* [n_benches] a worker each, the caller too */
    unsigned n_benches;
    fftwf_plan fft; /* in place, OCT_K_GRID; made with FFTW_ESTIMATE: the same code every run */
};

struct job {
    const struct oct_retina *retina;
    uint32_t volume, first;
    uint16_t *spectra;
    atomic_uint_fast64_t n_saturated;
};

const char *const oct_eye_motion_names[OCT_N_EYE_MOTIONS] = {
    [OCT_EYE_BSCANS] = "bscans",
    [OCT_EYE_NONE] = "none",
    [OCT_EYE_FIXATION] = "fixation",
    [OCT_EYE_UNSTEADY] = "unsteady",
};

static double field_um(double wanted_um, uint32_t n)
{
    return wanted_um > 0 ? wanted_um : fmin(2.5 * n, 9000.0);
}

static enum oct_err check(const struct oct_retina_params *p, struct oct_error *err)
{
    if (!p->n_samples || !oct_geometry_padded(p->n_samples) || p->n_samples < OCT_MIN_SAMPLES)
        return oct_fail(err, OCT_E_CONFIG, "camera.samples: %u is not a spectrum", p->n_samples);
    if (!p->n_lines || p->n_lines > OCT_MAX_LINES || !p->n_bscans || p->n_bscans > OCT_MAX_BSCANS)
        return oct_fail(err, OCT_E_CONFIG, "scan.lines, scan.bscans: %u x %u is not a volume",
                        p->n_lines, p->n_bscans);
    if (!(p->line_rate_hz > 0))
        return oct_fail(err, OCT_E_CONFIG, "scan.line_rate_hz: must be above 0");
    if (!(p->width_um >= 0) || !(p->height_um >= 0) || p->width_um > 20000 || p->height_um > 20000)
        return oct_fail(err, OCT_E_CONFIG,
                        "scan.width_um, scan.height_um: %g x %g: the model is of 20 mm at most",
                        p->width_um, p->height_um);
    if (!(p->refractive_index >= 0) || p->refractive_index > 1.5)
        return oct_fail(err, OCT_E_CONFIG, "scan.refractive_index: %g: tissue has up to 1.5",
                        p->refractive_index);
    if (p->n_drusen > OCT_RETINA_MOST_DRUSEN || p->n_shadows > OCT_RETINA_MOST_SHADOWS ||
        p->n_blinks > OCT_RETINA_MOST_BLINKS)
        return oct_fail(err, OCT_E_CONFIG,
                        "synth: %u drusen, %u shadows, %u blinks: at most %u, %u and %u are "
                        "modelled",
                        p->n_drusen, p->n_shadows, p->n_blinks, OCT_RETINA_MOST_DRUSEN,
                        OCT_RETINA_MOST_SHADOWS, OCT_RETINA_MOST_BLINKS);
    if (p->has_fovea &&
        !(p->fovea[0] >= 0 && p->fovea[0] <= 1 && p->fovea[1] >= 0 && p->fovea[1] <= 1))
        return oct_fail(err, OCT_E_CONFIG, "synth: the fovea lies at shares of 0 to 1");
    return OCT_OK;
}

/* ---- motion ---- */

static bool moves_by_lines(const struct oct_retina_params *p)
{
    return p->motion == OCT_EYE_FIXATION || p->motion == OCT_EYE_UNSTEADY;
}

static void track_finish(struct track *track)
{
    free(track->bscan_um);
    free(track->line_um);
    free(track->blink);
    memset(track, 0, sizeof(*track));
}

static enum oct_err track_init(struct track *track, const struct oct_retina_params *p,
                               bool by_lines, struct oct_error *err)
{
    size_t n = (size_t)p->n_bscans * p->n_lines;
    *track = (struct track){0};
    if (n == 0)
        return oct_fail(err, OCT_E_ARG, "synth: a volume without A-lines");
    track->bscan_um = calloc(p->n_bscans, 3 * sizeof(double));
    if (by_lines)
        track->line_um = calloc(n, 3 * sizeof(double));
    if (by_lines || p->n_blinks)
        track->blink = calloc(n, sizeof(double));
    if (track->bscan_um && (!by_lines || track->line_um) &&
        (!(by_lines || p->n_blinks) || track->blink))
        return OCT_OK;
    track_finish(track);
    return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the motion of a volume");
}

/* The motion of B-scan b is the mean over its A-lines. */
static void track_average(const struct track *track, const struct oct_retina_params *p)
{
    for (size_t b = 0; b < p->n_bscans; b++)
        for (size_t i = 0; i < 3; i++) {
            double sum = 0;
            for (size_t j = 0; j < p->n_lines; j++)
                sum += track->line_um[3 * (b * p->n_lines + j) + i];
            track->bscan_um[3 * b + i] = sum / p->n_lines;
        }
}

/* The volume is cut into as many parts as there are blinks, with one somewhere in each. */
static void add_blinks(const struct oct_retina_params *p, uint32_t volume, double *blink)
{
    for (unsigned i = 0; i < p->n_blinks; i++) {
        double at = oct_uniform(oct_hash(p->seed, OCT_STREAM_BLINKS, volume, 2 * (int64_t)i));
        double lasts =
            oct_uniform(oct_hash(p->seed, OCT_STREAM_BLINKS, volume, 2 * (int64_t)i + 1));
        double part = (double)p->n_bscans / p->n_blinks;
        double n = fmin(fmax((0.03 + 0.03 * lasts) * p->n_bscans, 1.0), part);
        uint32_t first = (uint32_t)(i * part + at * (part - n)), end = first + (uint32_t)n;
        for (uint32_t b = first; b < end && b < p->n_bscans; b++)
            for (uint32_t j = 0; j < p->n_lines; j++)
                blink[(size_t)b * p->n_lines + j] = 1;
    }
}

/* Fills a track, which holds zeros or the motion of another volume. */
static void track_volume(const struct oct_retina *r, uint32_t volume, const struct track *track)
{
    const struct oct_retina_params *p = &r->params;
    uint64_t first = (uint64_t)volume * p->n_bscans;
    if (track->line_um && moves_by_lines(p)) {
        oct_movement_trace(p->seed, p->motion, 1.0 / p->line_rate_hz, first * p->n_lines,
                           (size_t)p->n_bscans * p->n_lines, track->line_um, track->blink);
        track_average(track, p);
    } else if (p->motion == OCT_EYE_BSCANS) {
        oct_motion_trace(p->seed, r->bscan_s, first, p->n_bscans, track->bscan_um);
    }
    if (p->n_blinks && track->blink) {
        if (!moves_by_lines(p)) /* which would have filled it anew */
            memset(track->blink, 0, (size_t)p->n_bscans * p->n_lines * sizeof(double));
        add_blinks(p, volume, track->blink);
    }
}

static const double *motion_at(const struct track *track, size_t n_lines, size_t b, size_t j)
{
    return track->line_um ? track->line_um + 3 * (b * n_lines + j) : track->bscan_um + 3 * b;
}

/* ---- making a retina ---- */

static enum oct_err list_cones(struct oct_retina *r, struct oct_error *err)
{
    r->cone_table = calloc(r->cones.n + 1, 4 * sizeof(double));
    if (!r->cone_table)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the list of cones");
    for (size_t i = 0; i < r->cones.n; i++) {
        const struct oct_cone *cone = &r->cones.cone[i];
        r->cone_table[4 * i] = (double)cone->x_um;
        r->cone_table[4 * i + 1] = (double)cone->y_um;
        r->cone_table[4 * i + 2] = (double)cone->isos_um / r->camera.axial_um;
        r->cone_table[4 * i + 3] = (double)cone->cost_um / r->camera.axial_um;
    }
    return OCT_OK;
}

static enum oct_err build(struct oct_retina *r, struct oct_error *err)
{
    const struct oct_retina_params *p = &r->params;
    double width = field_um(p->width_um, p->n_lines), height = field_um(p->height_um, p->n_bscans);
    unsigned bits = p->bits && p->bits < 12 ? p->bits : 12;
    enum oct_err e;
    r->beam_um = fmax(3.3, 1.4 * width / p->n_lines);
    r->bscan_s = p->n_lines / p->line_rate_hz;
    oct_eye_init(&r->eye, p, width, height);
    e = oct_camera_init(&r->camera, p->seed, p->n_samples, bits, err);
    e = e ? e : oct_vessels_init(&r->vessels, p->seed, r->eye.fovea_um, width, height, err);
    if (!e)
        oct_vessels_add_wide(&r->vessels, p->seed, p->n_shadows, width);
    r->has_cones = r->beam_um <= CONE_BEAM_MAX_UM && width * height <= CONE_AREA_MAX_UM2;
    if (!e && r->has_cones)
        e = oct_cones_init(&r->cones, p->seed, r->eye.fovea_um, width, height, err);
    e = e ? e : list_cones(r, err);
    if (!e && p->cells.n_cells) {
        struct oct_cell_paths_setup cells = p->cells;
        cells.width = width;
        cells.height = height;
        e = oct_cell_paths_init(&r->floating, &cells, err);
    }
    r->facts = (struct oct_retina_facts){
        .wavelengths_nm = r->camera.wavelengths_nm,
        .dispersion_a2 = r->camera.a2,
        .dispersion_a3 = r->camera.a3,
        .axial_um = r->camera.axial_um,
        .width_um = width,
        .height_um = height,
        .fovea_um = {r->eye.fovea_um[0], r->eye.fovea_um[1]},
        .n_cones = r->cones.n,
        .cones = r->cone_table,
        .full_scale = (double)r->camera.full_scale,
    };
    return e;
}

/* Threads, what each needs, and the transform. */
static enum oct_err hire(struct oct_retina *r, struct oct_error *err)
{
    const unsigned n = r->params.n_threads;
    enum oct_err e = n == 1 ? OCT_OK : oct_workers_create(&r->workers, n ? n - 1 : 0, err);
    if (e)
        return e;
    r->n_benches = r->workers ? oct_workers_n_threads(r->workers) + 1 : 1;
    r->benches = calloc(r->n_benches, sizeof(*r->benches));
    if (!r->benches)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the threads' work");
    for (unsigned i = 0; i < r->n_benches && !e; i++) {
        r->benches[i].field = fftwf_alloc_complex(OCT_K_GRID);
        e = r->benches[i].field
                ? oct_scatter_init(&r->benches[i].scatter,
                                   moves_by_lines(&r->params) ? 0 : r->facts.width_um, r->beam_um,
                                   err)
                : oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the threads' work");
    }
    if (e)
        return e;
    fftwf_complex *field = r->benches[0].field;
    oct_fftw_planner_lock();
    r->fft = fftwf_plan_dft_1d(OCT_K_GRID, field, field, FFTW_FORWARD, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return r->fft ? OCT_OK
                  : oct_fail(err, OCT_E_NO_MEMORY, "synth: FFTW made no plan of %d", OCT_K_GRID);
}

enum oct_err oct_retina_create(struct oct_retina **retina, const struct oct_retina_params *params,
                               struct oct_error *err)
{
    enum oct_err e = check(params, err);
    *retina = NULL;
    if (e)
        return e;
    struct oct_retina *r = calloc(1, sizeof(*r));
    if (!r)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the retina");
    r->params = *params;
    r->traced = UINT64_MAX;
    e = track_init(&r->track, params, moves_by_lines(params), err);
    e = e ? e : build(r, err);
    e = e ? e : hire(r, err);
    if (e)
        oct_retina_destroy(r);
    else
        *retina = r;
    return e;
}

void oct_retina_destroy(struct oct_retina *retina)
{
    if (!retina)
        return;
    oct_workers_destroy(retina->workers);
    for (unsigned i = 0; i < retina->n_benches && retina->benches; i++) {
        fftwf_free(retina->benches[i].field);
        oct_scatter_finish(&retina->benches[i].scatter);
    }
    free(retina->benches);
    oct_fftw_planner_lock();
    if (retina->fft)
        fftwf_destroy_plan(retina->fft);
    oct_fftw_planner_unlock();
    oct_camera_finish(&retina->camera);
    oct_vessels_finish(&retina->vessels);
    oct_cones_finish(&retina->cones);
    free(retina->cone_table);
    track_finish(&retina->track);
    free(retina);
}

const struct oct_retina_facts *oct_retina_facts(const struct oct_retina *retina)
{
    return &retina->facts;
}

/* Adds a thin reflector, the cones' ends, that shines through `shadow`. */
static void add_reflector(struct bench *bench, double centre_um, float re, float im)
{
    double centre = centre_um / OCT_CELL_UM + OCT_CELL_RPE - 0.5, sigma = 1.8 / OCT_CELL_UM;
    int middle = (int)floor(centre);
    for (int i = middle - 3; i <= middle + 4; i++) {
        if (i < 0 || i >= OCT_N_CELLS)
            continue;
        float d = (float)((i - centre) / sigma), w = expf(-0.5f * d * d) * bench->shadow[i];
        bench->re[i] += w * re;
        bench->im[i] += w * im;
    }
}

/* Two surfaces of a cell above the ILM. */
static void add_floating(const struct oct_retina *r, struct bench *bench, double x, double y,
                         const struct oct_tissue *tissue)
{
    static const float gain = 2.0f;
    float share = gain * oct_floating_at(&r->floating, x, y, bench->time);
    if (share > 0) {
        add_reflector(bench, tissue->surface_um[OCT_SURFACE_ILM] - 15, share, 0);
        add_reflector(bench, tissue->surface_um[OCT_SURFACE_ILM] - 9, 0, share);
    }
}

/* The complex depth profile under the beam at (x, y). */
static void fill_profile(const struct oct_retina *r, struct bench *bench, double x, double y,
                         const struct oct_tissue *tissue)
{
    static const float isos_gain = 2.8f, cost_gain = 2.2f;
    double vessel = r->eye.index * oct_vessels_at(&r->vessels, x, y);
    oct_tissue_profile(&r->eye, tissue, x, y, bench->amplitude, bench->mirror);
    for (int i = 0; i < OCT_N_CELLS; i++)
        bench->shadow[i] = 1.0f;
    if (vessel > 0)
        oct_vessel_apply(tissue, vessel, bench->amplitude, bench->mirror, bench->shadow);
    oct_scatter_at(&bench->scatter, x, bench->re, bench->im);
    for (int i = 0; i < OCT_N_CELLS; i++) {
        bench->re[i] = bench->re[i] * bench->amplitude[i] + bench->mirror[i];
        bench->im[i] = bench->im[i] * bench->amplitude[i];
    }
    if (r->params.cells.n_cells)
        add_floating(r, bench, x, y, tissue);
    if (r->has_cones) {
        struct oct_mosaic_view view;
        oct_cones_view(&r->cones, x, y, r->beam_um, &view);
        add_reflector(bench, tissue->surface_um[OCT_SURFACE_ISOS] + (double)view.isos_um,
                      isos_gain * view.isos_re, isos_gain * view.isos_im);
        add_reflector(bench, tissue->surface_um[OCT_SURFACE_COST] + (double)view.cost_um,
                      cost_gain * view.cost_re, cost_gain * view.cost_im);
    }
}

/* Transforms the profile, cell OCT_CELL_CENTRE first, so that its spectrum varies slowest. */
static void transform(const struct oct_retina *r, struct bench *bench, double centre_um)
{
    float *field = (float *)bench->field;
    /* The fall-off is nearly linear over the retina's depth. */
    float near = oct_camera_rolloff(&r->camera, centre_um - OCT_CELL_CENTRE * OCT_CELL_UM);
    float far = oct_camera_rolloff(&r->camera, centre_um + OCT_CELL_CENTRE * OCT_CELL_UM);
    memset(bench->field, 0, OCT_K_GRID * sizeof(*bench->field));
    for (int i = 0; i < OCT_N_CELLS; i++) {
        size_t at = (size_t)(i - OCT_CELL_CENTRE + OCT_K_GRID) % OCT_K_GRID;
        float rolloff = near + (far - near) * (float)i / OCT_N_CELLS;
        field[2 * at] = rolloff * bench->re[i];
        field[2 * at + 1] = rolloff * bench->im[i];
    }
    fftwf_execute_dft(r->fft, bench->field, bench->field);
}

/* One A-line: exposes the camera to what the beam sees at (x, y), moved in depth by z_um. */
static uint32_t render_line(const struct oct_retina *r, struct bench *bench, double x, double y,
                            double z_um, bool closed, uint64_t noise, uint16_t *samples)
{
    struct oct_tissue tissue;
    oct_tissue_at(&r->eye, x, y, &tissue);
    /* The centre of a cell is half a cell below its index. */
    double centre = tissue.rpe_um + z_um + (OCT_CELL_CENTRE + 0.5 - OCT_CELL_RPE) * OCT_CELL_UM;
    if (closed) {
        memset(bench->field, 0, OCT_K_GRID * sizeof(*bench->field));
    } else {
        fill_profile(r, bench, x, y, &tissue);
        transform(r, bench, centre);
    }
    return oct_camera_expose(&r->camera, (const float *)bench->field, centre, noise, samples);
}

/* Where A-line j of B-scan b of the spectra, or of the picture, looks at in an eye at rest. */
static void line_place(const struct oct_retina *r, uint32_t b, uint32_t j, bool of_spectra,
                       double um[2])
{
    const double line_um = r->facts.width_um / r->params.n_lines;
    const double bscan_um = r->facts.height_um / r->params.n_bscans;
    um[0] = j * line_um;
    um[1] = b * bscan_um;
    if (!r->scan)
        return;
    if (of_spectra)
        oct_scan_sample(r->scan, b, j, um);
    else
        oct_scan_position(r->scan, b, j, um);
    um[0] += (r->facts.width_um - line_um) / 2;
    um[1] += (r->facts.height_um - bscan_um) / 2;
}

void oct_retina_set_scan(struct oct_retina *r, const struct oct_scan *scan)
{
    r->scan = scan;
}

static void render_bscan(void *context, unsigned b, unsigned worker)
{
    struct job *job = context;
    const struct oct_retina *r = job->retina;
    struct bench *bench = &r->benches[worker];
    const struct track *track = &r->track;
    uint32_t n_lines = r->params.n_lines, n_samples = r->params.n_samples, at = job->first + b;
    uint64_t row = (uint64_t)job->volume * r->params.n_bscans + at, n_clipped = 0;
    for (uint32_t j = 0; j < n_lines; j++) {
        const double *motion = motion_at(track, n_lines, at, j);
        double at_um[2];
        line_place(r, at, j, true, at_um);
        double x = at_um[0] + motion[0], y = at_um[1] + motion[1];
        uint64_t noise = oct_hash(r->params.seed, OCT_STREAM_NOISE, (int64_t)row, j);
        bool closed = track->blink && track->blink[(size_t)at * n_lines + j] > 0;
        bench->time = job->volume + (at + (double)j / n_lines) / r->params.n_bscans;
        /* The scatterers of a B-scan at rest serve all its A-lines. */
        const bool by_lines = track->line_um || r->scan;
        if (j == 0 || by_lines)
            oct_scatter_load(&bench->scatter, r->params.seed, by_lines ? x : motion[0], y);
        n_clipped += render_line(r, bench, x, y, motion[2], closed, noise,
                                 job->spectra + ((size_t)b * n_lines + j) * n_samples);
    }
    atomic_fetch_add(&job->n_saturated, n_clipped);
}

enum oct_err oct_retina_render(struct oct_retina *retina, uint32_t volume, uint32_t first,
                               uint32_t n_bscans, uint16_t *spectra, uint64_t *n_saturated,
                               struct oct_error *err)
{
    struct job job = {.retina = retina, .volume = volume, .first = first, .spectra = spectra};
    if (first > retina->params.n_bscans || n_bscans > retina->params.n_bscans - first)
        return oct_fail(err, OCT_E_ARG, "synth: B-scans %u .. %u of %u", first, first + n_bscans,
                        retina->params.n_bscans);
    if (retina->traced != volume)
        track_volume(retina, volume, &retina->track);
    retina->traced = volume;
    oct_workers_run(retina->workers, n_bscans, render_bscan, &job);
    if (n_saturated)
        *n_saturated = atomic_load(&job.n_saturated);
    return OCT_OK;
}

/* Where registration would have to move each A-line. */
static void fill_line_px(const struct oct_retina *r, struct oct_retina_truth *truth)
{
    size_t n = (size_t)r->params.n_lines * r->params.n_bscans;
    for (size_t i = 0; i < n; i++) {
        truth->line_px[2 * i] = truth->line_um[3 * i] * r->params.n_lines / r->facts.width_um;
        truth->line_px[2 * i + 1] = -truth->line_um[3 * i + 2] / r->camera.axial_um;
    }
}

static enum oct_err add_cells(const struct oct_retina *r, uint32_t volume,
                              struct oct_retina_truth *truth, struct oct_error *err)
{
    const struct oct_floating_view view = {.paths = &r->floating,
                                           .volume = volume,
                                           .n_bscans = r->params.n_bscans,
                                           .n_lines = r->params.n_lines,
                                           .volume_s = r->bscan_s * r->params.n_bscans,
                                           .bscan_um = truth->motion_um};
    enum oct_err e = oct_floating_truth(&view, &truth->cells, err);
    if (e)
        oct_retina_truth_finish(truth);
    return e;
}

enum oct_err oct_retina_truth(const struct oct_retina *r, uint32_t volume,
                              struct oct_retina_truth *truth, struct oct_error *err)
{
    size_t n_lines = r->params.n_lines, n_bscans = r->params.n_bscans, n = n_lines * n_bscans;
    bool by_lines = r->params.motion != OCT_EYE_BSCANS;
    struct track track;
    enum oct_err e = track_init(&track, &r->params, by_lines, err);
    memset(truth, 0, sizeof(*truth));
    if (e)
        return e;
    *truth = (struct oct_retina_truth){
        .motion_um = track.bscan_um,
        .line_um = track.line_um,
        .line_px = by_lines ? calloc(n, 2 * sizeof(double)) : NULL,
        .blink = track.blink,
        .surface_px = calloc(n, OCT_N_SURFACES * sizeof(double)),
        .vessel_um = calloc(n, sizeof(double)),
    };
    if (!truth->surface_px || !truth->vessel_um || (by_lines && !truth->line_px)) {
        oct_retina_truth_finish(truth);
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the truth of a volume");
    }
    track_volume(r, volume, &track);
    if (by_lines)
        fill_line_px(r, truth);
    for (size_t i = 0; i < n; i++) {
        const double *motion = motion_at(&track, n_lines, i / n_lines, i % n_lines);
        double at_um[2];
        line_place(r, (uint32_t)(i / n_lines), (uint32_t)(i % n_lines), false, at_um);
        double x = at_um[0] + motion[0], y = at_um[1] + motion[1];
        struct oct_tissue tissue;
        oct_tissue_at(&r->eye, x, y, &tissue);
        for (size_t s = 0; s < OCT_N_SURFACES; s++)
            truth->surface_px[s * n + i] =
                (tissue.rpe_um + motion[2] + tissue.surface_um[s]) / r->camera.axial_um;
        truth->vessel_um[i] = 2.0 * r->eye.index * oct_vessels_at(&r->vessels, x, y);
    }
    return r->params.cells.n_cells ? add_cells(r, volume, truth, err) : OCT_OK;
}

void oct_retina_truth_finish(struct oct_retina_truth *truth)
{
    free(truth->motion_um);
    free(truth->line_um);
    free(truth->line_px);
    free(truth->blink);
    free(truth->surface_px);
    free(truth->vessel_um);
    free(truth->cells.track);
    memset(truth, 0, sizeof(*truth));
}
