/* octctl recon: a recording in, a volume file out, through the daemon's own pipeline. */
#include "config/apply.h"
#include "kernels/engines.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/slots.h"
#include "pipeline/volume/volume.h"
#include "tools/commands.h"
#include "tools/offline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The source at the left end: its own thread, so that reading and writing overlap. */
struct source {
    struct oct_recording *recording;
    struct oct_pipeline *pipeline;
    pthread_t thread;
    enum oct_err result;
    struct oct_error err;
    uint64_t n_skipped; /* rows that the recording never had */
};

struct job {
    const char *in, *out;
    bool force;
    struct oct_recording *recording;
    struct oct_plan *plan;
    struct oct_pipeline *pipeline;
    struct oct_volume_writer *writer;
    char path[OCT_CONFIG_STRING_BYTES + 32]; /* being written */
    char why[256];
};

static volatile sig_atomic_t was_interrupted;

static void on_signal(int number)
{
    (void)number;
    was_interrupted = 1;
}

static void watch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void *read_recording(void *argument)
{
    struct source *source = argument;
    struct oct_ring *raw = oct_pipeline_raw(source->pipeline);
    const struct oct_geometry *g = &oct_pipeline_plan(source->pipeline)->geometry;
    uint64_t n = oct_recording_n_bscans(source->recording), slot = 0;
    bool acquired = false;

    for (uint64_t i = 0; i < n && !source->result; i++) {
        bool valid;
        while (!acquired) {
            enum oct_err e = oct_ring_acquire(raw, 100000, &slot);
            if (e == OCT_E_CLOSED) /* the sink has failed */
                return NULL;
            acquired = e == OCT_OK;
        }
        struct oct_raw_frame *frame = oct_raw_slot(raw, slot, g);
        frame->info = (struct oct_bscan_info){.id = slot};
        source->result = oct_recording_read(source->recording, i, frame, &valid, &source->err);
        if (source->result)
            break;
        frame->info.bscan = (uint32_t)i; /* its row in the one file that is written */
        if (!valid) {
            source->n_skipped++;
            continue; /* the slot serves the next */
        }
        frame->info.arrival_ns = oct_clock_ns();
        oct_ring_publish(raw);
        acquired = false;
    }
    oct_ring_close(raw);
    return NULL;
}

static void show_progress(uint64_t done, uint64_t all, uint64_t started_ns, bool last)
{
    static const char bar[] = "########################################";
    if (!isatty(STDERR_FILENO))
        return;
    double seconds = (double)(oct_clock_ns() - started_ns) * 1e-9;
    int filled = (int)(all ? done * 40 / all : 40);
    fprintf(stderr, "\r[%-40.*s] %llu of %llu B-scans, %.0f a second%s", filled, bar,
            (unsigned long long)done, (unsigned long long)all,
            seconds > 0 ? (double)done / seconds : 0, last ? "\n" : "");
}

/* ---- the sink at the right end ---- */

struct sink {
    struct oct_ring_reader *reader;
    uint64_t all, done, started_ns, shown_ns;
};

static enum oct_err write_image(struct job *job, const struct oct_image_frame *image,
                                struct oct_error *err)
{
    if (was_interrupted)
        return oct_fail(err, OCT_E_CLOSED, "interrupted: nothing is left behind");
    if (image->status)
        return oct_fail(err, image->status, "%s: the engine lost B-scan %u", job->in,
                        image->info.bscan);
    return oct_volume_write_image(job->writer, image, err);
}

/* Reads the ring to its end, whatever happens, so that every thread comes to its end too. */
static enum oct_err drain_images(struct job *job, struct sink *sink, struct oct_error *err)
{
    struct oct_ring *images = oct_pipeline_images(job->pipeline);
    enum oct_err e = OCT_OK, r;
    uint64_t slot;

    while ((r = oct_ring_read(sink->reader, 100000, &slot)) != OCT_E_CLOSED) {
        if (r)
            continue;
        if (e == OCT_OK) {
            e = write_image(job, oct_image_slot(images, slot), err);
            if (e)
                oct_ring_close(oct_pipeline_raw(job->pipeline)); /* ends the source */
        }
        oct_ring_release(sink->reader);
        sink->done++;
        if (oct_clock_ns() - sink->shown_ns > 100000000u) {
            show_progress(sink->done, sink->all, sink->started_ns, false);
            sink->shown_ns = oct_clock_ns();
        }
    }
    return e;
}

static void report(const struct job *job, const struct sink *sink, uint64_t n_skipped)
{
    const struct oct_geometry *g = &job->plan->geometry;
    double seconds = (double)(oct_clock_ns() - sink->started_ns) * 1e-9;
    printf("%s: %llu B-scans of %u lines, %u depth pixels in %.2f s (%.0f A-lines/s)\n", job->out,
           (unsigned long long)sink->done, g->n_lines, g->depth, seconds,
           (double)sink->done * g->n_lines / seconds);
    if (n_skipped)
        printf("%s: %llu B-scans are missing in %s and stay empty\n", job->out,
               (unsigned long long)n_skipped, job->in);
}

static enum oct_err write_images(struct job *job, struct oct_error *err)
{
    struct source source = {.recording = job->recording, .pipeline = job->pipeline};
    struct sink sink = {
        .reader = oct_ring_reader_create(oct_pipeline_images(job->pipeline), true, 0),
        .all = oct_recording_n_bscans(job->recording),
        .started_ns = oct_clock_ns(),
        .shown_ns = oct_clock_ns(),
    };
    if (!sink.reader)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a reader");
    int status = pthread_create(&source.thread, NULL, read_recording, &source);
    if (status) {
        oct_ring_reader_destroy(sink.reader);
        return oct_fail_errno(err, OCT_E_IO, status, "source thread");
    }
    enum oct_err e = drain_images(job, &sink, err);
    pthread_join(source.thread, NULL);
    show_progress(sink.done, sink.all, sink.started_ns, true);
    oct_ring_reader_destroy(sink.reader);
    if (e == OCT_OK && source.result)
        e = oct_fail(err, source.result, "%s", source.err.text);
    if (e == OCT_OK)
        report(job, &sink, source.n_skipped);
    return e;
}

/* ---- the output ---- */

/* What is safe stays safe: the recording itself is never the output, nor is a file with spectra
 * replaced by one without. */
static enum oct_err check_output(const struct job *job, struct oct_error *err)
{
    struct stat in, out;
    struct oct_volume_reader *there;
    const char *suffix = strrchr(job->out, '.');

    if (!suffix || (strcmp(suffix, ".h5") != 0 && strcmp(suffix, ".hdf5") != 0))
        return oct_fail(err, OCT_E_ARG, "%s: the output is a volume file: name it *.h5", job->out);
    if (stat(job->out, &out) != 0)
        return OCT_OK;
    if (stat(job->in, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return oct_fail(err, OCT_E_ARG, "%s: is the recording itself; choose another output",
                        job->out);
    if (!job->force)
        return oct_fail(err, OCT_E_IO, "%s: exists already; choose another name, or --force",
                        job->out);
    if (oct_volume_open(&there, job->out, NULL) != OCT_OK)
        return OCT_OK; /* no volume of ours: that is what --force is for */
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
    if (job->force)
        snprintf(job->path, sizeof(job->path), "%s.new.%ld", job->out, (long)getpid());
    else
        snprintf(job->path, sizeof(job->path), "%s", job->out);
    enum oct_err e =
        oct_volume_create(&job->writer, job->path, job->plan, &about, false, true, err);
    free(text);
    return e;
}

static enum oct_err create_pipeline(struct job *job, const struct oct_config *config,
                                    struct oct_error *err)
{
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    struct oct_engine_options options;
    /* Offline a short ring is as fast as a long one. */
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
    if (e || c) {
        char part[sizeof(job->path) + 8];
        snprintf(part, sizeof(part), "%s%s", job->path, c ? ".part" : "");
        unlink(part); /* half a reconstruction can be made again; its input is safe */
        return e ? e : oct_fail(err, c, "%s", close_err.text);
    }
    if (job->force && rename(job->path, job->out) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot replace it", job->out);
    return OCT_OK;
}

static enum oct_err reconstruct(struct job *job, struct oct_config *config, struct oct_error *err)
{
    enum oct_err e = check_output(job, err);
    if (e || (e = oct_recording_open(&job->recording, job->in, config, err)) ||
        (e = oct_offline_plan(&job->plan, config, job->recording, err)))
        return e;
    if ((e = create_pipeline(job, config, err)) || (e = create_output(job, config, err)))
        return e;
    fprintf(stderr, "%s\n", job->why);
    e = write_images(job, err);
    return finish_output(job, e, err);
}

int oct_cmd_recon(struct oct_config *config, int argc, char **argv)
{
    struct job job = {0};
    struct oct_error err;

    for (int i = 1; i < argc; i++) {
        if (oct_option_flag(argv[i], "--force"))
            job.force = true;
        else if (argv[i][0] == '-' && argv[i][1] == '-')
            return oct_command_misuse(argv[0], "unknown option '%s'", argv[i]);
        else if (!job.in)
            job.in = argv[i];
        else if (!job.out)
            job.out = argv[i];
        else
            return oct_command_misuse(argv[0], "one argument too many: '%s'", argv[i]);
    }
    if (!job.out)
        return oct_command_misuse(argv[0], "two files are needed: the recording and the output");
    if (strlen(job.out) >= OCT_CONFIG_STRING_BYTES)
        return oct_command_misuse(argv[0], "the output's name is too long");
    watch_signals();
    enum oct_err e = reconstruct(&job, config, &err);
    oct_pipeline_destroy(job.pipeline);
    oct_volume_close(job.writer, NULL);
    oct_plan_destroy(job.plan);
    oct_recording_close(job.recording);
    return e ? oct_command_fail(argv[0], &err) : 0;
}
