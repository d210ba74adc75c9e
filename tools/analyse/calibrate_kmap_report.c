#include "tools/analyse/calibrate_kmap_report.h"

#include "formats/whole_file.h"
#include "pipeline/base/utf8.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUCH_RAD 0.1 /* of a mirror's residual */
#define LITTLE_COHERENCE 0.7
#define MUCH_WIDER 1.05 /* than the limit */

const char *oct_kmap_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static double before_um(const struct oct_kmap_run *run, const struct oct_kmap_file *file)
{
    /* Depths before and after are those of one place, on two scales. */
    return file->before_fwhm_px * run->axial_um * file->peak.depth_px / file->before_px;
}

/* ---- lines ---- */

static void print_coefficients(const struct oct_kmap_run *run)
{
    if (!run->kmap.has_theta) {
        printf("dispersion: taken as none, with one depth; a second one parts it from the k map\n");
        return;
    }
    printf("dispersion:");
    for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        if (run->coefficient[m] != 0)
            printf("%s a%u = %.4f", m > 2 ? "," : "", m, run->coefficient[m]);
    printf(" rad over the spectrum, which leave %.4f rad rms\n", run->coefficient_rms_rad);
}

static void print_px_um(double px, double um)
{
    if (isnan(px))
        printf("  %16s", "-");
    else if (isnan(um))
        printf("  %9.3f px    ", px);
    else
        printf("  %6.2f (%6.2f)", px, um);
}

static void print_mirrors(const struct oct_kmap_run *run)
{
    const double um = run->axial_um;
    const char *unit = isnan(um) ? "" : " px (um)";
    printf("mirror  depth px  side  residual  width before%s  after%s  limit%s  ratio  file\n",
           unit, unit, unit);
    for (uint32_t m = 0; m < run->n; m++) {
        const struct oct_kmap_file *f = &run->files[m];
        printf("%6u  %8.2f  %4s  %8.4f", m + 1, f->peak.depth_px,
               run->kmap.mirrors[m].side > 0 ? "+" : "-", run->kmap.mirrors[m].rms_rad);
        print_px_um(f->before_fwhm_px, before_um(run, f));
        print_px_um(f->peak.fwhm_px, f->peak.fwhm_px * um);
        print_px_um(f->limit_px, f->limit_px * um);
        printf("  %.4f  %s\n", f->peak.fwhm_px / f->limit_px, oct_kmap_file_name(f->path));
    }
}

void oct_kmap_print(const struct oct_kmap_report *report)
{
    const struct oct_kmap_run *run = report->run;
    printf("k map: order %u, %.3f px from a straight line at most, residual %.4f rad rms\n",
           run->kmap.order, run->curved_px, run->kmap.rms_rad);
    print_coefficients(run);
    printf("before: %s\n", run->before_text);
    print_mirrors(run);
    if (!isnan(run->axial_um)) {
        printf("axial scale: %.5f um of optical path a depth pixel, %s", run->axial_um,
               run->axial_text);
        if (run->axial_error <= OCT_KMAP_MOST_AXIAL_ERROR)
            printf(", which lie %.3f um rms off a straight line", run->axial_rms_um);
        printf("\n");
    }
    printf("take it: octd --config %s/calibration.ini\n", report->folder);
}

/* On no line with the depths, positions are of other files, or no um of optical path. */
static void warn_of_positions(const struct oct_kmap_run *run, const char *name)
{
    if (run->axial_error > OCT_KMAP_MOST_AXIAL_ERROR)
        fprintf(stderr,
                "octctl %s: --positions lie %.3g um rms off a straight line over depth, their "
                "scale is known to %.2g %% (%g at most): none is written from them; are they in "
                "the order of the files, in um of optical path?\n",
                name, run->axial_rms_um, 100 * run->axial_error, 100 * OCT_KMAP_MOST_AXIAL_ERROR);
}

void oct_kmap_warn(const struct oct_kmap_report *report, const char *name)
{
    const struct oct_kmap_run *run = report->run;
    warn_of_positions(run, name);
    for (uint32_t m = 0; m < run->n; m++) {
        const struct oct_kmap_file *f = &run->files[m];
        const char *file = oct_kmap_file_name(f->path);
        if (run->kmap.mirrors[m].side < 0)
            fprintf(stderr,
                    "octctl %s: mirror %u (%s) lies on the other side of zero delay; its width is "
                    "that with the dispersion turned around, the pictures show it blurred\n",
                    name, m + 1, file);
        if (run->fringes[m].coherence < LITTLE_COHERENCE)
            fprintf(
                stderr,
                "octctl %s: the A-lines of mirror %u (%s) agree to %.0f %% only: it moves, or is "
                "tilted along the scan; --lines A:B takes a part of each B-scan\n",
                name, m + 1, file, 100 * run->fringes[m].coherence);
        if (run->kmap.mirrors[m].rms_rad > MUCH_RAD)
            fprintf(stderr,
                    "octctl %s: the fit leaves %.2f rad of mirror %u (%s); look at residuals.png\n",
                    name, run->kmap.mirrors[m].rms_rad, m + 1, file);
        else if (f->peak.fwhm_px > MUCH_WIDER * f->limit_px)
            fprintf(stderr, "octctl %s: mirror %u (%s) is %.0f %% wider than its limit\n", name,
                    m + 1, file, 100 * (f->peak.fwhm_px / f->limit_px - 1));
    }
}

/* ---- JSON ---- */

static void add_mirror(cJSON *rows, const struct oct_kmap_run *run, uint32_t m)
{
    const struct oct_kmap_file *f = &run->files[m];
    const struct oct_fringe *fringe = &run->fringes[m];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, o);
    cJSON_AddStringToObject(o, "file", f->path);
    oct_command_add_number(o, "lines", f->n_lines);
    oct_command_add_number(o, "position_um", f->position_um);
    oct_command_add_number(o, "position_off_um", f->off_um);
    oct_command_add_number(o, "side", run->kmap.mirrors[m].side);
    oct_command_add_number(o, "cycles", fringe->cycles);
    oct_command_add_number(o, "contrast_db", fringe->contrast_db);
    oct_command_add_number(o, "coherence", fringe->coherence);
    oct_command_add_number(o, "residual_rad", run->kmap.mirrors[m].rms_rad);
    oct_command_add_number(o, "depth_px", f->peak.depth_px);
    oct_command_add_number(o, "snr_db", f->peak.snr_db);
    oct_command_add_number(o, "side_lobe_db", f->peak.side_lobe_db);
    oct_command_add_number(o, "width_before_px", f->before_fwhm_px);
    oct_command_add_number(o, "width_px", f->peak.fwhm_px);
    oct_command_add_number(o, "limit_px", f->limit_px);
    oct_command_add_number(o, "ratio", f->peak.fwhm_px / f->limit_px);
    oct_command_add_number(o, "width_before_um", before_um(run, f));
    oct_command_add_number(o, "width_um", f->peak.fwhm_px * run->axial_um);
    oct_command_add_number(o, "limit_um", f->limit_px * run->axial_um);
}

/* NULL: out of memory. */
static cJSON *make_tree(const struct oct_kmap_report *report)
{
    const struct oct_kmap_run *run = report->run;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "folder", report->folder);
    oct_command_add_number(o, "samples", run->geometry.n_samples);
    oct_command_add_number(o, "order", run->kmap.order);
    oct_command_add_number(o, "residual_rad", run->kmap.rms_rad);
    oct_command_add_number(o, "curved_px", run->curved_px);
    oct_command_add_number(o, "light_first", run->kmap.first);
    oct_command_add_number(o, "light_last", run->kmap.last);
    cJSON_AddBoolToObject(o, "has_dispersion", run->kmap.has_theta);
    cJSON *a = cJSON_AddObjectToObject(o, "dispersion_over_spectrum");
    for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++) {
        char name[8];
        snprintf(name, sizeof(name), "a%u", m);
        oct_command_add_number(a, name, run->coefficient[m]);
    }
    oct_command_add_number(a, "residual_rad", run->coefficient_rms_rad);
    cJSON_AddStringToObject(o, "before", run->before_text);
    oct_command_add_number(o, "axial_um", run->axial_um);
    oct_command_add_number(o, "axial_residual_um", run->axial_rms_um);
    oct_command_add_number(o, "axial_error", run->axial_error);
    cJSON *rows = cJSON_AddArrayToObject(o, "mirrors");
    for (uint32_t m = 0; m < run->n; m++)
        add_mirror(rows, run, m);
    return o;
}

bool oct_kmap_print_json(const struct oct_kmap_report *report)
{
    cJSON *tree = make_tree(report);
    const bool is_printed = tree && oct_command_print_json(tree);
    cJSON_Delete(tree);
    return is_printed;
}

/* ---- files ---- */

/* Opens, writes by `fill`, closes; on any failure there is no file. */
static enum oct_err write_text(const char *path, bool force, const struct oct_kmap_report *report,
                               void (*fill)(FILE *, const struct oct_kmap_report *),
                               struct oct_error *err)
{
    struct oct_whole_file whole;
    enum oct_err e = oct_whole_file_init(&whole, path, force, err);
    if (e)
        return e;
    FILE *file = fopen(whole.work, "w");
    if (!file) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
        oct_whole_file_discard(&whole);
        return e;
    }
    errno = 0;
    fill(file, report);
    const bool failed = ferror(file) != 0;
    if (fclose(file) || failed) {
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path);
        oct_whole_file_discard(&whole);
        return e;
    }
    return oct_whole_file_publish(&whole, err);
}

static void fill_kmap(FILE *file, const struct oct_kmap_report *report)
{
    const struct oct_calibration *cal = &report->run->cal;
    fprintf(file, "# camera coordinates (px, from 0) of %zu equal steps in k\n", cal->n_kmap);
    for (size_t i = 0; i < cal->n_kmap; i++)
        fprintf(file, "%.9g\n", cal->kmap_px[i]);
}

static void fill_phase(FILE *file, const struct oct_kmap_report *report)
{
    const struct oct_calibration *cal = &report->run->cal;
    fprintf(file, "# exp(-i theta), re im, on the %zu steps in k that kmap.txt gives\n",
            cal->n_dispersion);
    for (size_t i = 0; i < cal->n_dispersion; i++)
        fprintf(file, "%.9g %.9g\n", cal->dispersion[2 * i], cal->dispersion[2 * i + 1]);
}

static void fill_dispersion(FILE *file, const struct oct_kmap_run *run)
{
    fprintf(file,
            "dispersion = dispersion.txt\n"
            "; in its place, but for a shift of all depths (%.4f rad rms):\n"
            ";dispersion_over = spectrum\n",
            run->coefficient_rms_rad);
    for (unsigned m = 2; m <= OCT_MAX_DISPERSION_ORDER; m++)
        fprintf(file, ";dispersion_a%u = %.6f\n", m, run->coefficient[m]);
}

static void fill_ini(FILE *file, const struct oct_kmap_report *report)
{
    const struct oct_kmap_run *run = report->run;
    fprintf(file, "; made by octctl calibrate kmap from");
    for (uint32_t m = 0; m < run->n; m++) {
        putc(' ', file);
        oct_command_put_name(file, oct_kmap_file_name(run->paths[m]));
    }
    fprintf(file, "\n[camera]\nsamples = %u\n\n[calibration]\nkmap = kmap.txt\n",
            run->geometry.n_samples);
    if (run->kmap.has_theta)
        fill_dispersion(file, run);
    if (isfinite(run->axial_um))
        fprintf(file, "\n[scan]\n; %s\naxial_um = %.6g\n", run->axial_text, run->axial_um);
}

static void fill_json(FILE *file, const struct oct_kmap_report *report)
{
    cJSON *tree = make_tree(report);
    char *text = tree ? cJSON_Print(tree) : NULL;
    if (text)
        oct_utf8_repair(text);
    fprintf(file, "%s\n", text ? text : "null");
    cJSON_free(text);
    cJSON_Delete(tree);
}

enum oct_err oct_kmap_write_kmap(void *report, const char *path, bool force, struct oct_error *err)
{
    return write_text(path, force, report, fill_kmap, err);
}

enum oct_err oct_kmap_write_phase(void *report, const char *path, bool force, struct oct_error *err)
{
    return write_text(path, force, report, fill_phase, err);
}

enum oct_err oct_kmap_write_ini(void *report, const char *path, bool force, struct oct_error *err)
{
    return write_text(path, force, report, fill_ini, err);
}

enum oct_err oct_kmap_write_json(void *report, const char *path, bool force, struct oct_error *err)
{
    return write_text(path, force, report, fill_json, err);
}
