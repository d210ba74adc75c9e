/* octctl calibrate scan: by how many lines the mirrors lag behind the camera, from a scan that goes
 * both ways.
 *
 * A lag of f lines moves a B-scan forwards by f columns, one backwards by -f: neighbours lie 2 f
 * apart, with the sign of the direction, and an eye that drifts moves both alike. Of each three
 * neighbours, registered rigidly (analysis/align/rigid.h), f = (d1 - d2) / 4; the answer is the
 * mean of those within three scaled median deviations of the median. Of a resonant mirror a lag is
 * no shift: the pictures are made even with what was found, and what remains is added, until
 * nothing does. */
#include "analysis/align/prepare.h"
#include "analysis/align/rigid.h"
#include "config/apply.h"
#include "formats/recording_plan.h"
#include "formats/result_files.h"
#include "numeric/order.h"
#include "pipeline/flow/even_lines.h"
#include "tools/alloc.h"
#include "tools/analyse/job.h"
#include "tools/analyse/one_bscan.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TRIPLES 64u
#define LEAST_TRIPLES 3u
#define MOST_ROUNDS 6u
#define SETTLED_LINES 0.002
#define OUTLIER 3.0
#define SCALED_MAD 1.4826

struct delay {
    double lines, sd; /* standard deviation of the mean */
    uint64_t triples, used;
};

struct scan_options {
    struct oct_job_options job;
};

struct scan_job {
    struct oct_job job;
    struct scan_options given;
    struct oct_config config;
    struct oct_recording *recording;
    struct oct_plan *plan;
    struct oct_geometry geometry;
    float *pictures;  /* [3 triples][M][D] dB, as the lines were taken */
    uint32_t *bscans; /* [triples] the first of each */
    struct delay delay;
};

#define D struct delay
static const struct oct_result_field delay_fields[] = {
    {OCT_RESULT("trigger_delay_lines", D, lines)},
    {OCT_RESULT("sd_lines", D, sd)},
    {OCT_RESULT("triples", D, triples)},
    {OCT_RESULT("used", D, used)},
};
#undef D
static const struct oct_result_fields all_delay_fields = OCT_RESULT_FIELDS(delay_fields);

/* ---- pictures ---- */

static size_t picture_values(const struct scan_job *s)
{
    return (size_t)s->geometry.n_lines * s->geometry.depth;
}

static enum oct_err read_picture(struct scan_job *s, uint64_t b, float *picture,
                                 struct oct_error *err)
{
    struct oct_raw_frame frame = {
        .spectra = oct_alloc(oct_geometry_spectra_bytes(&s->geometry), 1),
        .line_valid = oct_alloc(s->geometry.n_lines, 1),
    };
    bool valid;
    enum oct_err e = oct_recording_read(s->recording, b, &frame, &valid, err);
    e = e ? e : oct_one_bscan(s->plan, &s->config, frame.spectra, frame.line_valid, picture, err);
    for (size_t i = 0; !e && i < picture_values(s); i++)
        picture[i] = 10 * log10f(fmaxf(picture[i], 1e-12F));
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

/* Three neighbours each, spread evenly over the recording. */
static enum oct_err read_triples(struct scan_job *s, struct oct_error *err)
{
    const uint64_t n = oct_recording_n_bscans(s->recording), most = n / 3;
    enum oct_err e = OCT_OK;
    s->delay.triples = most < MOST_TRIPLES ? most : MOST_TRIPLES;
    if (s->delay.triples < LEAST_TRIPLES)
        return oct_fail(err, OCT_E_ARG, "%s has %llu B-scans: 9 are the least", s->job.inputs[0],
                        (unsigned long long)n);
    s->pictures = oct_alloc(3 * s->delay.triples * picture_values(s), sizeof(float));
    s->bscans = oct_alloc(s->delay.triples, sizeof(*s->bscans));
    for (uint64_t t = 0; t < s->delay.triples && !e; t++) {
        s->bscans[t] = (uint32_t)((2 * t + 1) * (n - 2) / (2 * s->delay.triples));
        for (uint64_t k = 0; k < 3 && !e; k++)
            e = read_picture(s, s->bscans[t] + k, s->pictures + (3 * t + k) * picture_values(s),
                             err);
        e = e ? e : oct_job_go_on(&s->job, err);
    }
    return e;
}

/* ---- what remains of the lag ---- */

/* Of A-lines about as far apart as the beam is wide, the highest frequencies are folded and pull a
 * shift towards whole lines: a binomial over three lines takes them away. */
static void smooth_lines(float *pixels, uint32_t n_lines, uint32_t depth)
{
    float *before = oct_alloc(depth, sizeof(*before));
    memcpy(before, pixels, depth * sizeof(*before));
    for (uint32_t j = 0; j < n_lines; j++) {
        float *line = pixels + (size_t)j * depth;
        const float *after = j + 1 < n_lines ? line + depth : line;
        for (uint32_t i = 0; i < depth; i++) {
            const float here = line[i];
            line[i] = (before[i] + 2 * here + after[i]) / 4;
            before[i] = here;
        }
    }
    free(before);
}

/* The picture with the lag that was found undone. */
static enum oct_err make_even(struct scan_job *s, struct oct_even_lines *even, uint64_t at,
                              struct oct_picture *picture, struct oct_error *err)
{
    const struct oct_image_form form = {.type = OCT_SAMPLE_F32};
    uint8_t *valid = oct_alloc(s->geometry.n_lines, 1);
    memset(valid, 1, s->geometry.n_lines);
    memcpy(picture->pixels, s->pictures + at * picture_values(s),
           picture_values(s) * sizeof(float));
    const struct oct_image_frame frame = {.form = &form,
                                          .info = {.number = s->bscans[at / 3] + at % 3},
                                          .pixels = picture->pixels,
                                          .values = picture->pixels};
    if (even)
        oct_even_lines_apply(even, &frame, valid);
    free(valid);
    smooth_lines(picture->pixels, s->geometry.n_lines, s->geometry.depth);
    return oct_align_prepare(picture, err);
}

/* Of three neighbours; NaN: they do not match. */
static enum oct_err find_of_triple(struct scan_job *s, struct oct_rigid *rigid,
                                   struct oct_even_lines *even, uint64_t t, double *lines,
                                   struct oct_error *err)
{
    struct oct_picture picture;
    struct oct_shift shift[2] = {{0}};
    enum oct_err e = oct_picture_init(&picture, s->geometry.n_lines, s->geometry.depth, false, err);
    for (uint64_t k = 0; k < 3 && !e; k++) {
        e = make_even(s, even, 3 * t + k, &picture, err);
        if (!e && k > 0)
            e = oct_rigid_find(rigid, &picture, &shift[k - 1], err);
        if (!e && k < 2)
            e = oct_rigid_set_reference(rigid, &picture, err);
    }
    const double sign = oct_scan_is_turned(&s->plan->scan, s->bscans[t]) ? -1 : 1;
    *lines = shift[0].is_match && shift[1].is_match ? sign * (shift[0].dy - shift[1].dy) / 4 : NAN;
    oct_picture_finish(&picture);
    return e;
}

/* The mean of what is near the median. */
static void sum_up(struct scan_job *s, const double *found, double *mean)
{
    struct delay *d = &s->delay;
    double *sorted = oct_alloc(d->triples, sizeof(*sorted)), sum = 0, squares = 0;
    size_t n = 0;
    for (uint64_t t = 0; t < d->triples; t++)
        if (isfinite(found[t]))
            sorted[n++] = found[t];
    const double median = n ? oct_doubles_median(sorted, n) : NAN;
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(sorted[i] - median);
    const double most =
        n ? fmax(OUTLIER * SCALED_MAD * oct_doubles_median(sorted, n), SETTLED_LINES) : 0;
    d->used = 0;
    for (uint64_t t = 0; t < d->triples; t++) {
        if (!(fabs(found[t] - median) <= most))
            continue;
        d->used++;
        sum += found[t];
        squares += found[t] * found[t];
    }
    const double used = (double)d->used;
    *mean = sum / used;
    d->sd = sqrt(fmax(squares / used - *mean * *mean, 0) / fmax(used - 1, 1));
    free(sorted);
}

static enum oct_err find_remainder(struct scan_job *s, double lag, double *remainder,
                                   struct oct_error *err)
{
    struct oct_rigid *rigid = NULL;
    struct oct_even_lines *even = NULL;
    const struct oct_rigid_setup setup = {.height = s->geometry.n_lines,
                                          .width = s->geometry.depth,
                                          .max_dy = s->geometry.n_lines / 8,
                                          .max_dx = 24,
                                          .min_overlap = 0.5,
                                          .backend = "cpu"};
    struct oct_scan scan = s->plan->scan;
    scan.flyback_lines = 0; /* all of it is undone in the pictures */
    scan.delay_lines = lag;
    double *found = oct_alloc(s->delay.triples, sizeof(*found));
    enum oct_err e = oct_rigid_create(&rigid, &setup, err);
    if (!e && oct_scan_is_uneven(&scan))
        e = oct_even_lines_create(&even, &scan, &s->geometry, err);
    for (uint64_t t = 0; t < s->delay.triples && !e; t++) {
        e = find_of_triple(s, rigid, even, t, &found[t], err);
        e = e ? e : oct_job_go_on(&s->job, err);
    }
    if (!e)
        sum_up(s, found, remainder);
    if (!e && s->delay.used < LEAST_TRIPLES)
        e = oct_fail(err, OCT_E_ARG,
                     "%s: neighbouring B-scans do not match: take a sample with structure along "
                     "the scan, and more B-scans",
                     s->job.inputs[0]);
    oct_rigid_destroy(rigid);
    oct_even_lines_destroy(even);
    free(found);
    return e;
}

static enum oct_err find_delay(void *job, struct oct_error *err)
{
    struct scan_job *s = job;
    double lag = 0, remainder = 0;
    enum oct_err e = read_triples(s, err);
    for (unsigned round = 0; round < MOST_ROUNDS && !e; round++) {
        e = find_remainder(s, lag, &remainder, err);
        lag += e ? 0 : remainder;
        if (fabs(remainder) < SETTLED_LINES || s->plan->scan.phase_deg <= 0)
            break; /* at even speed a lag is a shift, and found as such */
    }
    s->delay.lines = oct_scan_lag(&s->plan->scan) + lag;
    if (!e && s->delay.lines < 0)
        e = oct_fail(err, OCT_E_ARG,
                     "%s: the mirrors run %.2f lines ahead of the camera: start its lines of a "
                     "B-scan later",
                     s->job.inputs[0], -s->delay.lines);
    return e;
}

/* ---- the command ---- */

static void put_ini(const void *job, FILE *file)
{
    const struct scan_job *s = job;
    fprintf(file, "# octctl calibrate scan ");
    oct_command_put_name(file, s->job.inputs[0]);
    fprintf(file, ": +- %.4f lines, from %llu triples of B-scans\n[scan]\n", s->delay.sd,
            (unsigned long long)s->delay.used);
    fprintf(file, "trigger_delay_lines = %.4f\n", s->delay.lines);
}

static enum oct_err write_ini(void *job, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return oct_outputs_print(path, put_ini, job, err);
}

static int read_given(void *job)
{
    (void)job;
    return 0;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct scan_job *s = job;
    s->config = *s->job.config;
    enum oct_err e = oct_recording_open(&s->recording, s->job.inputs[0], &s->config, err);
    e = e ? e : oct_config_set(&s->config, "output.sample", "f32", s->job.name, err);
    e = e ? e : oct_recording_plan(&s->plan, &s->config, s->recording, err);
    if (e)
        return e;
    s->geometry = s->plan->geometry;
    oct_job_add(&s->job, s->job.out, write_ini, s);
    return s->plan->scan.pattern == OCT_SCAN_RASTER_BOTH
               ? OCT_OK
               : oct_fail(err, OCT_E_ARG,
                          "%s: its scan.pattern is %s: a lag shows in a scan that goes both ways "
                          "(raster-both)",
                          s->job.inputs[0], oct_scan_pattern_names[s->plan->scan.pattern]);
}

static void print_delay(const void *job)
{
    const struct scan_job *s = job;
    oct_result_print(stdout,
                     "the mirrors lag by {trigger_delay_lines:.3f} +- {sd_lines:.3f} lines "
                     "({used} of {triples} triples of B-scans)\n",
                     &all_delay_fields, &s->delay);
}

static void fill_json(const void *job, cJSON *tree)
{
    oct_result_json(tree, &all_delay_fields, &((const struct scan_job *)job)->delay);
}

static void finish_job(void *job)
{
    struct scan_job *s = job;
    oct_plan_destroy(s->plan);
    oct_recording_close(s->recording);
}

static const struct oct_option options[] = {
    {"IN", NULL, "a recording with spectra, of a scan that goes both ways", OCT_OPTION_ARGUMENT,
     .at = 0},
    OCT_JOB_JSON(struct scan_options, job),
    OCT_JOB_FORCE(struct scan_options, job),
    {NULL},
};

static const struct oct_job_ops scan_job = {
    .command = &oct_command_calibrate_scan,
    .bytes = sizeof(struct scan_job),
    .values = offsetof(struct scan_job, given),
    .options = offsetof(struct scan_job, given.job),
    .takes_names = true,
    .read = read_given,
    .list = list_files,
    .work = find_delay,
    .print = print_delay,
    .json = fill_json,
    .finish = finish_job,
};

static int run_scan(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&scan_job, config, argc, argv);
}

const struct oct_command oct_command_calibrate_scan = {
    .name = "calibrate scan",
    .usage = "IN [OUT.ini]",
    .help = "by how many lines the mirrors lag behind the camera",
    .options = options,
    .n_least = 1,
    .n_most = 2,
    .too_few = "which recording?",
    .run = run_scan,
};
