/* octctl export: datasets of recordings in the formats of other tools. */
#include "pipeline/base/clock.h"
#include "tools/commands.h"
#include "tools/files/export_options.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/progress.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_INPUTS 4096

struct job {
    const char *name;
    struct oct_export_given given;
    struct oct_export_wish wish;
    struct oct_export_options work;
    const struct oct_export_format *format;
    const char *const *inputs;
    unsigned n;
    const char *out;
    struct oct_progress progress;
    struct oct_export_open **open;     /* [n] */
    struct oct_export_source *sources; /* [n] */
};

/* ---- the report ---- */

static const char *const sample_names[] = {
    [OCT_EXPORT_U8] = "u8", [OCT_EXPORT_U16] = "u16", [OCT_EXPORT_F32] = "f32"};

static void print_one(const struct job *job, unsigned i)
{
    const struct oct_export_form *f = &job->sources[i].form;
    const struct oct_export_counts counts = oct_export_source_counts(job->open[i]);
    oct_command_put_name(stdout, job->out);
    printf(": %s as %s, %s", f->name, job->format->name, sample_names[f->sample]);
    for (unsigned k = 0; k < 3; k++) {
        printf("%s%u %s", k ? " x " : " ", f->dims[k], f->axes[k]);
        if (isfinite(f->um[k]))
            printf(" (%.4g um)", f->um[k]);
    }
    if (f->sample == OCT_EXPORT_U8 && isfinite(f->lo))
        printf(", 0 is %.6g and 255 is %.6g%s%s", f->lo, f->hi, *f->unit ? " " : "", f->unit);
    else if (*f->unit)
        printf(", %s", f->unit);
    printf("\n");
    if (counts.n_missing)
        printf("%s: %u of %u %s of %s were never written and are %s\n", job->out, counts.n_missing,
               counts.n, counts.what, job->inputs[i], f->sample == OCT_EXPORT_F32 ? "NaN" : "0");
    if (*oct_export_source_scaling(job->open[i]))
        printf("%s: samples of %s became u16 by %s\n", job->out, job->inputs[i],
               oct_export_source_scaling(job->open[i]));
}

static cJSON *describe_one(const struct job *job, unsigned i)
{
    const struct oct_export_form *f = &job->sources[i].form;
    const struct oct_export_counts counts = oct_export_source_counts(job->open[i]);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", job->out);
    cJSON_AddStringToObject(o, "format", job->format->name);
    cJSON_AddStringToObject(o, "dataset", f->name);
    cJSON_AddStringToObject(o, "sample", sample_names[f->sample]);
    cJSON *dims = cJSON_AddArrayToObject(o, "dims"), *axes = cJSON_AddArrayToObject(o, "axes"),
          *um = cJSON_AddArrayToObject(o, "spacing_um");
    for (unsigned k = 0; k < 3; k++) {
        cJSON_AddItemToArray(dims, cJSON_CreateNumber(f->dims[k]));
        cJSON_AddItemToArray(axes, cJSON_CreateString(f->axes[k]));
        cJSON_AddItemToArray(um, isfinite(f->um[k]) ? cJSON_CreateNumber(f->um[k])
                                                    : cJSON_CreateNull());
    }
    cJSON_AddStringToObject(o, "unit", f->unit);
    oct_command_add_number(o, "lo", f->lo);
    oct_command_add_number(o, "hi", f->hi);
    cJSON_AddNumberToObject(o, "missing", counts.n_missing);
    cJSON_AddStringToObject(o, "scaling", oct_export_source_scaling(job->open[i]));
    cJSON_AddStringToObject(o, "uid", f->acquisition_uid);
    return o;
}

static int report(const struct job *job)
{
    if (!job->given.json) {
        for (unsigned i = 0; i < job->n; i++)
            print_one(job, i);
        return 0;
    }
    cJSON *list = cJSON_CreateArray();
    for (unsigned i = 0; i < job->n; i++)
        cJSON_AddItemToArray(list, describe_one(job, i));
    const int status = oct_command_printed(job->name, oct_command_print_json(list));
    cJSON_Delete(list);
    return status;
}

/* ---- the work ---- */

static enum oct_err check_output(const struct job *job, struct oct_error *err)
{
    const struct oct_output_file file = {.path = job->out};
    const struct oct_input_files read = {job->inputs, job->n, {NULL}};
    if (oct_export_makes_folder(job->format, job->out))
        return job->format->may_make_folder(job->out, job->given.force, err);
    return oct_outputs_check(&file, 1, job->given.force, &read, err);
}

static enum oct_err write_output(struct job *job, struct oct_error *err)
{
    job->open = calloc(job->n, sizeof(struct oct_export_open *));
    job->sources = calloc(job->n, sizeof(*job->sources));
    if (!job->open || !job->sources)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u inputs", job->n);
    enum oct_err e = check_output(job, err);
    for (unsigned i = 0; i < job->n && !e; i++)
        e = oct_export_source_open(&job->open[i], &job->sources[i], job->inputs[i], &job->wish,
                                   err);
    if (e)
        return e;
    e = job->format->write(job->out, job->sources, job->n, &job->work, err);
    oct_progress_clear(&job->progress);
    return e;
}

static enum oct_err prepare(struct job *job, const struct oct_config *config, struct oct_error *err)
{
    if (strcmp(job->out, "-") == 0)
        return oct_fail(err, OCT_E_ARG, "-: an export is a file, not standard output: name it");
    enum oct_err e = oct_export_format_find(&job->format, job->out, job->given.to, err);
    if (e)
        return e;
    if (job->n > 1 && !job->format->many)
        return oct_fail(err, OCT_E_ARG, "%s takes one recording, not %u", job->format->name,
                        job->n);
    job->progress = (struct oct_progress){
        .what = "planes", .started_ns = oct_clock_ns(), .quiet = config->quiet};
    job->work = (struct oct_export_options){.force = job->given.force,
                                            .cancel = oct_interrupt_watch(),
                                            .progress = oct_progress_show,
                                            .progress_context = &job->progress};
    job->wish.config = config;
    job->wish.work = &job->work;
    job->wish.needs_um = job->format->needs_um;
    job->wish.u8_only = job->format->u8_only;
    job->wish.no_f32 = job->format->no_f32;
    job->wish.with_pseudonym = job->given.pseudonym || job->format->has_pseudonym;
    return OCT_OK;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job job = {.name = argv[0]};
    struct oct_error err;
    int status = oct_options_read(&oct_command_export, &job.given, &argc, argv);
    status = status ? status : oct_export_given_read(&job.given, &job.wish, argv[0]);
    if (status)
        return status;
    job.inputs = (const char *const *)(argv + 1);
    job.n = (unsigned)argc - 2;
    job.out = argv[argc - 1];
    enum oct_err e = prepare(&job, config, &err);
    e = e ? e : write_output(&job, &err);
    status = e ? oct_command_fail(job.name, &err) : report(&job);
    for (unsigned i = 0; job.open && i < job.n; i++)
        oct_export_source_close(job.open[i]);
    free(job.open);
    free(job.sources);
    return status;
}

const struct oct_command oct_command_export = {
    .name = "export",
    .usage = "IN... OUT [OPTIONS]",
    .help = "writes a recording as OME-TIFF, NIfTI, DICOM, .npy, .mat or PNG",
    .options = oct_export_options_table,
    .n_least = 2,
    .n_most = MOST_INPUTS + 1,
    .too_few = "two files are needed: the recording and the output",
    .run = run,
};
