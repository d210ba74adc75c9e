/* octctl calibrate kmap: the k map and the dispersion phase of a spectrometer from recordings of a
 * mirror, as files that octd takes, with a picture of every step. */
#include "tools/analyse/calibrate_kmap.h"

#include "formats/result_files.h"
#include "pipeline/base/utf8.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUCH_RAD 0.1 /* of a mirror's residual */
#define LITTLE_COHERENCE 0.7
#define MUCH_WIDER 1.05 /* than the limit */

/* ---- what is found ---- */

#define J struct oct_kmap_job
#define OVER "dispersion_over_spectrum."
static const struct oct_result_field kmap_fields[] = {
    {OCT_RESULT("folder", J, job.out)},
    {OCT_RESULT("samples", J, geometry.n_samples)},
    {OCT_RESULT("order", J, kmap.order)},
    {OCT_RESULT("residual_rad", J, kmap.rms_rad)},
    {OCT_RESULT("curved_px", J, curved_px)},
    {OCT_RESULT("light_first", J, kmap.first)},
    {OCT_RESULT("light_last", J, kmap.last)},
    {OCT_RESULT("has_dispersion", J, kmap.has_theta)},
    {OCT_RESULT(OVER "a2", J, coefficient[2])},
    {OCT_RESULT(OVER "a3", J, coefficient[3])},
    {OCT_RESULT(OVER "a4", J, coefficient[4])},
    {OCT_RESULT(OVER "a5", J, coefficient[5])},
    {OCT_RESULT(OVER "residual_rad", J, coefficient_rms_rad)},
    {OCT_RESULT("before", J, before_text)},
    {OCT_RESULT("axial_um", J, axial_um)},
    {OCT_RESULT("axial_residual_um", J, axial_rms_um)},
    {OCT_RESULT("axial_error", J, axial_error)},
    {OCT_RESULT("axial_text", J, axial_text), .not_in = OCT_RESULT_JSON},
};
#undef J
static const struct oct_result_fields all_kmap_fields = OCT_RESULT_FIELDS(kmap_fields);

#define F struct oct_kmap_file
static const struct oct_result_field mirror_fields[] = {
    {OCT_RESULT("file", F, path)},
    {OCT_RESULT("lines", F, n_lines)},
    {OCT_RESULT("position_um", F, position_um)},
    {OCT_RESULT("position_off_um", F, off_um)},
    {OCT_RESULT("side", F, side)},
    {OCT_RESULT("cycles", F, cycles)},
    {OCT_RESULT("contrast_db", F, contrast_db)},
    {OCT_RESULT("coherence", F, coherence)},
    {OCT_RESULT("residual_rad", F, residual_rad)},
    {OCT_RESULT("depth_px", F, peak.depth_px)},
    {OCT_RESULT("snr_db", F, peak.snr_db)},
    {OCT_RESULT("side_lobe_db", F, peak.side_lobe_db)},
    {OCT_RESULT("width_before_px", F, before_fwhm_px)},
    {OCT_RESULT("width_px", F, peak.fwhm_px)},
    {OCT_RESULT("limit_px", F, limit_px)},
    {OCT_RESULT("ratio", F, ratio)},
    {OCT_RESULT("width_before_um", F, before_fwhm_um)},
    {OCT_RESULT("width_um", F, fwhm_um)},
    {OCT_RESULT("limit_um", F, limit_um)},
};
#undef F
static const struct oct_result_fields all_mirror_fields = OCT_RESULT_FIELDS(mirror_fields);

/* ---- what was asked for ---- */

static int read_sides(struct oct_kmap_job *k)
{
    const char *text = k->given.sides;
    if (!text)
        return 0;
    for (uint32_t m = 0; m < k->n; m++) {
        if (text[m] != '+' && text[m] != '-')
            return oct_command_misuse(
                k->job.name, "--sides %s: needs a + or - for each of %u mirrors", text, k->n);
        k->sides[m] = text[m] == '+' ? 1 : -1;
    }
    if (text[k->n])
        return oct_command_misuse(k->job.name, "--sides %s: there are %u mirrors", text, k->n);
    k->setup.sides = k->sides;
    return 0;
}

static int read_positions(struct oct_kmap_job *k)
{
    const char *text = k->given.positions;
    bool are_alike = true;
    if (!text)
        return 0;
    if (oct_option_doubles(text, k->positions_um, OCT_KMAP_MOST_MIRRORS) != k->n)
        return oct_command_misuse(
            k->job.name, "--positions %s: needs %u numbers, one for each mirror", text, k->n);
    for (uint32_t m = 1; m < k->n; m++)
        are_alike = are_alike && k->positions_um[m] == k->positions_um[0];
    if (k->n > 1 && are_alike)
        return oct_command_misuse(k->job.name, "--positions %s: the mirrors stand at one place",
                                  text);
    k->has_positions = true;
    return 0;
}

static int read_given(void *job)
{
    struct oct_kmap_job *k = job;
    k->n = k->job.n_inputs;
    k->setup.order = (unsigned)k->given.order;
    int status = read_positions(k);
    status = status ? status : oct_picture_span(k->job.name, "--lines", k->given.lines, &k->lines);
    return status ? status : read_sides(k);
}

/* ---- files ---- */

static void put_kmap(const void *job, FILE *file)
{
    const struct oct_calibration *cal = &((const struct oct_kmap_job *)job)->cal;
    fprintf(file, "# camera coordinates (px, from 0) of %zu equal steps in k\n", cal->n_kmap);
    for (size_t i = 0; i < cal->n_kmap; i++)
        fprintf(file, "%.9g\n", cal->kmap_px[i]);
}

static void put_phase(const void *job, FILE *file)
{
    const struct oct_calibration *cal = &((const struct oct_kmap_job *)job)->cal;
    fprintf(file, "# exp(-i theta), re im, on the %zu steps in k that kmap.txt gives\n",
            cal->n_dispersion);
    for (size_t i = 0; i < cal->n_dispersion; i++)
        fprintf(file, "%.9g %.9g\n", cal->dispersion[2 * i], cal->dispersion[2 * i + 1]);
}

static void put_ini(const void *job, FILE *file)
{
    const struct oct_kmap_job *k = job;
    fprintf(file, "; made by octctl calibrate kmap from");
    for (uint32_t m = 0; m < k->n; m++) {
        putc(' ', file);
        oct_command_put_name(file, oct_job_base(k->job.inputs[m]));
    }
    fprintf(file, "\n[camera]\nsamples = %u\n\n[calibration]\nkmap = kmap.txt\n",
            k->geometry.n_samples);
    if (k->kmap.has_theta) {
        fprintf(file,
                "dispersion = dispersion.txt\n"
                "; in its place, but for a shift of all depths (%.4f rad rms):\n"
                ";dispersion_over = spectrum\n",
                k->coefficient_rms_rad);
        for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
            fprintf(file, ";dispersion_a%u = %.6f\n", m, k->coefficient[m]);
    }
    if (isfinite(k->axial_um))
        fprintf(file, "\n[scan]\n; %s\naxial_um = %.6g\n", k->axial_text, k->axial_um);
}

static void fill_json(const void *job, cJSON *tree)
{
    const struct oct_kmap_job *k = job;
    const struct oct_result_rows rows = {.fields = &all_mirror_fields,
                                         .n = k->n,
                                         .row_bytes = sizeof(*k->files),
                                         .context = k->files};
    oct_result_json(tree, &all_kmap_fields, k);
    oct_result_json_rows(tree, "mirrors", &rows);
}

static void put_json(const void *job, FILE *file)
{
    cJSON *tree = cJSON_CreateObject();
    fill_json(job, tree);
    char *text = cJSON_Print(tree);
    oct_utf8_repair(text);
    fprintf(file, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(tree);
}

#define WRITER(name, put)                                                                          \
    static enum oct_err name(void *job, const char *path, bool force, struct oct_error *err)       \
    {                                                                                              \
        (void)force;                                                                               \
        return oct_outputs_print(path, put, job, err);                                             \
    }
WRITER(write_kmap, put_kmap)
WRITER(write_phase, put_phase)
WRITER(write_ini, put_ini)
WRITER(write_json, put_json)
#undef WRITER

static enum oct_err make_folder(struct oct_kmap_job *k, unsigned i, const char *folder,
                                struct oct_error *err)
{
    if (!folder)
        return OCT_OK;
    if (mkdir(folder, 0777) == 0)
        k->made[i] = folder;
    else if (errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot make the folder", folder);
    return OCT_OK;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    static const struct {
        const char *name;
        oct_output_writer *write;
    } files[] = {{"calibration.ini", write_ini},
                 {"kmap.txt", write_kmap},
                 {"report.json", write_json},
                 {"dispersion.txt", write_phase}};
    struct oct_kmap_job *k = job;
    const char *folder = k->job.out;
    for (unsigned i = 0; i < (k->n > 1 ? 4 : 3); i++) /* one mirror has no dispersion */
        oct_job_add(&k->job, oct_alloc_text("%s/%s", folder, files[i].name), files[i].write, k);
    oct_kmap_list_pictures(k, k->given.pictures ? k->given.pictures : folder);
    for (unsigned i = 0; i < k->n_pictures; i++)
        oct_job_add(&k->job, k->pictures[i].path, oct_kmap_draw, &k->pictures[i]);
    const enum oct_err e = make_folder(k, 0, folder, err);
    return e ? e : make_folder(k, 1, k->given.pictures, err);
}

static enum oct_err calibrate(void *job, struct oct_error *err)
{
    return oct_kmap_run(job, err);
}

/* ---- what is said ---- */

static void print_px_um(double px, double um)
{
    if (isnan(px))
        printf("  %16s", "-");
    else if (isnan(um))
        printf("  %9.3f px    ", px);
    else
        printf("  %6.2f (%6.2f)", px, um);
}

static void print_mirrors(const struct oct_kmap_job *k)
{
    const char *unit = isnan(k->axial_um) ? "" : " px (um)";
    printf("mirror  depth px  side  residual  width before%s  after%s  limit%s  ratio  file\n",
           unit, unit, unit);
    for (uint32_t m = 0; m < k->n; m++) {
        const struct oct_kmap_file *f = &k->files[m];
        printf("%6u  %8.2f  %4s  %8.4f", m + 1, f->peak.depth_px, f->side > 0 ? "+" : "-",
               f->residual_rad);
        print_px_um(f->before_fwhm_px, f->before_fwhm_um);
        print_px_um(f->peak.fwhm_px, f->fwhm_um);
        print_px_um(f->limit_px, f->limit_um);
        printf("  %.4f  %s\n", f->ratio, oct_job_base(f->path));
    }
}

static void print_dispersion(const struct oct_kmap_job *k)
{
    const char *before = ":";
    printf("dispersion");
    if (!k->kmap.has_theta) {
        printf(": taken as none, with one depth; a second one parts it from the k map\n");
        return;
    }
    for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        if (k->coefficient[m] != 0) {
            printf("%s a%u = %.4f", before, m, k->coefficient[m]);
            before = ",";
        }
    printf(" rad over the spectrum, which leave %.4f rad rms\n", k->coefficient_rms_rad);
}

static void print_all(const void *job)
{
    const struct oct_kmap_job *k = job;
    const bool has_rms = k->axial_error <= OCT_KMAP_MOST_AXIAL_ERROR;
    oct_result_print(stdout,
                     "k map: order {order}, {curved_px:.3f} px from a straight line at most, "
                     "residual {residual_rad:.4f} rad rms\n",
                     &all_kmap_fields, k);
    print_dispersion(k);
    printf("before: %s\n", k->before_text);
    print_mirrors(k);
    oct_result_print(stdout,
                     "[axial scale: {axial_um:.5f} um of optical path a depth pixel, {axial_text}]",
                     &all_kmap_fields, k);
    if (has_rms)
        oct_result_print(stdout, "[, which lie {axial_residual_um:.3f} um rms off a straight line]",
                         &all_kmap_fields, k);
    printf("%stake it: octd --config %s/calibration.ini\n", isnan(k->axial_um) ? "" : "\n",
           k->job.out);
}

/* On no line with the depths, positions are of other files, or no um of optical path. */
static void warn_of_positions(const struct oct_kmap_job *k)
{
    if (k->axial_error > OCT_KMAP_MOST_AXIAL_ERROR)
        fprintf(stderr,
                "octctl %s: --positions lie %.3g um rms off a straight line over depth, their "
                "scale is known to %.2g %% (%g at most): none is written from them; are they in "
                "the order of the files, in um of optical path?\n",
                k->job.name, k->axial_rms_um, 100 * k->axial_error,
                100 * OCT_KMAP_MOST_AXIAL_ERROR);
}

static void warn_of_all(const void *job)
{
    const struct oct_kmap_job *k = job;
    const char *command = k->job.name;
    warn_of_positions(k);
    for (uint32_t m = 0; m < k->n; m++) {
        const struct oct_kmap_file *f = &k->files[m];
        const char *name = oct_job_base(f->path);
        if (f->side < 0)
            fprintf(stderr,
                    "octctl %s: mirror %u (%s) lies on the other side of zero delay; its width is "
                    "that with the dispersion turned around, the pictures show it blurred\n",
                    command, m + 1, name);
        if (f->coherence < LITTLE_COHERENCE)
            fprintf(stderr,
                    "octctl %s: the A-lines of mirror %u (%s) agree to %.0f %% only: it moves, or "
                    "is tilted along the scan; --lines A:B takes a part of each B-scan\n",
                    command, m + 1, name, 100 * f->coherence);
        if (f->residual_rad > MUCH_RAD)
            fprintf(stderr,
                    "octctl %s: the fit leaves %.2f rad of mirror %u (%s); look at residuals.png\n",
                    command, f->residual_rad, m + 1, name);
        else if (f->ratio > MUCH_WIDER)
            fprintf(stderr, "octctl %s: mirror %u (%s) is %.0f %% wider than its limit\n", command,
                    m + 1, name, 100 * (f->ratio - 1));
    }
}

/* ---- the command ---- */

static void finish_kmap(void *job)
{
    struct oct_kmap_job *k = job;
    for (unsigned i = 2; i-- > 0;)
        if (k->made[i])
            rmdir(k->made[i]); /* which fails if there is something in it */
}

#define AT(member) .at = offsetof(struct oct_kmap_given, member)
static const struct oct_option options[] = {
    {"--positions", "UM,UM", "where each mirror stands, in um of optical path: the axial scale",
     OCT_OPTION_TEXT, AT(positions), .needs = "a number of um for each mirror"},
    {"--sides", "++-",
     "on which side of zero delay each mirror lies (found with three or more\n"
     "mirrors, else all on one side)",
     OCT_OPTION_TEXT, AT(sides), .needs = "a + or - for each mirror"},
    {"--lines", "A:B[:STEP]", "of each B-scan from A-line A to just before B, every STEP-th (all)",
     OCT_OPTION_TEXT, AT(lines)},
    {"--order", "N", "of the polynomials, 1 to 12 (as high as the residual falls)",
     OCT_OPTION_COUNT, AT(order), .least = OCT_KMAP_LEAST_ORDER, .most = OCT_KMAP_MOST_ORDER},
    {"--pictures", "D", "write the pictures into the folder D (into FOLDER)", OCT_OPTION_TEXT,
     AT(pictures), .words = OCT_WORDS_FOLDERS},
    OCT_JOB_JSON(struct oct_kmap_given, job),
    OCT_JOB_FORCE(struct oct_kmap_given, job),
    {NULL},
};

static const struct oct_job_ops kmap_job = {
    .command = &oct_command_calibrate_kmap,
    .bytes = sizeof(struct oct_kmap_job),
    .values = offsetof(struct oct_kmap_job, given),
    .options = offsetof(struct oct_kmap_job, given.job),
    .takes_names = true,
    .read = read_given,
    .list = list_files,
    .work = calibrate,
    .warn = warn_of_all,
    .print = print_all,
    .json = fill_json,
    .finish = finish_kmap,
};

static int run_kmap(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&kmap_job, config, argc, argv);
}

const struct oct_command oct_command_calibrate_kmap = {
    .name = "calibrate kmap",
    .usage = "MIRROR... FOLDER",
    .help = "finds k map and dispersion phase from recordings of a mirror at several depths",
    .options = options,
    .n_least = 2,
    .n_most = OCT_KMAP_MOST_MIRRORS + 1,
    .too_few = "which mirrors, and which folder is the calibration for?",
    .too_many = "more than 64 mirrors:",
    .run = run_kmap,
};
