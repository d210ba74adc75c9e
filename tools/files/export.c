/* octctl export: datasets of recordings in the formats of other tools. */
#include "tools/files/export.h"
#include "pipeline/base/clock.h"
#include "pipeline/volume/closed.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/dicom/identity.h"
#include "tools/files/export_source.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/picture_options.h"
#include "tools/progress.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    bool is_real;                      /* says who the patient is */
    struct oct_export_person person;
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
        cJSON_AddItemToArray(um, cJSON_CreateNumber(f->um[k])); /* NaN is written as null */
    }
    cJSON_AddStringToObject(o, "unit", f->unit);
    cJSON_AddNumberToObject(o, "lo", f->lo);
    cJSON_AddNumberToObject(o, "hi", f->hi);
    cJSON_AddNumberToObject(o, "missing", counts.n_missing);
    cJSON_AddStringToObject(o, "scaling", oct_export_source_scaling(job->open[i]));
    cJSON_AddStringToObject(o, "uid", f->acquisition_uid);
    return o;
}

static void report(const struct job *job)
{
    cJSON *list = cJSON_CreateArray();
    for (unsigned i = 0; i < job->n; i++)
        if (job->given.json)
            cJSON_AddItemToArray(list, describe_one(job, i));
        else
            print_one(job, i);
    if (job->given.json)
        oct_command_print_json(list);
    cJSON_Delete(list);
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

/* An exam of a hospital is whole: DICOM is not made of what octd still writes. */
static enum oct_err refuse_unfinished(const struct job *job, struct oct_error *err)
{
    int fd = -1;
    if (job->format != &oct_export_dicom)
        return OCT_OK;
    const enum oct_err e = oct_volume_closed_open(&fd, job->inputs[0], false, err);
    if (fd >= 0)
        close(fd);
    return e == OCT_E_STATE ? e : OCT_OK; /* what else is wrong is said by who reads it */
}

static enum oct_err write_output(struct job *job, struct oct_error *err)
{
    job->open = oct_alloc(job->n, sizeof(struct oct_export_open *));
    job->sources = oct_alloc(job->n, sizeof(*job->sources));
    enum oct_err e = check_output(job, err);
    e = e ? e : refuse_unfinished(job, err);
    for (unsigned i = 0; i < job->n && !e; i++)
        e = oct_export_source_open(&job->open[i], &job->sources[i], job->inputs[i], &job->wish,
                                   err);
    if (!e && job->is_real)
        e = oct_identity_reveal(&job->sources[0].form, &job->person, job->inputs[0],
                                job->wish.config, err);
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
    const bool is_dicom = job->format == &oct_export_dicom;
    if (job->given.identity && !is_dicom)
        return oct_fail(err, OCT_E_ARG, "--identity is of DICOM; %s never says who it is",
                        job->format->name);
    job->is_real = job->is_real && is_dicom;
    return OCT_OK;
}

/* ---- the command line ---- */

static int read_dataset(const struct oct_export_given *g, struct oct_export_wish *w,
                        const char *name)
{
    static const char *const names[] = {"bscans", "spectra", "enface"};
    w->dataset = NULL;
    if (g->dataset) {
        const char *text = g->dataset + (g->dataset[0] == '/');
        const int i = oct_option_word(text, names, 3);
        w->dataset = i < 0 ? text : names[i];
        const char *part = strchr(text, '/');
        if (i < 0 && (!part || part == text || !part[1] || strchr(part + 1, '/')))
            return oct_command_misuse(name,
                                      "--dataset %s: it is bscans, spectra, enface or "
                                      "analysis/NAME; of octctl flow slabs/NAME, flow/NAME",
                                      g->dataset);
    }
    if (g->slab && (!w->dataset || strcmp(w->dataset, "enface") != 0))
        return oct_command_misuse(name, "--slab is of --dataset enface");
    w->has_slab = g->slab != NULL;
    return oct_picture_slab(name, g->slab, &w->slab);
}

static int read_sample(const struct oct_export_given *g, struct oct_export_wish *w,
                       const char *name)
{
    static const char *const names[] = {"u8", "f32"};
    const int i = oct_option_word(g->sample, names, 2);
    if (i < 0)
        return oct_command_misuse(name, "--sample %s: it is u8 or f32", g->sample);
    w->has_sample = g->sample != NULL;
    w->sample = i ? OCT_EXPORT_F32 : OCT_EXPORT_U8;
    return 0;
}

/* "MIN:MAX". */
static bool read_range(const char *text, double *lo, double *hi)
{
    char first[64];
    const size_t n = strcspn(text, ":");
    if (n >= sizeof(first) || text[n] != ':')
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    return oct_option_double(first, lo) && oct_option_double(text + n + 1, hi) && *lo < *hi;
}

/* Fills what the words say; .config, .work and what the format asks for come later. Returns the
 * exit status once it has said on stderr what is wrong. `name`: of the command. */
static int read_given(const struct oct_export_given *given, struct oct_export_wish *wish,
                      const char *name)
{
    *wish = (struct oct_export_wish){.um = {NAN, NAN, NAN}, .with_pseudonym = given->pseudonym};
    int status = read_dataset(given, wish, name);
    status = status ? status : read_sample(given, wish, name);
    if (status)
        return status;
    wish->has_range = given->range != NULL;
    if (given->range && !read_range(given->range, &wish->lo, &wish->hi))
        return oct_command_misuse(name, "--range needs two numbers, MIN:MAX, MIN the smaller one");
    status = oct_picture_eye(name, given->eye, false, &wish->eye);
    status = status ? status : oct_picture_frames(name, given->frames, NULL, &wish->frames);
    return status ? status : oct_picture_pixel_um(name, given->pixel_um, 3, wish->um);
}

#define AT(member) .at = offsetof(struct oct_export_given, member)
_Static_assert(OCT_EXPORT_OPTIONS_OF_DICOM == 4, "the first that archive send has, too");
const struct oct_option oct_export_options[] = {
    {"--to", "FORMAT",
     "ome-tiff, nifti, dicom, npy, mat or png (by the end of OUT: .ome.tif,\n"
     ".nii.gz, .nii, .dcm, .npy, .mat, .png, or / of a folder of PNG files)",
     OCT_OPTION_TEXT, AT(to), .words = OCT_WORDS_FORMATS},
    {"--sample", "TYPE", "u8 with the same limits everywhere, or f32, dB (as in the file)",
     OCT_OPTION_TEXT, AT(sample), .words = "u8 f32"},
    {"--pseudonym", NULL, "say the pseudonym too, in OME-TIFF, MATLAB and PNG; DICOM always does",
     OCT_OPTION_FLAG, AT(pseudonym)},
    {"--force", NULL, "replace OUT if it exists, once the new one is whole", OCT_OPTION_FLAG,
     AT(force)},
    {"--json", NULL, "print what was written as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--dataset", "NAME",
     "bscans, spectra, enface or analysis/NAME (bscans of a volume file, .vol and\n"
     "DICOM, spectra of any other recording, which has nothing else); of a file of\n"
     "octctl flow slabs/NAME, slabs/NAME_structure, flow/NAME, velocity/NAME (the\n"
     "first slab)",
     OCT_OPTION_TEXT, AT(dataset), .words = "bscans spectra enface"},
    {"--slab", "A:B",
     "of enface: the mean over the depths A to B (what\n"
     "analysis.enface_projection of the recording says)",
     OCT_OPTION_TEXT, AT(slab)},
    {OCT_PICTURE_FRAMES(struct oct_export_given, frames), .was = "--bscans"},
    {"--range", "MIN:MAX", "what 0 and 255 of u8 stand for (the limits of all B-scans together)",
     OCT_OPTION_TEXT, AT(range)},
    {"--pixel-um", "D[,L[,B]]",
     "micrometres from depth pixel to depth pixel, from A-line to A-line and\n"
     "from B-scan to B-scan; -: as the file says",
     OCT_OPTION_TEXT, AT(pixel_um), .was = "--spacing", .from_was = oct_picture_axes_reverse},
    {"--eye", "OD|OS", "of a recording that does not say it", OCT_OPTION_TEXT, AT(eye),
     .words = "OD OS"},
    {"--identity", "masked|real",
     "DICOM: the pseudonym alone and no date, or the patient whom octctl\n"
     "worklist or octctl identify has named, and when (dicom.identity)",
     OCT_OPTION_TEXT, AT(identity), .words = "masked real"},
    {NULL},
};

/* job: name, given, inputs, n and out are set. Returns the exit status. */
static int export_all(struct job *job, const struct oct_config *config, bool reports)
{
    struct oct_error err;
    int status = read_given(&job->given, &job->wish, job->name);
    if (!status && !oct_identity_option(job->given.identity, config, &job->is_real))
        status = oct_command_misuse(job->name, "--identity %s: it is masked or real",
                                    job->given.identity);
    if (status)
        return status;
    enum oct_err e = prepare(job, config, &err);
    e = e ? e : write_output(job, &err);
    if (!e && reports)
        report(job);
    return e ? oct_command_fail(job->name, &err) : 0;
}

static void close_all(struct job *job)
{
    for (unsigned i = 0; job->open && i < job->n; i++)
        oct_export_source_close(job->open[i]);
    free(job->open);
    free(job->sources);
}

int oct_export_as_dicom(const char *command, const struct oct_config *config,
                        const struct oct_export_given *given, const char *in, const char *out,
                        char pseudonym[OCT_LABEL_PSEUDONYM_BYTES], char what[64])
{
    struct job job = {.name = command, .given = *given, .inputs = &in, .n = 1, .out = out};
    job.given.to = "dicom";
    const int status = export_all(&job, config, false);
    if (!status) {
        snprintf(pseudonym, OCT_LABEL_PSEUDONYM_BYTES, "%s", job.sources[0].form.pseudonym);
        snprintf(what, 64, "%.63s", job.sources[0].form.name);
    }
    close_all(&job);
    return status;
}

static int run_export(struct oct_config *config, int argc, char **argv)
{
    struct job job = {.name = argv[0]};
    int status = oct_options_read(&oct_command_export, &job.given, &argc, argv);
    if (status)
        return status;
    job.inputs = (const char *const *)(argv + 1);
    job.n = (unsigned)argc - 2;
    job.out = argv[argc - 1];
    status = export_all(&job, config, true);
    close_all(&job);
    return status;
}

const struct oct_command oct_command_export = {
    .name = "export",
    .usage = "IN... OUT",
    .help = "writes a recording, .vol, DICOM or flow as OME-TIFF, NIfTI, DICOM, .npy, .mat or PNG",
    .options = oct_export_options,
    .n_least = 2,
    .n_most = MOST_INPUTS + 1,
    .too_few = "two files are needed: the recording and the output",
    .run = run_export,
};
