/* octctl recon: reads a recording and writes a volume file, through the daemon's own pipeline. */
#include "config/apply.h"
#include "formats/recording_plan.h"
#include "kernels/engines.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/offline.h"
#include "pipeline/volume/volume.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    const char *in, *out;
    bool force, quiet;
    const volatile sig_atomic_t *cancel;
    struct oct_output output;
    struct oct_recording *recording;
    struct oct_plan *plan;
    struct oct_pipeline *pipeline;
    struct oct_volume_writer *writer;
    char why[256]; /* the engine, and why it was chosen */
};

/* ---- both ends of the run ---- */

static enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                               enum oct_offline_next *next, struct oct_error *err)
{
    struct oct_recording *recording = context;
    bool valid;

    *next = OCT_OFFLINE_END;
    if (index == oct_recording_n_bscans(recording))
        return OCT_OK;
    enum oct_err e = oct_recording_read(recording, index, frame, &valid, err);
    frame->info.bscan = (uint32_t)index; /* its row in the one file that is written */
    *next = valid ? OCT_OFFLINE_BSCAN : OCT_OFFLINE_SKIP;
    return e;
}

static enum oct_err write_picture(void *context, uint64_t index,
                                  const struct oct_image_frame *picture, struct oct_error *err)
{
    (void)index; /* picture->info.bscan */
    return oct_volume_write_image(context, picture, err);
}

static void report(const struct job *job, const struct oct_progress *progress,
                   const struct oct_offline_counts *counts)
{
    const struct oct_geometry *g = &job->plan->geometry;
    double seconds = oct_progress_seconds(progress);
    printf("%s: %llu B-scans of %u lines, %u depth pixels in %.2f s (%.0f A-lines/s)\n", job->out,
           (unsigned long long)counts->n_pictures, g->n_lines, g->depth, seconds,
           (double)counts->n_pictures * g->n_lines / seconds);
    if (counts->n_skipped)
        printf("%s: %llu B-scans are missing in %s and stay empty\n", job->out,
               (unsigned long long)counts->n_skipped, job->in);
}

static enum oct_err write_pictures(struct job *job, struct oct_error *err)
{
    struct oct_progress progress = {
        .what = "B-scans", .started_ns = oct_clock_ns(), .quiet = job->quiet};
    const struct oct_offline_setup setup = {
        .pipeline = job->pipeline,
        .source = {.name = job->in,
                   .n_bscans = oct_recording_n_bscans(job->recording),
                   .context = job->recording,
                   .read = read_bscan},
        .sink = {.context = job->writer, .picture = write_picture},
        .progress = oct_progress_show,
        .progress_context = &progress,
        .cancel = job->cancel,
    };
    struct oct_offline_counts counts;
    enum oct_err e = oct_offline_run(&setup, &counts, err);
    oct_progress_end(&progress, counts.n_pictures, setup.source.n_bscans);
    if (e == OCT_OK)
        report(job, &progress, &counts);
    return e;
}

/* ---- the output ---- */

/* Refuses an output that would destroy data: the recording itself, and a volume with spectra, which
 * its replacement would not have. */
static enum oct_err check_output(struct job *job, struct oct_error *err)
{
    struct oct_volume_reader *there;
    const char *suffix = strrchr(job->out, '.');

    if (!suffix || (strcmp(suffix, ".h5") != 0 && strcmp(suffix, ".hdf5") != 0))
        return oct_fail(err, OCT_E_ARG, "%s: the output is a volume file: name it *.h5", job->out);
    enum oct_err e = oct_output_init(&job->output, job->out, job->in, job->force, err);
    if (e || access(job->out, F_OK) != 0 || oct_volume_open(&there, job->out, NULL) != OCT_OK)
        return e; /* --force may replace what is no volume of ours */
    bool has_spectra = oct_volume_facts(there)->n_samples > 0;
    oct_volume_reader_destroy(there);
    if (has_spectra)
        return oct_fail(err, OCT_E_ARG,
                        "%s: holds spectra, which a reconstruction would not; choose another "
                        "output",
                        job->out);
    return OCT_OK;
}

static enum oct_err create_output(struct job *job, const struct oct_config *config,
                                  struct oct_error *err)
{
    const struct oct_volume_facts *facts = oct_recording_facts(job->recording);
    char *text = oct_config_text(config);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the configuration's text");
    const struct oct_volume_about about = {
        .config_text = text,
        .start_time = facts && facts->start_time[0] ? facts->start_time : NULL,
        .eye = facts ? facts->eye : config->record.eye,
        .pseudonym = facts ? facts->pseudonym : config->record.pseudonym,
        .engine = job->why,
        .width_um = config->scan.width_um,
        .height_um = config->scan.height_um,
        .refractive_index = config->scan.refractive_index,
    };
    enum oct_err e =
        oct_volume_create(&job->writer, job->output.work, job->plan, &about, false, true, err);
    free(text);
    return e;
}

static enum oct_err create_pipeline(struct job *job, const struct oct_config *config,
                                    struct oct_error *err)
{
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    struct oct_engine_options options;
    /* Offline a longer ring would gain no speed. */
    struct oct_pipeline_setup setup = {.plan = job->plan, .ring_bscans = 16};

    oct_config_engine_options(config, &options, wisdom_dir, sizeof(wisdom_dir));
    oct_config_display(config, &setup.display);
    enum oct_err e =
        oct_engine_select(oct_config_backend_names[config->pipeline.backend], job->plan, &options,
                          &setup.ops, &setup.engine, job->why, sizeof(job->why), err);
    return e ? e : oct_pipeline_create(&job->pipeline, &setup, err);
}

static enum oct_err finish_output(struct job *job, enum oct_err e, struct oct_error *err)
{
    struct oct_error close_err;
    enum oct_err c = oct_volume_close(job->writer, &close_err);
    job->writer = NULL;
    if (!e && !c)
        return oct_output_publish(&job->output, err);
    /* Remove the half of a reconstruction: its input is safe, and it can be made again. */
    oct_output_discard(&job->output, c ? ".part" : "");
    return e ? e : oct_fail(err, c, "%s", close_err.text);
}

static enum oct_err reconstruct(struct job *job, struct oct_config *config, struct oct_error *err)
{
    enum oct_err e = check_output(job, err);
    if (e || (e = oct_recording_open(&job->recording, job->in, config, err)) ||
        (e = oct_recording_plan(&job->plan, config, job->recording, err)))
        return e;
    if ((e = create_pipeline(job, config, err)) || (e = create_output(job, config, err)))
        return e;
    if (!job->quiet)
        fprintf(stderr, "%s\n", job->why);
    e = write_pictures(job, err);
    return finish_output(job, e, err);
}

static const struct oct_option options[] = {
    {"--force", NULL, "replace OUT.h5 if it exists, once the new one is whole", OCT_OPTION_FLAG,
     .at = offsetof(struct job, force)},
    {NULL},
};

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job job = {0};
    struct oct_error err;
    int status = oct_options_read(&oct_command_recon, &job, &argc, argv);

    if (status)
        return status;
    job.in = argv[1];
    job.out = argv[2];
    if (strlen(job.out) >= OCT_CONFIG_STRING_BYTES)
        return oct_command_misuse(argv[0], "the output's name is too long");
    job.cancel = oct_interrupt_watch();
    job.quiet = config->quiet;
    enum oct_err e = reconstruct(&job, config, &err);
    oct_pipeline_destroy(job.pipeline);
    oct_volume_close(job.writer, NULL);
    oct_plan_destroy(job.plan);
    oct_recording_close(job.recording);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_recon = {
    .name = "recon",
    .usage = "IN OUT.h5 [--force]",
    .help = "reconstructs a recording offline",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "two files are needed: the recording and the output",
    .too_many = "one argument too many:",
    .run = run,
};
