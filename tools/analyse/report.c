/* octctl report: a recording on one page. */
#include "tools/analyse/report.h"

#include "analysis/quality/sight.h"
#include "formats/result_files.h"
#include "formats/whole_file.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/outputs.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), n_end = strlen(end);
    return n > n_end && strcmp(path + n - n_end, end) == 0;
}

static int read_format(struct oct_report_job *r)
{
    static const char *const names[] = {"pdf", "dicom"};
    const char *out = r->s.job.out;
    const bool is_dicom = ends_in(out, ".dcm") || ends_in(out, ".dicom");
    const int i = r->given.to ? oct_option_word(r->given.to, names, 2) : is_dicom;
    if (i < 0)
        return oct_command_misuse(r->s.job.name, "--to %s: it is pdf or dicom", r->given.to);
    if (!r->given.to && !is_dicom && !ends_in(out, ".pdf"))
        return oct_command_misuse(
            r->s.job.name, "%s: a report is named *.pdf, or *.dcm; or --to says what it is", out);
    r->is_dicom = i == 1;
    r->format = names[i];
    return 0;
}

static int read_options(void *job)
{
    struct oct_report_job *r = job;
    struct oct_surfaces_job *s = &r->s;
    uint64_t bscan = 0;
    s->given.eye = r->given.eye;
    int status = oct_surfaces_read_options(s);
    if (!status && !oct_identity_option(r->given.identity, s->job.config, &r->is_real))
        status = oct_command_misuse(s->job.name, "--identity %s: it is masked or real",
                                    r->given.identity);
    status = status ? status : read_format(r);
    if (!status && r->given.bscan &&
        (!oct_option_u64(r->given.bscan, &bscan) || bscan > UINT32_MAX))
        status = oct_command_misuse(s->job.name, "--bscan needs a number, from 0 on");
    r->bscan = (uint32_t)bscan;
    r->identity = oct_config_identity_names[r->is_real];
    if (!status && s->job.n_inputs > 1 + OCT_REPORT_MOST_RESULTS)
        status = oct_command_misuse(s->job.name, "more than %u files of results",
                                    OCT_REPORT_MOST_RESULTS);
    for (; !status && r->n_results + 1 < s->job.n_inputs; r->n_results++)
        s->job.reads[r->n_results] = r->results[r->n_results] = s->job.inputs[r->n_results + 1];
    s->job.n_inputs = 1;
    return status;
}

/* ---- pictures from above ---- */

static enum oct_err open_enface(struct oct_report_job *r, struct oct_report_enface *of,
                                const char *path, const char *dataset, struct oct_error *err)
{
    const struct oct_export_wish wish = {.dataset = dataset,
                                         .has_sample = true,
                                         .sample = OCT_EXPORT_F32,
                                         .um = {NAN, NAN, NAN},
                                         .eye = r->s.choice.eye ? r->s.eye_name : NULL,
                                         .with_pseudonym = true,
                                         .config = r->s.job.config,
                                         .work = &r->work};
    const struct oct_export_form *form = &of->source.form;
    enum oct_err e = oct_export_source_open(&of->open, &of->source, path, &wish, err);
    if (e)
        return e;
    of->values = oct_alloc((size_t)form->dims[1] * form->dims[2], sizeof(*of->values));
    e = of->source.read(of->source.context, 0, of->values, err);
    const bool is_gridded = strcmp(form->axes[1], "y") == 0 && strcmp(form->axes[2], "x") == 0;
    if (!e && (form->dims[0] != 1 || (form->dims[2] != r->s.n_lines && !is_gridded)))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s is no picture from above of %u A-lines, as %s",
                     path, dataset, r->s.n_lines, r->s.job.inputs[0]);
    const char *name = strrchr(dataset, '/');
    snprintf(of->name, sizeof(of->name), "%s", name ? name + 1 : dataset);
    return e;
}

/* Of a recording without a file of octctl flow what octd recorded; it may have nothing. */
static void open_recorded(struct oct_report_job *r)
{
    struct oct_report_enface *of = &r->angiogram[0];
    if (r->n_angiograms > 0)
        return;
    if (open_enface(r, of, r->s.job.inputs[0], "analysis/angiogram", NULL) == OCT_OK) {
        const char *slab = of->source.form.slab;
        snprintf(of->name, sizeof(of->name), "%s", slab && slab[0] ? slab : "recorded");
        r->n_angiograms = 1;
        return;
    }
    oct_export_source_close(of->open);
    free(of->values);
    *of = (struct oct_report_enface){.open = NULL};
}

/* ---- results ---- */

/* That they say to be of another recording. */
static enum oct_err check_source(const struct oct_report_job *r, const char *path,
                                 const struct oct_contents *contents, struct oct_error *err)
{
    const char *of = contents->root.source_crc32c, *in = r->s.job.inputs[0];
    if (!of[0] || strcmp(of, "-") == 0 || strcmp(of, r->crc32c) == 0 ||
        strcmp(of, r->input_crc32c) == 0)
        return OCT_OK;
    return oct_fail(
        err, OCT_E_FORMAT,
        "%s: was not made of %s: its source had the CRC-32C %s, and this has %s; if it "
        "is the same recording, whose label was changed or which was packed since, make "
        "the results anew",
        path, in, of, r->crc32c);
}

static enum oct_err open_slabs(struct oct_report_job *r, const char *path,
                               const struct oct_contents *contents, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < contents->n && !e; i++) {
        const char *name = contents->datasets[i].name.text;
        if (strncmp(name, "/slabs/", 7) != 0 || ends_in(name, "_structure") ||
            r->n_angiograms == OCT_REPORT_MOST_ANGIOGRAMS)
            continue;
        e = open_enface(r, &r->angiogram[r->n_angiograms++], path, name + 1, err);
    }
    return e;
}

static enum oct_err open_result(struct oct_report_job *r, const char *path, struct oct_error *err)
{
    struct oct_contents contents;
    enum oct_err e = oct_contents_look(&contents, path, err);
    const bool is_flow = !e && strcmp(contents.kind, "flow") == 0;
    const bool is_layers = !e && strcmp(contents.kind, "layers") == 0 && !r->layers_path;
    if (!e && !is_flow && !is_layers)
        e = oct_fail(err, OCT_E_FORMAT,
                     "%s: %s; a report takes one file of octctl surfaces, and octctl flow's", path,
                     contents.words);
    e = e ? e : check_source(r, path, &contents, err);
    if (!e && is_flow)
        e = open_slabs(r, path, &contents, err);
    if (e || !is_layers) {
        oct_contents_finish(&contents);
        return e;
    }
    r->layers = contents;
    r->layers_path = path;
    return OCT_OK;
}

static enum oct_err open_results(struct oct_report_job *r, struct oct_error *err)
{
    const char *in = r->s.job.inputs[0];
    struct oct_contents contents;
    enum oct_err e = OCT_OK;
    oct_outputs_sum(in, r->crc32c);
    r->crc32c_text = r->crc32c;
    if (r->n_results > 0 && oct_contents_look(&contents, in, NULL) == OCT_OK)
        snprintf(r->input_crc32c, sizeof(r->input_crc32c), "%s", contents.root.input_crc32c);
    if (r->n_results > 0)
        oct_contents_finish(&contents);
    for (unsigned i = 0; i < r->n_results && !e; i++)
        e = open_result(r, r->results[i], err);
    return e;
}

/* ---- layers ---- */

static enum oct_err get_layers(struct oct_report_job *r, struct oct_error *err)
{
    struct oct_surfaces_job *s = &r->s;
    const char *eye = r->layers.root.eye;
    if (s->eye == OCT_SURFACES_EYE_UNKNOWN && r->layers_path && (eye[0] == 'O' && eye[1])) {
        s->eye = eye[1] == 'D' ? OCT_SURFACES_EYE_OD : OCT_SURFACES_EYE_OS;
        s->eye_name = eye[1] == 'D' ? "OD" : "OS";
    }
    r->layers_from = r->layers_path ? "file" : "found";
    enum oct_err e = r->layers_path ? oct_surfaces_load_layers(s, r->layers_path, &r->layers, err)
                                    : oct_surfaces_find_layers(s, err);
    return e ? e : oct_surfaces_measure(s, err);
}

/* The mean over all B-scans of what octview shows of each, so far as pictures alone say it; of a
 * retina. */
static enum oct_err judge_quality(struct oct_report_job *r, struct oct_error *err)
{
    struct oct_surfaces_job *s = &r->s;
    double index = 0, signal_db = 0, place = 0, n = 0;
    enum oct_err e = OCT_OK;
    r->quality = r->signal_db = r->place = NAN;
    const bool can_be = s->is_db && s->thickness[0].n_known > 0;
    for (uint32_t b = 0; b < s->n_bscans && can_be && !e; b++) {
        struct oct_picture picture;
        struct oct_sight sight;
        e = oct_surfaces_read(s, b, &picture, err);
        if (e)
            return e;
        for (size_t i = 0; i < (size_t)picture.height * picture.width; i++)
            picture.pixels[i] = oct_picture_is_valid(&picture, i) ? picture.pixels[i] : NAN;
        const struct oct_sight_picture from = {.pixels = picture.pixels,
                                               .type = OCT_SAMPLE_F32,
                                               .n_lines = picture.height,
                                               .depth = picture.width,
                                               .log = true};
        if (oct_sight_of(&from, &sight)) {
            const double part = oct_sight_place(&sight).part;
            index += 10 * oct_sight_signal(&sight) * (isnan(part) ? 1 : part);
            place += isnan(part) ? 1 : part;
            signal_db += sight.signal_db;
            n++;
        }
        oct_picture_finish(&picture);
    }
    if (n > 0) {
        r->quality = index / n;
        r->signal_db = signal_db / n;
        r->place = place / n;
    }
    return e;
}

/* Of the fovea, else the middle one. */
static enum oct_err choose_bscan(struct oct_report_job *r, struct oct_error *err)
{
    const struct oct_surfaces_job *s = &r->s;
    if (r->given.bscan && r->bscan >= s->n_bscans)
        return oct_fail(err, OCT_E_CONFIG, "--bscan %u: %s has 0 to %u", r->bscan, s->job.inputs[0],
                        s->n_bscans - 1);
    if (!r->given.bscan)
        r->bscan = s->grid.is_measured
                       ? (uint32_t)fmin(fmax(0, round(s->grid.fovea_px[0])), s->n_bscans - 1.0)
                       : s->n_bscans / 2;
    return OCT_OK;
}

/* ---- the work ---- */

static enum oct_err gather_parts(void *job, struct oct_error *err)
{
    struct oct_report_job *r = job;
    struct oct_surfaces_job *s = &r->s;
    r->work = (struct oct_export_options){.cancel = s->job.cancel};
    enum oct_err e = oct_surfaces_open(s, err);
    e = e ? e : open_enface(r, &r->enface, s->job.inputs[0], "enface", err);
    e = e ? e : open_results(r, err);
    if (!e && r->is_real)
        e = oct_identity_reveal(&r->enface.source.form, &r->person, s->job.inputs[0], s->job.config,
                                err);
    if (e)
        return e;
    open_recorded(r);
    e = get_layers(r, err);
    e = e ? e : judge_quality(r, err);
    e = e ? e : choose_bscan(r, err);
    r->eye = r->enface.source.form.eye = s->eye_name;
    return e;
}

static enum oct_err write_report(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_report_job *r = job;
    struct oct_export_form form = r->enface.source.form;
    struct oct_whole_file file;
    unsigned char *pdf = NULL;
    size_t n = 0;
    form.name = "report";
    enum oct_err e = oct_report_draw(r, &pdf, &n, err);
    if (!e && r->is_dicom) {
        e = oct_export_pdf_as_dicom(path, force, &form, "OCT report", pdf, n, err);
    } else if (!e) {
        e = oct_whole_file_open(&file, path, force, err);
        e = e ? e : oct_whole_file_end(&file, oct_whole_file_put(&file, pdf, n, err), err);
    }
    free(pdf);
    return e;
}

static enum oct_err list_file(void *job, struct oct_error *err)
{
    struct oct_report_job *r = job;
    (void)err;
    oct_job_add(&r->s.job, r->s.job.out, write_report, r);
    return OCT_OK;
}

static void close_all(void *job)
{
    struct oct_report_job *r = job;
    for (unsigned i = 0; i < OCT_REPORT_MOST_ANGIOGRAMS; i++) {
        oct_export_source_close(r->angiogram[i].open);
        free(r->angiogram[i].values);
    }
    oct_export_source_close(r->enface.open);
    free(r->enface.values);
    oct_contents_finish(&r->layers);
    oct_surfaces_close(&r->s);
}

/* ---- what is said ---- */

#define R struct oct_report_job
static const struct oct_result_field report_rows[] = {
    {OCT_RESULT("out", R, s.job.out)},
    {OCT_RESULT("format", R, format)},
    {OCT_RESULT("identity", R, identity)},
    {OCT_RESULT("eye", R, eye)},
    {OCT_RESULT("bscan", R, bscan)},
    {OCT_RESULT("quality", R, quality)},
    {OCT_RESULT("signal_db", R, signal_db)},
    {OCT_RESULT("place", R, place)},
    {OCT_RESULT("layers", R, layers_from)},
    {OCT_RESULT("retina_known", R, s.thickness[0].known)},
    {OCT_RESULT("etdrs", R, s.grid.is_measured)},
    {OCT_RESULT("tsnit", R, s.circle.is_measured)},
    {OCT_RESULT("angiograms", R, n_angiograms)},
    {OCT_RESULT("source_crc32c", R, crc32c_text)},
    {OCT_RESULT("seconds", R, s.job.seconds)},
};
#undef R
static const struct oct_result_fields report_fields = OCT_RESULT_FIELDS(report_rows);

static void print_report(const void *job)
{
    oct_result_print(stdout,
                     "{out}: B-scan {bscan}, layers in {100*retina_known:.1f} %[, quality "
                     "{quality:.0f} of 10][, ETDRS{etdrs?}][, nerve fibres{tsnit?}], {angiograms} "
                     "angiogram{angiograms:s}, {seconds:.1f} s\n",
                     &report_fields, job);
}

static void report_json(const void *job, struct cJSON *tree)
{
    oct_result_json(tree, &report_fields, job);
}

#define AT(member) .at = offsetof(struct oct_report_options, member)
static const struct oct_option options[] = {
    {"--identity", "masked|real",
     "the pseudonym alone and no date, or the patient whom octctl worklist or\n"
     "octctl identify has named, and when (dicom.identity)",
     OCT_OPTION_TEXT, AT(identity), .words = "masked real"},
    {"--eye", "OD|OS", "of a recording that does not say it", OCT_OPTION_TEXT, AT(eye),
     .words = "OD OS"},
    {"--bscan", "N", "the B-scan that is shown, from 0 (that of the fovea, else the middle one)",
     OCT_OPTION_TEXT, AT(bscan)},
    {"--to", "FORMAT", "pdf, or dicom: the PDF for the archive (by the end of OUT: .pdf, .dcm)",
     OCT_OPTION_TEXT, AT(to), .words = "pdf dicom"},
    OCT_JOB_JSON(struct oct_report_options, job),
    OCT_JOB_FORCE(struct oct_report_options, job),
    {NULL},
};

static const struct oct_job_ops report_job = {
    .command = &oct_command_report,
    .bytes = sizeof(struct oct_report_job),
    .values = offsetof(struct oct_report_job, given),
    .options = offsetof(struct oct_report_job, given.job),
    .takes_names = true,
    .progress = "B-scans",
    .init = oct_surfaces_init,
    .read = read_options,
    .list = list_file,
    .work = gather_parts,
    .print = print_report,
    .json = report_json,
    .finish = close_all,
};

static int run_report(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&report_job, config, argc, argv);
}

const struct oct_command oct_command_report = {
    .name = "report",
    .usage = "IN [RESULTS.h5...] OUT.pdf",
    .help = "prints a recording on one page: layers, thickness, angiograms, as PDF or DICOM",
    .options = options,
    .n_least = 2,
    .n_most = 2 + OCT_REPORT_MOST_RESULTS,
    .too_few = "which recording, and which OUT.pdf?",
    .run = run_report,
};
