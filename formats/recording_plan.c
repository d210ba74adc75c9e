#include "formats/recording_plan.h"

#include "config/apply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum oct_err oct_recording_config(struct oct_config *config, struct oct_recording *recording,
                                  struct oct_error *err)
{
    const char *text = oct_recording_config_text(recording);
    struct oct_config merged;
    struct oct_error damage;

    if (!text)
        return OCT_OK;
    oct_config_init(&merged);
    if (oct_config_load_text(&merged, text, "the recording's configuration", &damage))
        return oct_fail(err, OCT_E_FORMAT, "%s", damage.text);
    oct_config_overlay(&merged, config);
    merged.camera.samples = config->camera.samples; /* the arrays decide, not the text */
    merged.scan.lines = config->scan.lines;
    *config = merged;
    return OCT_OK;
}

static void move_values(double **to, size_t *n_to, double **from, size_t *n_from)
{
    free(*to);
    *to = *from;
    *n_to = *n_from;
    *from = NULL;
    *n_from = 0;
}

/* Which parts of the calibration were given now rather than with the recording. */
struct given {
    bool axis, dispersion, background, positions;
};

/* calibration.background = recording, where no file has that name: what the recording brings. It
 * says that there is one where pipeline.dc=file, window=flat or flatten ask for it. */
static bool is_of_recording(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "recording") == 0 && access(path, F_OK) != 0;
}

static struct given find_given(const struct oct_config *c)
{
    static const char *const coefficients[] = {
        "calibration.dispersion_a2", "calibration.dispersion_a3", "calibration.dispersion_a4",
        "calibration.dispersion_a5"};
    struct given given = {
        .axis = oct_config_is_set(c, "calibration.wavelengths") ||
                oct_config_is_set(c, "calibration.kmap"),
        .dispersion = oct_config_is_set(c, "calibration.dispersion"),
        .positions = oct_config_is_set(c, "scan.positions"),
        .background = oct_config_is_set(c, "calibration.background") &&
                      !is_of_recording(c->calibration.background),
    };
    for (size_t i = 0; i < sizeof(coefficients) / sizeof(coefficients[0]); i++)
        given.dispersion = given.dispersion || oct_config_is_set(c, coefficients[i]);
    return given;
}

/* An axis or a dispersion given now replaces the recording's as a whole. */
static void replace_given(struct oct_config *c, const struct oct_config *now,
                          const struct given *given)
{
    if (given->axis) {
        memcpy(c->calibration.wavelengths, now->calibration.wavelengths,
               sizeof(c->calibration.wavelengths));
        memcpy(c->calibration.kmap, now->calibration.kmap, sizeof(c->calibration.kmap));
    }
    if (given->dispersion) {
        memcpy(c->calibration.dispersion, now->calibration.dispersion,
               sizeof(c->calibration.dispersion));
        c->calibration.dispersion_a2 = now->calibration.dispersion_a2;
        c->calibration.dispersion_a3 = now->calibration.dispersion_a3;
        c->calibration.dispersion_a4 = now->calibration.dispersion_a4;
        c->calibration.dispersion_a5 = now->calibration.dispersion_a5;
        c->calibration.dispersion_over = now->calibration.dispersion_over;
    }
}

/* The files that the recording was made from need not be here: its own datasets hold them. Their
 * paths stay in the effective configuration, to say where the values came from. */
static struct oct_config only_given_files(const struct oct_config *config,
                                          const struct given *given)
{
    struct oct_config files = *config;
    if (!given->axis)
        files.calibration.wavelengths[0] = files.calibration.kmap[0] = '\0';
    if (!given->dispersion)
        files.calibration.dispersion[0] = '\0';
    if (!given->background)
        files.calibration.background[0] = '\0';
    if (!given->positions)
        files.scan.positions[0] = '\0';
    return files;
}

/* Coefficients that a file of another program brings, into the configuration: they go on with what
 * is made from it. */
static enum oct_err adopt_coefficients(struct oct_config *config, struct oct_recording *recording,
                                       struct oct_error *err)
{
    struct oct_calibration cal;
    const enum oct_err e = oct_recording_calibration(recording, &cal, err);
    if (e)
        return e;
    const double *a = cal.coefficient;
    if (a[2] != 0 || a[3] != 0 || a[4] != 0 || a[5] != 0) {
        config->calibration.dispersion_a2 = a[2];
        config->calibration.dispersion_a3 = a[3];
        config->calibration.dispersion_a4 = a[4];
        config->calibration.dispersion_a5 = a[5];
        config->calibration.dispersion_over = cal.dispersion_over;
    }
    oct_calibration_finish(&cal);
    return OCT_OK;
}

/* Reads what was given now, and takes the rest from the recording. */
static enum oct_err merge_calibration(struct oct_calibration *cal, const struct oct_config *config,
                                      const struct given *given, bool recorded_phase,
                                      struct oct_recording *recording, struct oct_error *err)
{
    const struct oct_config files = only_given_files(config, given);
    struct oct_calibration recorded = {0};
    enum oct_err e = oct_config_calibration(&files, cal, err);
    if (e)
        return e;
    e = oct_recording_calibration(recording, &recorded, err);
    if (e) {
        oct_calibration_finish(cal);
        return e;
    }
    if (!given->axis) {
        move_values(&cal->wavelengths_nm, &cal->n_wavelengths, &recorded.wavelengths_nm,
                    &recorded.n_wavelengths);
        move_values(&cal->kmap_px, &cal->n_kmap, &recorded.kmap_px, &recorded.n_kmap);
    }
    if (!given->dispersion && recorded_phase)
        move_values(&cal->dispersion, &cal->n_dispersion, &recorded.dispersion,
                    &recorded.n_dispersion);
    if (!given->background)
        move_values(&cal->background, &cal->n_background, &recorded.background,
                    &recorded.n_background);
    if (!given->positions)
        move_values(&cal->positions_um, &cal->n_positions, &recorded.positions_um,
                    &recorded.n_positions);
    cal->span_per_nm = recorded.span_per_nm;
    oct_calibration_finish(&recorded);
    return OCT_OK;
}

/* The depth scale that follows from the maker's word goes on with what is made from the recording,
 * as coefficients do. */
static void adopt_scale(struct oct_config *config, const struct oct_calibration *cal,
                        const struct oct_plan *plan)
{
    const bool is_stated = cal->axial_um > 0 || cal->lambda_nm > 0 || cal->n_wavelengths > 0;
    if (cal->span_per_nm > 0 && !is_stated && isfinite(plan->axial_um))
        config->scan.axial_um = plan->axial_um;
}

static enum oct_err set_scan(struct oct_plan *plan, const struct oct_config *config,
                             uint32_t scan_bscans, const struct oct_recording *recording,
                             struct oct_error *err)
{
    const struct oct_scan scan = oct_config_way_of_recording(
        config, &plan->calibration, scan_bscans, oct_recording_first_bscan(recording));
    return oct_plan_set_scan(plan, &scan, err);
}

enum oct_err oct_recording_plan(struct oct_plan **plan, struct oct_config *config,
                                struct oct_recording *recording, struct oct_error *err)
{
    const struct oct_config now = *config;
    const struct given given = find_given(&now);
    struct oct_calibration cal = {0};
    struct oct_geometry geometry;

    enum oct_err e = oct_recording_config(config, recording, err);
    if (e)
        return e;
    /* With coefficients the phase is computed again, to the last bit as before; only a phase that
     * came from a file (or from another program) is taken from the recording. */
    bool recorded_phase =
        !oct_recording_config_text(recording) || config->calibration.dispersion[0] != '\0';
    replace_given(config, &now, &given);
    if (!given.dispersion && (e = adopt_coefficients(config, recording, err)) != OCT_OK)
        return e;
    uint64_t n_bscans = oct_recording_n_bscans(recording);
    if (n_bscans > OCT_MAX_BSCANS)
        return oct_fail(err, OCT_E_FORMAT, "the recording has %llu B-scans, more than %u",
                        (unsigned long long)n_bscans, OCT_MAX_BSCANS);
    const uint32_t scan_bscans = config->scan.bscans;
    config->scan.bscans = (uint32_t)n_bscans;
    if ((e = oct_config_check(config, err)) || (e = oct_config_geometry(config, &geometry, err)) ||
        (e = merge_calibration(&cal, config, &given, recorded_phase, recording, err)))
        return e;
    struct oct_error why = {.text = ""};
    struct oct_chain chain;
    oct_config_chain(config, &chain);
    e = oct_plan_create(plan, &geometry, &cal, &chain, &why);
    e = e ? e : set_scan(*plan, config, scan_bscans, recording, &why);
    if (!e)
        adopt_scale(config, &cal, *plan);
    oct_calibration_finish(&cal);
    if (!e)
        return OCT_OK;
    oct_plan_destroy(*plan);
    *plan = NULL;
    return oct_config_blame(config, &why, err);
}
