/* octctl calibrate dispersion: the a2 and a3 that make a sample sharpest. */
#include "tools/analyse/calibrate_dispersion.h"

#include "analysis/calibrate/sharpen_text.h"
#include "formats/recording_plan.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the search ---- */

static enum oct_err add_bscans(struct oct_dispersion_job *job, struct oct_recording *recording,
                               uint64_t n, struct oct_error *err)
{
    const struct oct_geometry *g = &job->plan->geometry;
    const uint64_t n_there = oct_recording_n_bscans(recording);
    struct oct_raw_frame frame = {
        .spectra = malloc(oct_geometry_spectra_bytes(g)),
        .line_valid = malloc(g->n_lines),
    };
    enum oct_err e = frame.spectra && frame.line_valid
                         ? OCT_OK
                         : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan");
    for (uint64_t k = 0; k < n && !e; k++) { /* the middles of n equal parts */
        bool valid;
        e = oct_recording_read(recording, (2 * k + 1) * n_there / (2 * n), &frame, &valid, err);
        if (!e && valid)
            oct_sharpen_add(job->sharpen, frame.spectra, frame.line_valid);
    }
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

static enum oct_err search(struct oct_dispersion_job *job, struct oct_recording *recording,
                           struct oct_error *err)
{
    const struct oct_dispersion_options *o = &job->options;
    const uint64_t n_there = oct_recording_n_bscans(recording);
    const uint64_t n = o->bscans < n_there ? o->bscans : n_there;
    struct oct_sharpen_setup setup = oct_sharpen_standard;
    setup.plan = job->plan;
    setup.first_px = (uint32_t)o->first_px;
    setup.last_px = (uint32_t)o->last_px;
    setup.n_lines = (uint32_t)o->lines;
    setup.n_bscans = (uint32_t)n;
    setup.most_a2 = o->most_a2;
    setup.most_a3 = o->most_a3;
    setup.limit = (1u << job->config->camera.bits) - 1;
    enum oct_err e = oct_sharpen_create(&job->sharpen, &setup, err);
    e = e ? e : add_bscans(job, recording, n, err);
    e = e ? e : oct_sharpen_run(job->sharpen, NULL, &job->result, err);
    e = e ? e : oct_sharpen_combine(job->plan, job->result.remaining, &job->whole, err);
    return e;
}

/* ---- what is told ---- */

static bool print_json(const struct oct_dispersion_job *job)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "sample", job->in);
    oct_sharpen_describe(&job->result, &job->whole, object);
    if (job->result.state == OCT_SHARPEN_FOUND && job->options.out)
        cJSON_AddStringToObject(object, "out", job->options.out);
    for (int m = 0; m < 2; m++) {
        const struct oct_sharpen_curve *c = &job->result.curve[m];
        cJSON *curve = cJSON_AddObjectToObject(object, m ? "curve_a3" : "curve_a2");
        cJSON_AddItemToObject(curve, "rad", cJSON_CreateDoubleArray(c->at, OCT_SHARPEN_CURVE));
        cJSON_AddItemToObject(curve, "sharpness", cJSON_CreateDoubleArray(c->s, OCT_SHARPEN_CURVE));
    }
    const bool is_printed = oct_command_print_json(object);
    cJSON_Delete(object);
    return is_printed;
}

static void print_text(const struct oct_dispersion_job *job)
{
    const struct oct_sharpen_result *r = &job->result;
    const struct oct_sharpen_dispersion *w = &job->whole;
    const double *s = w->over_spectrum, *g = w->over_grid;
    printf("remaining   a2 %.3f +- %.3f rad, a3 %.3f +- %.3f rad over the spectrum\n",
           r->remaining[0], r->error[0], r->remaining[1], r->error[1]);
    if (w->is_table)
        printf("whole       a file of %u values%s\n", w->n,
               job->options.out ? "" : ": name one with --out");
    else
        printf("whole       a2 %.4f, a3 %.4f, a4 %.4f, a5 %.4f rad over the spectrum\n"
               "            a2 %.4f, a3 %.4f, a4 %.4f, a5 %.4f rad over the grid\n",
               s[2], s[3], s[4], s[5], g[2], g[3], g[4], g[5]);
    printf("sharpness   %.2f -> %.2f (noise: 2), agreement %.2f\n", r->before, r->after,
           r->agreement);
    if (r->n_widths)
        printf("width       %.2f -> %.2f px, median of the brightest layer of %u A-lines\n",
               r->width_before_px, r->width_after_px, r->n_widths);
    printf("A-lines     %u%s", r->n_lines, r->n_saturated ? "" : "\n");
    if (r->n_saturated)
        printf(", and %u left out because they are saturated\n", r->n_saturated);
    for (unsigned i = 0; i < job->n_files; i++)
        if (job->files[i].path)
            printf("%s\n", job->files[i].path);
}

/* ---- the command ---- */

static enum oct_err work(struct oct_dispersion_job *job, struct oct_config *config,
                         struct oct_recording **recording, struct oct_error *err)
{
    enum oct_err e = oct_recording_open(recording, job->in, config, err);
    e = e ? e : oct_recording_plan(&job->plan, config, *recording, err);
    e = e ? e : oct_dispersion_list_files(job, err);
    e = e ? e : search(job, *recording, err);
    if (!e && job->result.state != OCT_SHARPEN_FOUND && !job->options.json)
        e = oct_fail(err, OCT_E_ARG, "%s: %s", job->in, oct_sharpen_why(job->result.state));
    if (e || job->result.state != OCT_SHARPEN_FOUND)
        return e;
    e = job->options.png ? oct_dispersion_draw(job, err) : OCT_OK;
    return e ? e : oct_outputs_write(job->files, job->n_files, job->options.force, err);
}

static int run_file(struct oct_dispersion_job *job, struct oct_config *config)
{
    struct oct_recording *recording = NULL;
    struct oct_error err;
    enum oct_err e = work(job, config, &recording, &err);
    oct_recording_close(recording);
    if (e)
        return oct_command_fail_at_work(job->name, &err);
    if (!job->options.json)
        print_text(job);
    else if (!print_json(job))
        return oct_command_printed(job->name, false);
    return job->result.state == OCT_SHARPEN_FOUND ? 0 : 1;
}

static void finish(struct oct_dispersion_job *job)
{
    oct_sharpen_destroy(job->sharpen);
    oct_plan_destroy(job->plan);
    free(job->whole.table);
    free(job->before);
    free(job->after);
    free(job->table);
    free(job->curve);
    free(job);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct oct_dispersion_job *job = calloc(1, sizeof(*job));
    struct oct_error err;
    if (!job) {
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    job->name = argv[0];
    job->config = config;
    job->options = (struct oct_dispersion_options){
        .bscans = OCT_DISPERSION_BSCANS,
        .lines = oct_sharpen_standard.n_lines,
        .first_px = OCT_SHARPEN_FIRST_PX,
        .most_a2 = oct_sharpen_standard.most_a2,
        .most_a3 = oct_sharpen_standard.most_a3,
        .timeout_s = 5,
        .wait_s = 60,
    };
    int status = oct_options_read(&oct_command_calibrate_dispersion, &job->options, &argc, argv);
    if (!status && job->options.live && argc > 1)
        status = oct_command_misuse(argv[0], "--live takes the camera's B-scans: name no SAMPLE");
    else if (!status && !job->options.live && argc < 2)
        status = oct_command_misuse(argv[0], "which recording? (or --live)");
    else if (!status)
        status = (job->in = argv[1]) ? run_file(job, config) : oct_dispersion_live(job);
    finish(job);
    return status;
}

#define AT(member) .at = offsetof(struct oct_dispersion_options, member)
static const struct oct_option options[] = {
    {"--out", "FILE.ini", "writes the dispersion as a configuration", OCT_OPTION_TEXT, AT(out)},
    {"--png", "FILE.png",
     "the first B-scan before and after, and FILE-curve.png: the sharpness over\n"
     "a2 and a3",
     OCT_OPTION_TEXT, AT(png)},
    {"--bscans", "N", "B-scans to look at, evenly spread (8)", OCT_OPTION_COUNT, AT(bscans),
     .least = 1, .most = 1e6, .needs = "a number from 1 to 1000000"},
    {"--lines", "N", "A-lines of all of them (512)", OCT_OPTION_COUNT, AT(lines), .least = 8,
     .most = OCT_SHARPEN_MOST_LINES, .needs = "a number from 8 to 2048"},
    {"--first", "PX", "depths before it are left out (16)", OCT_OPTION_COUNT, AT(first_px),
     .least = 1, .most = 65535, .needs = "a number of depth pixels from 1 to 65535"},
    {"--last", "PX", "and from it on (P2/4)", OCT_OPTION_COUNT, AT(last_px), .least = 17,
     .most = 65535, .needs = "a number of depth pixels from 17 to 65535"},
    {"--most-a2", "RAD", "search range of a2 beside what the configuration has (100)",
     OCT_OPTION_NUMBER, AT(most_a2), .least = 1, .most = 1000,
     .needs = "a number of radians from 1 to 1000"},
    {"--most-a3", "RAD", "search range of a3 (24)", OCT_OPTION_NUMBER, AT(most_a3), .least = 1,
     .most = 300, .needs = "a number of radians from 1 to 300"},
    {"--live", NULL, "asks a running octd to do it on its next B-scans", OCT_OPTION_FLAG, AT(live)},
    {"--endpoint", "E", "of --live: the daemon's control.endpoint", OCT_OPTION_TEXT, AT(endpoint)},
    {"--timeout", "S", "of --live: wait at most S seconds for an answer (5)", OCT_OPTION_NUMBER,
     AT(timeout_s), .least = OCT_OPTION_ABOVE_0, .most = 86400,
     .needs = "a number of seconds above 0"},
    {"--wait", "S", "of --live: and for the result (60)", OCT_OPTION_NUMBER, AT(wait_s),
     .least = OCT_OPTION_ABOVE_0, .most = 86400, .needs = "a number of seconds above 0"},
    {"--json", NULL, "the result as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--force", NULL, "replace files that exist", OCT_OPTION_FLAG, AT(force)},
    {NULL},
};

const struct oct_command oct_command_calibrate_dispersion = {
    .name = "calibrate dispersion",
    .usage = "SAMPLE|--live [OPTIONS]",
    .help = "finds the dispersion that makes any sample sharpest",
    .options = options,
    .n_most = 1,
    .run = run,
};
