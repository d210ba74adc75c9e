#include "tools/files/recon_run.h"

#include "config/analysis.h"
#include "config/apply.h"
#include "formats/file_sum.h"
#include "formats/recording_plan.h"
#include "formats/whole_file.h"
#include "kernels/device/workers.h"
#include "kernels/engines.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/utf8.h"
#include "pipeline/flow/offline.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_BSCANS 16u /* offline a longer ring would gain no speed */

/* What is kept from one recording to the next. */
struct oct_recon {
    struct oct_workers *workers;
    struct oct_workers *analysts;  /* of analyses; NULL: none yet */
    struct oct_pipeline *pipeline; /* drained; NULL: none yet */
    struct oct_plan *plan;         /* the pipeline's */
    struct oct_config config;      /* that it was made with */
    bool lends[OCT_N_LENT];        /* likewise */
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    char why[256]; /* the engine, and why it was chosen */
    unsigned n_engines;
    uint32_t n_runs; /* of the pipeline: acquisitions, so that limits are smoothed within each */
};

/* One recording. */
struct work {
    const struct oct_recon_job *job;
    struct oct_config config; /* with the recording's own settings */
    struct oct_whole_file output;
    struct oct_recording *recording;
    struct oct_file_sum sum; /* of the recording's file */
    struct oct_plan *plan;   /* the recording's; NULL: it has become the pipeline's */
    struct oct_volume_writer *writer;
    uint32_t acquisition;
    struct oct_stage *stages[OCT_OFFLINE_MAX_STAGES];
    bool is_written[OCT_OFFLINE_MAX_STAGES]; /* else another analysis takes its results in */
    unsigned dataset[OCT_OFFLINE_MAX_STAGES];
    unsigned n_stages;
    const struct oct_image_form *forms[OCT_OFFLINE_MAX_STAGES]; /* of datasets */
    unsigned n_forms;
    bool wants[OCT_N_LENT]; /* what they do */
};

/* ---- both ends of the run ---- */

static enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                               enum oct_offline_next *next, struct oct_error *err)
{
    struct work *w = context;
    const uint64_t n_bscans = oct_recording_n_bscans(w->recording);
    bool valid;

    *next = OCT_OFFLINE_END;
    if (index == n_bscans)
        return OCT_OK;
    enum oct_err e = oct_recording_read(w->recording, index, frame, &valid, err);
    frame->info.bscan = (uint32_t)index; /* its row in the one file that is written */
    frame->info.acquisition = w->acquisition;
    *next = valid ? OCT_OFFLINE_BSCAN : OCT_OFFLINE_SKIP;
    /* So far the file has been read, if its B-scans lie in order. */
    return e ? e : oct_file_sum_to(&w->sum, w->sum.size / n_bscans * (index + 1), err);
}

/* The file does not say which run of the pipeline made it: its bytes are the same in any. */
static enum oct_err write_picture(void *context, uint64_t index,
                                  const struct oct_image_frame *picture, struct oct_error *err)
{
    const struct work *w = context;
    struct oct_image_frame frame = *picture;
    (void)index; /* picture->info.bscan */
    frame.info.acquisition = 0;
    return oct_volume_write_image(w->writer, &frame, err);
}

static enum oct_err give_bscan(void *context, uint64_t index, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    const struct oct_recon_sink *sink = ((const struct work *)context)->job->sink;
    (void)index;
    return sink->bscan(sink->context, bscan, err);
}

static enum oct_err write_result(void *context, unsigned stage, uint64_t index,
                                 const struct oct_image_frame *result, struct oct_error *err)
{
    const struct work *w = context;
    struct oct_image_frame frame = *result;
    (void)index; /* result->info.bscan */
    if (!w->is_written[stage])
        return OCT_OK;
    frame.info.acquisition = 0;
    return oct_volume_write_result(w->writer, w->dataset[stage], &frame, err);
}

static enum oct_err write_pictures(struct work *w, struct oct_pipeline *pipeline,
                                   struct oct_recon_result *result, struct oct_error *err)
{
    const struct oct_recon_job *job = w->job;
    const uint64_t started_ns = oct_clock_ns();
    const struct oct_offline_setup setup = {
        .pipeline = pipeline,
        .source = {.name = job->in,
                   .n_bscans = oct_recording_n_bscans(w->recording),
                   .context = w,
                   .read = read_bscan},
        .stages = w->stages,
        .n_stages = w->n_stages,
        .sink = {.context = w,
                 .picture = job->sink ? give_bscan : write_picture,
                 .result = write_result},
        .progress = job->progress,
        .progress_context = job->progress_context,
        .cancel = job->cancel,
    };
    struct oct_offline_counts counts;
    const enum oct_err e = oct_offline_run(&setup, &counts, err);
    result->n_bscans = counts.n_pictures;
    result->n_skipped = counts.n_skipped;
    result->seconds = (double)(oct_clock_ns() - started_ns) * 1e-9;
    return e;
}

/* ---- the output ---- */

/* The volume's writer begins under a name of its own beside `work`; a killed process of the same
 * number may have left one. */
static void remove_part(const struct oct_whole_file *output)
{
    char part[PATH_MAX];
    const int n = output->work ? snprintf(part, sizeof(part), "%s.part", output->work) : -1;
    if (n > 0 && (size_t)n < sizeof(part))
        unlink(part);
}

/* Refuses an output that would destroy data: the recording itself, and a volume with spectra, which
 * its replacement would not have. */
static enum oct_err check_output(struct work *w, struct oct_error *err)
{
    const struct oct_recon_job *job = w->job;
    struct oct_volume_reader *there;
    const char *suffix = strrchr(job->out, '.');

    if (!suffix || (strcmp(suffix, ".h5") != 0 && strcmp(suffix, ".hdf5") != 0))
        return oct_fail(err, OCT_E_ARG, "%s: the output is a volume file: name it *.h5", job->out);
    enum oct_err e = oct_whole_file_may(job->out, job->force, &job->in, 1, err);
    if (e || (e = oct_whole_file_init(&w->output, job->out, job->force, err)))
        return e;
    remove_part(&w->output);
    if (access(job->out, F_OK) != 0 || oct_volume_open(&there, job->out, NULL) != OCT_OK)
        return OCT_OK; /* --force may replace what is no volume of ours */
    bool has_spectra = oct_volume_facts(there)->n_samples > 0;
    oct_volume_reader_destroy(there);
    if (has_spectra)
        return oct_fail(err, OCT_E_ARG,
                        "%s: holds spectra, which a reconstruction would not; choose another "
                        "output",
                        job->out);
    return OCT_OK;
}

/* Of an output alone. */
static bool has_complex(const struct work *w)
{
    return w->job->has_complex || (!w->job->sink && oct_config_has_complex(&w->config));
}

static enum oct_err create_output(struct work *w, const char *engine, const struct oct_plan *plan,
                                  struct oct_error *err)
{
    const struct oct_volume_facts *facts = oct_recording_facts(w->recording);
    const struct oct_config *config = &w->config;
    char *text = oct_alloc_check(oct_config_text(config));
    struct oct_display display;
    oct_config_display(config, &display);
    const struct oct_volume_about about = {
        .config_text = text,
        .scan = oct_config_scan(config),
        .has_complex = has_complex(w),
        .is_log = display.log,
        .limits_are_common = display.range == OCT_RANGE_MANUAL,
        .lo = display.lo,
        .hi = display.hi,
        .start_time = oct_recording_start_time(w->recording),
        .start_time_source = oct_recording_start_time_source(w->recording),
        .eye = facts ? facts->eye : config->record.eye,
        .pseudonym = facts ? facts->pseudonym : config->record.pseudonym,
        .engine = engine,
        .width_um = config->scan.width_um,
        .height_um = config->scan.height_um,
        .refractive_index = config->scan.refractive_index,
        .forms = w->forms,
        .n_forms = w->n_forms,
    };
    enum oct_err e = oct_volume_create(&w->writer, w->output.work, plan, &about, false, true, err);
    free(text);
    return e;
}

/* Says in the closed file what it was made from. The folder of the input is left out: it may say
 * who somebody is. */
static enum oct_err write_source(struct work *w, struct oct_error *err)
{
    const struct oct_input_facts *input = oct_recording_input(w->recording);
    const char *name = oct_recording_name(w->recording), *slash = strrchr(name, '/');
    char base[256], crc[9], changed[32];
    const enum oct_err e = oct_file_sum_to(&w->sum, w->sum.size, err);
    if (e)
        return e;
    snprintf(base, sizeof(base), "%s", slash ? slash + 1 : name);
    oct_utf8_repair(base);
    snprintf(crc, sizeof(crc), "%08x", w->sum.crc);
    oct_file_sum_time(&w->sum, changed);
    const struct oct_volume_note notes[] = {
        {"input_name", base, 0},    {"input_format", input ? input->format : "volume", 0},
        {"input_time", changed, 0}, {"input_bytes", NULL, w->sum.size},
        {"input_crc32c", crc, 0},   {"input_scaling", input ? input->scaling : "", 0},
    };
    return oct_volume_add_notes(w->output.work, notes, sizeof(notes) / sizeof(notes[0]), err);
}

static enum oct_err finish_output(struct work *w, enum oct_err e, struct oct_error *err)
{
    struct oct_error close_err;
    enum oct_err c = oct_volume_close(w->writer, &close_err);
    w->writer = NULL;
    if (!e && !c)
        e = write_source(w, err);
    if (!e && !c)
        return oct_whole_file_publish(&w->output, err);
    /* Remove the half of a reconstruction: its input is safe, and it can be made again. */
    remove_part(&w->output);
    oct_whole_file_discard(&w->output);
    return e ? e : oct_fail(err, c, "%s", close_err.text);
}

/* ---- the engine ---- */

static void drop_pipeline(struct oct_recon *r)
{
    oct_pipeline_destroy(r->pipeline);
    oct_plan_destroy(r->plan);
    r->pipeline = NULL;
    r->plan = NULL;
}

static bool lends_enough(const struct oct_recon *r, const struct work *w)
{
    bool is_enough = true;
    for (int what = 0; what < OCT_N_LENT; what++)
        is_enough = is_enough && (r->lends[what] || !w->wants[what]);
    return is_enough;
}

/* Whether the pipeline that is there reconstructs the recording as one made for it would. */
static bool is_fit(const struct oct_recon *r, const struct work *w)
{
    const struct oct_config *a = &r->config, *b = &w->config;
    return r->pipeline && !oct_pipeline_has_failed(r->pipeline, NULL) &&
           a->pipeline.backend == b->pipeline.backend && lends_enough(r, w) &&
           a->pipeline.threads == b->pipeline.threads && a->pipeline.simd == b->pipeline.simd &&
           a->pipeline.batch == b->pipeline.batch && a->pipeline.log == b->pipeline.log &&
           strcmp(a->pipeline.gpus, b->pipeline.gpus) == 0 && oct_plan_is_same(r->plan, w->plan);
}

static enum oct_err create_pipeline(struct oct_recon *r, struct work *w,
                                    const struct oct_display *display, struct oct_error *err)
{
    struct oct_engine_options options;
    drop_pipeline(r);
    r->config = w->config; /* which the options point into */
    r->plan = w->plan;
    memcpy(r->lends, w->wants, sizeof(r->lends));
    w->plan = NULL;
    r->n_runs = 0;
    oct_config_engine_options(&r->config, &options, r->wisdom_dir, sizeof(r->wisdom_dir));
    options.workers = r->workers;
    options.has_complex = r->lends[OCT_LENT_COMPLEX];
    struct oct_pipeline_setup setup = {
        .plan = r->plan,
        .ring_bscans = RING_BSCANS,
        .display = *display,
        .spacing = oct_config_spacing(&r->config, r->plan),
    };
    memcpy(setup.lends, r->lends, sizeof(setup.lends));
    enum oct_err e =
        oct_engine_select(oct_config_backend_names[r->config.pipeline.backend], r->plan, &options,
                          &setup.ops, &setup.engine, r->why, sizeof(r->why), err);
    r->n_engines += !e;
    return e ? e : oct_pipeline_create(&r->pipeline, &setup, err);
}

/* Leaves a pipeline that waits for the recording's B-scans. */
static enum oct_err ready_pipeline(struct oct_recon *r, struct work *w, struct oct_error *err)
{
    struct oct_display display;
    oct_config_display(&w->config, &display);
    if (is_fit(r, w) && oct_pipeline_restart(r->pipeline, &display, NULL) == OCT_OK)
        return OCT_OK;
    return create_pipeline(r, w, &display, err);
}

/* ---- analyses ---- */

static enum oct_err look_at_analyses(struct work *w, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    w->wants[OCT_LENT_COMPLEX] = has_complex(w) || w->job->sink;
    w->wants[OCT_LENT_DEVICE] = w->job->sink && w->job->sink->is_on_device;
    for (const char *at = w->job->analyses ? w->config.analysis.run : ""; *at && !e;) {
        const struct oct_analysis_ops *ops;
        e = oct_config_analysis_next(&at, &ops, err);
        ops = !e && ops->of ? oct_analysis_find(ops->of) : ops;
        if (!e)
            oct_stage_note_lent(ops->input, w->wants);
    }
    return e;
}

/* Finds the stage of an analysis, or adds it after the one whose results it takes in; *k: which. */
static enum oct_err add_stage(struct oct_recon *r, struct work *w,
                              const struct oct_analysis_ops *ops, unsigned *k,
                              struct oct_error *err)
{
    struct oct_image_source in = {.ring = NULL};
    struct oct_config_stage setup = {.ops = ops,
                                     .plan = w->plan ? w->plan : r->plan,
                                     .pipeline = r->pipeline,
                                     .workers = r->analysts,
                                     .guaranteed = true};
    enum oct_err e = OCT_OK;
    for (*k = 0; *k < w->n_stages; ++*k)
        if (strcmp(oct_stage_name(w->stages[*k]), ops->name) == 0)
            return OCT_OK;
    if (ops->of) {
        e = add_stage(r, w, oct_analysis_find(ops->of), k, err);
        if (!e)
            in = oct_stage_results(w->stages[*k]);
        setup.in = &in;
    }
    if (!e && w->n_stages == OCT_OFFLINE_MAX_STAGES)
        return oct_fail(err, OCT_E_ARG, "more than %u analyses", OCT_OFFLINE_MAX_STAGES);
    *k = setup.asker = w->n_stages;
    e = e ? e
          : oct_config_analysis_check(&w->config, ops->name, oct_pipeline_form(r->pipeline), err);
    e = e ? e : oct_config_stage_create(&w->stages[*k], &w->config, &setup, err);
    w->n_stages += !e;
    return e;
}

static enum oct_err create_stages(struct oct_recon *r, struct work *w, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (w->job->analyses && !r->analysts)
        e = oct_workers_create(&r->analysts, w->config.pipeline.threads, err);
    for (const char *at = w->job->analyses ? w->config.analysis.run : ""; *at && !e;) {
        const struct oct_analysis_ops *ops;
        unsigned k;
        e = oct_config_analysis_next(&at, &ops, err);
        e = e ? e : add_stage(r, w, ops, &k, err);
        if (e)
            return e;
        w->is_written[k] = true;
    }
    for (unsigned k = 0; k < w->n_stages; k++) {
        w->dataset[k] = w->n_forms;
        if (w->is_written[k])
            w->forms[w->n_forms++] = oct_stage_results(w->stages[k]).form;
    }
    return e;
}

/* Before the first B-scan comes: those of all. */
static enum oct_err ask_complex(const struct oct_recon *r, const struct work *w,
                                struct oct_error *err)
{
    const struct oct_recon_sink *sink = w->job->sink;
    const bool is_on_device =
        sink && sink->is_on_device && sink->is_on_device(sink->context) &&
        oct_pipeline_ask(r->pipeline, OCT_LENT_DEVICE, OCT_LAST_ASKER, UINT_MAX);
    const unsigned n = has_complex(w) || (sink && !is_on_device) ? UINT_MAX : 0;
    if (!is_on_device)
        oct_pipeline_ask(r->pipeline, OCT_LENT_DEVICE, OCT_LAST_ASKER, 0);
    if (!r->lends[OCT_LENT_COMPLEX] ||
        oct_pipeline_ask(r->pipeline, OCT_LENT_COMPLEX, OCT_LAST_ASKER, n))
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for complex values");
}

/* A B-scan that an analysis failed at is an error of the run: what was asked for is not whole. */
static enum oct_err check_stages(const struct work *w, struct oct_error *err)
{
    for (unsigned k = 0; k < w->n_stages; k++) {
        struct oct_stage_counts counts;
        oct_stage_count(w->stages[k], &counts);
        if (counts.skipped[OCT_STAGE_FAILED])
            return oct_fail(err, counts.failure.code ? counts.failure.code : OCT_E_STATE,
                            "analysis %s: %s", oct_stage_name(w->stages[k]), counts.failure.text);
        if (counts.skipped[OCT_STAGE_NO_VALUES])
            return oct_fail(err, OCT_E_BACKEND,
                            "analysis %s: the GPU has failed with %llu B-scans: try again",
                            oct_stage_name(w->stages[k]),
                            (unsigned long long)counts.skipped[OCT_STAGE_NO_VALUES]);
        if (counts.results == 0)
            return oct_fail(err, OCT_E_ARG,
                            "analysis %s: no result: its settings leave it nothing to do, or the "
                            "recording has too few B-scans for it",
                            oct_stage_name(w->stages[k]));
    }
    return OCT_OK;
}

/* ---- a recording ---- */

static enum oct_err reconstruct(struct oct_recon *r, struct work *w,
                                struct oct_recon_result *result, struct oct_error *err)
{
    const struct oct_recon_sink *sink = w->job->sink;
    enum oct_err e = sink ? OCT_OK : check_output(w, err);
    if (e ||
        (e = oct_recording_open_until(&w->recording, w->job->in, &w->config, w->job->cancel,
                                      err)) ||
        (e = oct_recording_plan(&w->plan, &w->config, w->recording, err)) ||
        (e = oct_file_sum_init(&w->sum, oct_recording_file(w->recording),
                               oct_recording_name(w->recording), err)))
        return e;
    const struct oct_geometry geometry = w->plan->geometry;
    if ((e = look_at_analyses(w, err)) || (e = ready_pipeline(r, w, err)) ||
        (e = create_stages(r, w, err)))
        return e;
    w->acquisition = r->n_runs++;
    /* The recording's own plan says how many B-scans there are. */
    const struct oct_plan *plan = w->plan ? w->plan : r->plan;
    e = sink ? sink->begin(sink->context, &w->config, plan, w->recording, err)
             : create_output(w, r->why, plan, err);
    e = e ? e : ask_complex(r, w, err);
    if (e)
        return e;
    result->n_lines = geometry.n_lines;
    result->depth = geometry.depth;
    e = write_pictures(w, r->pipeline, result, err);
    e = e ? e : check_stages(w, err);
    return sink ? e : finish_output(w, e, err);
}

enum oct_err oct_recon_run(struct oct_recon *recon, const struct oct_config *config,
                           const struct oct_recon_job *job, struct oct_recon_result *result,
                           struct oct_error *err)
{
    struct work *w = oct_alloc(1, sizeof(*w));
    *result = (struct oct_recon_result){0};
    w->job = job;
    w->config = *config;
    enum oct_err e = reconstruct(recon, w, result, err);
    if (recon->pipeline)
        oct_pipeline_drain(recon->pipeline); /* where the run did not come so far */
    for (unsigned k = 0; k < w->n_stages; k++)
        if (!oct_stage_drain(w->stages[k]))
            recon->analysts = NULL; /* an analysis that was left to itself goes on using it */
    for (unsigned k = w->n_stages; k > 0; k--) /* readers of another's results first */
        oct_stage_destroy(w->stages[k - 1]);
    oct_volume_close(w->writer, NULL);
    oct_whole_file_discard(&w->output);
    oct_plan_destroy(w->plan);
    oct_file_sum_finish(&w->sum);
    oct_recording_close(w->recording);
    free(w);
    return e;
}

/* ---- life ---- */

struct oct_recon *oct_recon_create(struct oct_workers *workers)
{
    struct oct_recon *recon = oct_alloc(1, sizeof(*recon));
    recon->workers = workers;
    return recon;
}

const char *oct_recon_engine(const struct oct_recon *recon)
{
    return recon->why;
}

const char *oct_recon_engine_name(const struct oct_recon *recon)
{
    return recon->pipeline ? oct_pipeline_engine_name(recon->pipeline) : "";
}

unsigned oct_recon_n_engines(const struct oct_recon *recon)
{
    return recon->n_engines;
}

void oct_recon_destroy(struct oct_recon *recon)
{
    if (!recon)
        return;
    drop_pipeline(recon);
    oct_workers_destroy(recon->analysts);
    free(recon);
}
