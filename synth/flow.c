#include "synth/flow.h"

#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "synth/random.h"

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_UM 100.0
#define BOTTOM_UM 400.0
#define BAND_UM 40.0  /* of the brighter bands */
#define BAND_GAIN 1.5 /* of the amplitude in them */
#define BEAM_UM 7.0   /* w */
#define REACH_UM 11.5 /* of the beam: exp(-2 r^2 / w^2) is 0.5 % there */
#define CELL_UM 4.0   /* sides of a column of tissue */
#define DENSITY 0.012 /* scatterers in 1 um^3 */
#define BLOOD 1.3     /* amplitude of those in vessels */
#define TILE_UM 64.0  /* along a vessel, after which its scatterers come back */
#define GRID 4096     /* steps of a depth profile, of GRID_UM */
#define GRID_UM 0.5
#define CENTRE_UM 250.0
#define FLYBACK (4.0 / 3.0)
#define READ_SHARE 5e-4 /* of full scale: standard deviation of the read noise */
#define TAPS 4
#define RIM_UM 8.0

typedef float complex sample; /* of this file alone */

/* Of a worker. */
struct bench {
    fftwf_complex *profile; /* [GRID] */
    double *counts;         /* [N] */
    uint64_t n_clipped;
};

/* A scatterer of a vessel: its place in the cross-section and along the axis. */
struct cell {
    float across[2], along, amplitude;
};

struct oct_flow_phantom {
    struct oct_flow_phantom_setup setup;
    struct oct_flow_phantom_truth truth;
    struct oct_spectrometer spectrometer;
    struct oct_flow_vessel vessel[OCT_FLOW_PHANTOM_MOST_VESSELS];
    double frame[OCT_FLOW_PHANTOM_MOST_VESSELS][2][3]; /* axes of its cross-section */
    struct cell *cells[OCT_FLOW_PHANTOM_MOST_VESSELS];
    size_t n_cells[OCT_FLOW_PHANTOM_MOST_VESSELS];
    double modulation;      /* m */
    double mean_k;          /* rad/um in tissue, times 2 */
    uint8_t *burst, *blink; /* [V] */
    struct oct_workers *workers;
    unsigned n_benches;
    struct bench *benches;
    fftwf_plan plan;

    /* While a B-scan is rendered. */
    uint32_t bscan;
    uint16_t *spectra;
};

/* ---- random numbers ---- */

static double uniform(const struct oct_flow_phantom *p, int64_t a, int64_t b)
{
    return oct_uniform(oct_hash(p->setup.seed, OCT_STREAM_FLOW, a, b));
}

static double normal(const struct oct_flow_phantom *p, int64_t a, int64_t b)
{
    return oct_normal(oct_hash(p->setup.seed, OCT_STREAM_FLOW, a, b));
}

/* ---- where all is, and when ---- */

/* B-scan b looks at this place. */
static uint32_t place_of(const struct oct_flow_phantom *p, uint32_t b)
{
    const uint32_t k = p->setup.interleave, n = p->setup.repeats * k;
    return b / n * k + b % n % k;
}

double oct_flow_phantom_time(const struct oct_flow_phantom *p, uint32_t b, uint32_t j)
{
    return (FLYBACK * b * p->setup.n_lines + j) / p->setup.line_rate_hz;
}

/* Back and forth between -1 and 1, with a slope of 1. */
static double triangle(double x)
{
    const double phase = x - 4 * floor(x / 4);
    return phase < 1 ? phase : phase < 3 ? 2 - phase : phase - 4;
}

void oct_flow_phantom_motion(const struct oct_flow_phantom *p, uint32_t b, uint32_t j, double um[3])
{
    static const double speed[3][3] = {{0, 0, 0}, {70, 40, 200}, {450, 200, 1000}}; /* um/s */
    static const double reach[3] = {15, 4, 30};                                     /* um */
    const double t = oct_flow_phantom_time(p, b, j);
    for (int axis = 0; axis < 3; axis++) {
        const double v = speed[p->setup.motion][axis];
        um[axis] = v > 0 ? reach[axis] * triangle(v * t / reach[axis] + uniform(p, 1, axis)) : 0;
    }
    if (p->burst[b])
        um[0] += 30.0 * j / p->setup.n_lines;
}

static void init_frame(struct oct_flow_phantom *p, unsigned i)
{
    const double *u = p->vessel[i].direction;
    double *a = p->frame[i][0], *c = p->frame[i][1];
    /* u is about along y: (u_y, -u_x, 0) is across it, and their cross product too */
    const double length = hypot(u[0], u[1]);
    a[0] = u[1] / length;
    a[1] = -u[0] / length;
    a[2] = 0;
    c[0] = a[1] * u[2] - a[2] * u[1];
    c[1] = a[2] * u[0] - a[0] * u[2];
    c[2] = a[0] * u[1] - a[1] * u[0];
}

/* Evenly along x, so that they do not meet, at any depth. */
static void lay_vessels(struct oct_flow_phantom *p)
{
    const double width = p->setup.line_um * p->setup.n_lines;
    const double length = p->setup.place_um * p->truth.n_places;
    const unsigned n = p->setup.n_vessels;
    for (unsigned i = 0; i < n; i++) {
        struct oct_flow_vessel *v = &p->vessel[i];
        const double size = n > 1 ? fmod(i * 0.618034, 1) : 0.5; /* 0..1, none like its neighbour */
        const double tilt = fmin(0.25, 40 / (length + 1));
        v->radius_um = 4 * pow(5, size);
        v->mm_s = 0.3 * pow(40, size) * (0.7 + 0.7 * uniform(p, 2, i));
        v->x_um = width * (i + 0.5 + 0.3 * (uniform(p, 3, i) - 0.5)) / n;
        v->z_um = TOP_UM + 25 + v->radius_um +
                  (BOTTOM_UM - TOP_UM - 80 - 2 * v->radius_um) * uniform(p, 4, i);
        v->direction[0] = tilt * (2 * uniform(p, 5, i) - 1) * width / (width + 40 * n);
        v->direction[2] = tilt * (2 * uniform(p, 6, i) - 1);
        v->direction[1] = (i % 2 ? -1 : 1) * sqrt(1 - v->direction[0] * v->direction[0] -
                                                  v->direction[2] * v->direction[2]);
        init_frame(p, i);
    }
}

static bool fill_vessel(struct oct_flow_phantom *p, unsigned i)
{
    const double radius = p->vessel[i].radius_um;
    const size_t n = (size_t)(2 * DENSITY * OCT_PI * radius * radius * TILE_UM) + 1;
    p->cells[i] = malloc(n * sizeof(*p->cells[i]));
    p->n_cells[i] = n;
    for (size_t k = 0; k < n && p->cells[i]; k++) {
        const int64_t id = INT64_C(1000) + i;
        const double r = radius * sqrt(uniform(p, id, (int64_t)(4 * k)));
        const double turn = 2 * OCT_PI * uniform(p, id, (int64_t)(4 * k + 1));
        p->cells[i][k] = (struct cell){
            .across = {(float)(r * cos(turn)), (float)(r * sin(turn))},
            .along = (float)(TILE_UM * uniform(p, id, (int64_t)(4 * k + 2))),
            .amplitude = (float)(BLOOD * (0.5 + uniform(p, id, (int64_t)(4 * k + 3)))),
        };
    }
    return p->cells[i] != NULL;
}

/* From the axis of vessel i, and how far along it. */
static double from_axis(const struct oct_flow_phantom *p, unsigned i, const double at[3],
                        double *along)
{
    const struct oct_flow_vessel *v = &p->vessel[i];
    const double d[3] = {at[0] - v->x_um, at[1], at[2] - v->z_um};
    const double *u = v->direction;
    const double s = d[0] * u[0] + d[1] * u[1] + d[2] * u[2];
    if (along)
        *along = s;
    return sqrt(fmax(0, d[0] * d[0] + d[1] * d[1] + d[2] * d[2] - s * s));
}

/* ---- the depth profile of an A-line ---- */

/* The vessels about a beam, and what they do to the phase of what lies below. */
struct beam {
    double x, y, z; /* of the tissue that it looks at; z that the tissue has moved */
    unsigned n, near[OCT_FLOW_PHANTOM_MOST_VESSELS];
    double tail[OCT_FLOW_PHANTOM_MOST_VESSELS];   /* rad; 0: not under it */
    double bottom[OCT_FLOW_PHANTOM_MOST_VESSELS]; /* um */
};

/* Smooth along the A-lines over some 5 um, new in each B-scan. */
static double jitter(const struct oct_flow_phantom *p, unsigned vessel, uint32_t j)
{
    const double at = j * p->setup.line_um / 5, part = at - floor(at);
    const int64_t id = ((int64_t)p->bscan * OCT_FLOW_PHANTOM_MOST_VESSELS + vessel) * 65536;
    const double before = normal(p, 9, id + (int64_t)at),
                 after = normal(p, 9, id + (int64_t)at + 1);
    const double scale = sqrt((1 - part) * (1 - part) + part * part);
    return p->setup.tail_rad * ((1 - part) * before + part * after) / scale;
}

static void aim(const struct oct_flow_phantom *p, uint32_t j, struct beam *beam)
{
    double um[3];
    oct_flow_phantom_motion(p, p->bscan, j, um);
    *beam = (struct beam){.x = j * p->setup.line_um - um[0],
                          .y = place_of(p, p->bscan) * p->setup.place_um - um[1],
                          .z = um[2]};
    for (unsigned i = 0; i < p->setup.n_vessels; i++) {
        const struct oct_flow_vessel *v = &p->vessel[i];
        const double s = beam->y / v->direction[1];
        const double aside = fabs(beam->x - v->x_um - s * v->direction[0]);
        if (aside > v->radius_um / fabs(v->direction[1]) + 2 * REACH_UM)
            continue;
        beam->near[beam->n] = i;
        beam->bottom[beam->n] = v->z_um + s * v->direction[2] +
                                sqrt(fmax(0, v->radius_um * v->radius_um - aside * aside));
        beam->tail[beam->n++] = aside < v->radius_um ? jitter(p, i, j) : 0;
    }
}

/* The field of a scatterer at depth z of still tissue, by the four nearest steps of the grid. */
static void add_scatterer(const struct oct_flow_phantom *p, const struct beam *beam, double z,
                          double amplitude, sample *profile)
{
    const double depth = z + beam->z, at = (depth - CENTRE_UM) / GRID_UM, f = at - floor(at);
    const int64_t first = (int64_t)floor(at) - 1;
    double phase = p->mean_k * depth;
    for (unsigned i = 0; i < beam->n; i++)
        phase += z > beam->bottom[i] ? beam->tail[i] : 0;
    const double taps[TAPS] = {-f * (f - 1) * (f - 2) / 6, (f + 1) * (f - 1) * (f - 2) / 2,
                               -(f + 1) * f * (f - 2) / 2, (f + 1) * f * (f - 1) / 6};
    const sample field = (float)(amplitude * cos(phase)) + I * (float)(amplitude * sin(phase));
    for (int t = 0; t < TAPS; t++)
        profile[(first + t) & (GRID - 1)] += (float)taps[t] * field;
}

static double band_gain(double z)
{
    return z < TOP_UM + BAND_UM || z > BOTTOM_UM - BAND_UM ? BAND_GAIN : 1;
}

static double beam_gain(double r2)
{
    return exp(-2 * r2 / (BEAM_UM * BEAM_UM));
}

/* A column of still tissue, but for what lies in vessels. */
static void add_column(const struct oct_flow_phantom *p, const struct beam *beam, int64_t cx,
                       int64_t cy, sample *profile)
{
    const unsigned n = (unsigned)(DENSITY * CELL_UM * CELL_UM * (BOTTOM_UM - TOP_UM));
    const uint64_t seed = oct_hash(p->setup.seed, OCT_STREAM_SCATTER, cx, cy);
    for (unsigned i = 0; i < n; i++) {
        const uint64_t h = oct_mix64(seed + i * UINT64_C(0x9e3779b97f4a7c15));
        const double at[3] = {((double)cx + (double)(h & 0xffff) / 65536) * CELL_UM,
                              ((double)cy + (double)(h >> 16 & 0xffff) / 65536) * CELL_UM,
                              TOP_UM + (BOTTOM_UM - TOP_UM) * (double)(h >> 32) / 4294967296.0};
        const double r2 = pow(at[0] - beam->x, 2) + pow(at[1] - beam->y, 2);
        bool is_in_vessel = r2 > REACH_UM * REACH_UM;
        for (unsigned k = 0; k < beam->n && !is_in_vessel; k++)
            is_in_vessel =
                from_axis(p, beam->near[k], at, NULL) < p->vessel[beam->near[k]].radius_um;
        if (!is_in_vessel)
            add_scatterer(p, beam, at[2], band_gain(at[2]) * beam_gain(r2), profile);
    }
}

static void add_blood(const struct oct_flow_phantom *p, const struct beam *beam, unsigned i,
                      double t, sample *profile)
{
    const struct oct_flow_vessel *v = &p->vessel[i];
    const double s = beam->y / v->direction[1]; /* along the axis, where the beam crosses it */
    for (size_t k = 0; k < p->n_cells[i]; k++) {
        const struct cell *c = &p->cells[i][k];
        const double a = (double)c->across[0], b = (double)c->across[1];
        const double share = (a * a + b * b) / (v->radius_um * v->radius_um);
        const double along =
            s + remainder((double)c->along + 1e3 * v->mm_s * (1 - share) * t - s, TILE_UM);
        double at[3];
        for (int axis = 0; axis < 3; axis++)
            at[axis] =
                along * v->direction[axis] + a * p->frame[i][0][axis] + b * p->frame[i][1][axis];
        at[0] += v->x_um;
        at[2] += v->z_um;
        const double r2 = pow(at[0] - beam->x, 2) + pow(at[1] - beam->y, 2);
        if (r2 < REACH_UM * REACH_UM)
            add_scatterer(p, beam, at[2], (double)c->amplitude * beam_gain(r2), profile);
    }
}

static void add_sample(const struct oct_flow_phantom *p, uint32_t j, sample *profile)
{
    struct beam beam;
    const double t = oct_flow_phantom_time(p, p->bscan, j);
    memset(profile, 0, GRID * sizeof(*profile));
    if (p->blink[p->bscan])
        return;
    aim(p, j, &beam);
    const int64_t reach = (int64_t)ceil(REACH_UM / CELL_UM);
    const int64_t x = (int64_t)floor(beam.x / CELL_UM), y = (int64_t)floor(beam.y / CELL_UM);
    for (int64_t cx = x - reach; cx <= x + reach; cx++)
        for (int64_t cy = y - reach; cy <= y + reach; cy++)
            add_column(p, &beam, cx, cy, profile);
    for (unsigned k = 0; k < beam.n; k++)
        add_blood(p, &beam, beam.near[k], t, profile);
}

/* ---- the camera ---- */

/* sum over s of a_s cos(2 n k_i z_s), from the transform of the profile, in which
 * exp(i (2 n k_i - mean_k) z) about CENTRE_UM lies between steps. */
static double fringe_at(const struct oct_flow_phantom *p, const sample *spectrum, uint32_t i)
{
    const double k = 4e3 * OCT_PI * p->setup.refractive_index / p->spectrometer.wavelengths_nm[i];
    const double kappa = k - p->mean_k, at = kappa * GRID * GRID_UM / (2 * OCT_PI);
    const double f = at - floor(at), turn = kappa * CENTRE_UM;
    const int64_t first = (int64_t)floor(at) - 1;
    const double taps[TAPS] = {-f * (f - 1) * (f - 2) / 6, (f + 1) * (f - 1) * (f - 2) / 2,
                               -(f + 1) * f * (f - 2) / 2, (f + 1) * f * (f - 1) / 6};
    double re = 0, im = 0;
    for (int t = 0; t < TAPS; t++) {
        const sample e = spectrum[(first + t) & (GRID - 1)];
        re += taps[t] * (double)crealf(e);
        im += taps[t] * (double)cimagf(e);
    }
    return re * cos(turn) - im * sin(turn);
}

static void render_line(void *context, unsigned j, unsigned worker)
{
    const struct oct_flow_phantom *p = context;
    struct bench *bench = &((struct oct_flow_phantom *)context)->benches[worker];
    const struct oct_spectrometer *s = &p->spectrometer;
    sample *profile = (sample *)bench->profile;
    const double peak = 0.5 * s->full_scale;
    const int64_t line = (int64_t)p->bscan * p->setup.n_lines + j;
    add_sample(p, j, profile);
    fftwf_execute_dft(p->plan, bench->profile, bench->profile);
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        const double light = s->source[i] * (1 + p->modulation * fringe_at(p, profile, i));
        const double sd = s->read_counts * sqrt(1 + 4 * s->source[i] / peak);
        bench->counts[i] =
            s->dark + light + sd * oct_normal(oct_hash(p->setup.seed, OCT_STREAM_NOISE, line, i));
    }
    bench->n_clipped +=
        oct_spectrometer_digitise(s, bench->counts, p->spectra + (size_t)j * s->setup.n_samples);
}

uint64_t oct_flow_phantom_render(struct oct_flow_phantom *p, uint32_t b, uint16_t *spectra)
{
    uint64_t n_clipped = 0;
    p->bscan = b;
    p->spectra = spectra;
    oct_workers_run(p->workers, p->setup.n_lines, render_line, p);
    for (unsigned i = 0; i < p->n_benches; i++) {
        n_clipped += p->benches[i].n_clipped;
        p->benches[i].n_clipped = 0;
    }
    return n_clipped;
}

/* With w = dq/di, noise is sum var w^2 / N^2 and tissue (m / 2)^2 times: scatterers in a depth
 * pixel weighed by the beam's square, their mean square, and P2 / N^2 sum source^2 w, the sum
 * over depths of a point's image. */
static void set_light(struct oct_flow_phantom *p)
{
    struct oct_spectrometer *s = &p->spectrometer;
    const double n = s->setup.n_samples, peak = 0.5 * s->full_scale;
    const double bands = 2 * BAND_UM / (BOTTOM_UM - TOP_UM);
    double noise = 0, image = 0;
    s->read_counts = READ_SHARE * s->full_scale;
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        const double w = fabs(s->slope[i]);
        noise += s->read_counts * s->read_counts * (1 + 4 * s->source[i] / peak) * w * w / (n * n);
        image += s->upsampled * s->source[i] * s->source[i] * w / (n * n);
    }
    const double square = 1 + bands * (BAND_GAIN * BAND_GAIN - 1);
    const double in_pixel =
        DENSITY * OCT_PI * BEAM_UM * BEAM_UM / 4 * s->axial_um / p->setup.refractive_index;
    p->truth.noise_counts2 = noise;
    p->modulation = 2 * sqrt(pow(10, p->setup.snr_db / 10) * noise / (in_pixel * square * image));
}

/* ---- what is true ---- */

const struct oct_flow_phantom_truth *oct_flow_phantom_truth(const struct oct_flow_phantom *p)
{
    return &p->truth;
}

/* A still voxel by its place; moved: by the tissue. */
static enum oct_flow_voxel label_voxel(const struct oct_flow_phantom *p, const double at[3])
{
    enum oct_flow_voxel voxel = OCT_FLOW_TISSUE;
    if (at[2] < TOP_UM - RIM_UM || at[2] > BOTTOM_UM + RIM_UM)
        return OCT_FLOW_VOID;
    if (at[2] < TOP_UM + RIM_UM || at[2] > BOTTOM_UM - RIM_UM)
        voxel = OCT_FLOW_RIM;
    for (unsigned i = 0; i < p->setup.n_vessels; i++) {
        const struct oct_flow_vessel *v = &p->vessel[i];
        double along;
        const double r = from_axis(p, i, at, &along);
        const double aside = fabs(at[0] - v->x_um - along * v->direction[0]);
        if (r < 0.8 * v->radius_um)
            return OCT_FLOW_VESSEL;
        if (r < v->radius_um + RIM_UM)
            voxel = OCT_FLOW_RIM;
        else if (aside < v->radius_um + RIM_UM && at[2] > v->z_um + along * v->direction[2] &&
                 voxel == OCT_FLOW_TISSUE)
            voxel = OCT_FLOW_BELOW;
    }
    return voxel;
}

void oct_flow_phantom_label(const struct oct_flow_phantom *p, uint32_t place, uint32_t first_px,
                            uint32_t depth, uint8_t *voxels)
{
    const uint32_t k = p->setup.interleave;
    const uint32_t first = place / k * k * p->setup.repeats + place % k;
    const double um = p->spectrometer.axial_um / p->setup.refractive_index;
    bool is_spoiled = false;
    for (uint32_t r = 0; r < p->setup.repeats; r++)
        is_spoiled = is_spoiled || p->burst[first + r * k] || p->blink[first + r * k];
    for (uint32_t j = 0; j < p->setup.n_lines; j++) {
        double moved[3];
        oct_flow_phantom_motion(p, first, j, moved);
        for (uint32_t d = 0; d < depth; d++) {
            const double at[3] = {j * p->setup.line_um - moved[0],
                                  place * p->setup.place_um - moved[1],
                                  (first_px + d) * um - moved[2]};
            const enum oct_flow_voxel voxel = label_voxel(p, at);
            voxels[(size_t)j * depth + d] = (uint8_t)(is_spoiled ? OCT_FLOW_RIM : voxel);
        }
    }
}

/* ---- life ---- */

/* So many B-scans of their own, any but the first of the volume. */
static void choose_bscans(const struct oct_flow_phantom *p, unsigned n, int64_t stream,
                          uint8_t *chosen)
{
    for (unsigned i = 0, tries = 0; i < n && tries < 100 * n; tries++) {
        const uint32_t b = 1 + (uint32_t)(uniform(p, stream, tries) * (p->setup.n_bscans - 1));
        i += b < p->setup.n_bscans && !chosen[b];
        if (b < p->setup.n_bscans)
            chosen[b] = 1;
    }
}

static bool alloc_benches(struct oct_flow_phantom *p)
{
    p->n_benches = oct_workers_n_threads(p->workers) + 1;
    p->benches = calloc(p->n_benches, sizeof(*p->benches));
    bool is_whole = p->benches != NULL;
    for (unsigned i = 0; i < p->n_benches && is_whole; i++) {
        p->benches[i].profile = fftwf_alloc_complex(GRID);
        p->benches[i].counts = malloc(p->setup.n_samples * sizeof(double));
        is_whole = p->benches[i].profile && p->benches[i].counts;
    }
    if (!is_whole)
        return false;
    oct_fftw_planner_lock();
    p->plan = fftwf_plan_dft_1d(GRID, p->benches[0].profile, p->benches[0].profile, FFTW_BACKWARD,
                                FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return p->plan != NULL;
}

static enum oct_err check(const struct oct_flow_phantom_setup *s, struct oct_error *err)
{
    if (s->n_vessels > OCT_FLOW_PHANTOM_MOST_VESSELS || s->n_bursts > OCT_FLOW_PHANTOM_MOST_BURSTS)
        return oct_fail(err, OCT_E_ARG, "synth: %u vessels and %u bursts at most",
                        OCT_FLOW_PHANTOM_MOST_VESSELS, OCT_FLOW_PHANTOM_MOST_BURSTS);
    if (s->repeats < 1 || s->interleave < 1 || s->n_bscans % (s->repeats * s->interleave) != 0)
        return oct_fail(err, OCT_E_ARG, "synth: %u B-scans are no multiple of %u x %u", s->n_bscans,
                        s->repeats, s->interleave);
    return OCT_OK;
}

static enum oct_err open_phantom(struct oct_flow_phantom *p, struct oct_error *err)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    setup.n_samples = p->setup.n_samples;
    setup.bits = p->setup.bits;
    setup.a2 = setup.a3 = 0;
    enum oct_err e = oct_spectrometer_init(&p->spectrometer, &setup, err);
    e = e ? e : oct_workers_create(&p->workers, p->setup.n_threads, err);
    if (e)
        return e;
    p->truth = (struct oct_flow_phantom_truth){
        .spectrometer = &p->spectrometer,
        .vessels = p->vessel,
        .n_vessels = p->setup.n_vessels,
        .tissue_um = {TOP_UM, BOTTOM_UM},
        .n_places = p->setup.n_bscans / p->setup.repeats,
    };
    p->mean_k = 4e3 * OCT_PI * p->setup.refractive_index / setup.centre_nm;
    p->burst = calloc(p->setup.n_bscans, 1);
    p->blink = calloc(p->setup.n_bscans, 1);
    bool is_whole = p->burst && p->blink && alloc_benches(p);
    lay_vessels(p);
    for (unsigned i = 0; i < p->setup.n_vessels && is_whole; i++)
        is_whole = fill_vessel(p, i);
    if (!is_whole)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for a phantom");
    choose_bscans(p, p->setup.n_bursts, 7, p->burst);
    choose_bscans(p, p->setup.n_blinks, 8, p->blink);
    set_light(p);
    return OCT_OK;
}

enum oct_err oct_flow_phantom_create(struct oct_flow_phantom **phantom,
                                     const struct oct_flow_phantom_setup *setup,
                                     struct oct_error *err)
{
    struct oct_flow_phantom *p;
    enum oct_err e = check(setup, err);
    *phantom = NULL;
    if (e)
        return e;
    p = calloc(1, sizeof(*p));
    if (!p)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for a phantom");
    p->setup = *setup;
    e = open_phantom(p, err);
    if (e)
        oct_flow_phantom_destroy(p);
    else
        *phantom = p;
    return e;
}

void oct_flow_phantom_destroy(struct oct_flow_phantom *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_benches && p->benches; i++) {
        fftwf_free(p->benches[i].profile);
        free(p->benches[i].counts);
    }
    free(p->benches);
    oct_fftw_planner_lock();
    fftwf_destroy_plan(p->plan);
    oct_fftw_planner_unlock();
    for (unsigned i = 0; i < OCT_FLOW_PHANTOM_MOST_VESSELS; i++)
        free(p->cells[i]);
    free(p->burst);
    free(p->blink);
    oct_workers_destroy(p->workers);
    oct_spectrometer_finish(&p->spectrometer);
    free(p);
}
