#include "tools/synth_mirror.h"

#include "config/apply.h"
#include "pipeline/plan/plan.h"
#include "pipeline/volume/volume.h"
#include "synth/calibration_folder.h"
#include "synth/random.h"
#include "synth/spectrometer.h"
#include "synth/truth_file.h"
#include "tools/commands.h"
#include "tools/synth_files.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_FILES 64u
#define MOST_REFLECTORS 16u
#define START_TIME "2000-01-01T00:00:00.000Z" /* same seed, same bytes */

/* What stands before the spectrometer in one file. */
struct scene {
    struct oct_reflector reflectors[MOST_REFLECTORS];
    unsigned n;
};

struct work {
    const struct oct_synth_mirror *options;
    struct oct_config *config;
    const char *out;
    bool raw;
    uint64_t seed;
    struct scene scenes[MOST_FILES];
    unsigned n_files;
    struct oct_spectrometer spectrometer;
    struct oct_geometry geometry;
    struct oct_plan *plan; /* of the even k map */
    char *config_text;
    uint16_t *samples; /* [M][N] */
    uint8_t *line_valid;
};

void oct_synth_mirror_init(struct oct_synth_mirror *mirror)
{
    *mirror = (struct oct_synth_mirror){.snr_db = NAN, .bump = NAN, .gain = NAN, .turns = NAN};
}

bool oct_synth_mirror_is_asked(const struct oct_synth_mirror *mirror)
{
    return mirror->mirrors || mirror->dispersion || !isnan(mirror->snr_db) ||
           !isnan(mirror->bump) || !isnan(mirror->gain) || !isnan(mirror->turns);
}

/* ---- the command line ---- */

/* "200", "200+450.5" or "none", up to a comma or the end; NULL: it is none of them. */
static const char *read_scene(const char *text, double most_px, struct scene *scene)
{
    static const char none[] = "none";
    scene->n = 0;
    if (strncmp(text, none, sizeof(none) - 1) == 0)
        return text + sizeof(none) - 1;
    for (;; text++) {
        char *end = NULL;
        double depth = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
        if (!(depth >= 0 && depth <= most_px) || scene->n == MOST_REFLECTORS)
            return NULL;
        scene->reflectors[scene->n++] = (struct oct_reflector){.depth_px = depth};
        text = end;
        if (*text != '+')
            break;
    }
    /* Two mirrors reflect as one does; more share what two of them have, so that they fit. */
    for (unsigned r = 0; r < scene->n; r++)
        scene->reflectors[r].share =
            scene->n > 2 ? 2 * OCT_SPECTROMETER_SHARE / scene->n : OCT_SPECTROMETER_SHARE;
    return text;
}

static bool read_scenes(struct work *w, double most_px)
{
    for (const char *text = w->options->mirrors;; text++) {
        if (w->n_files == MOST_FILES)
            return false;
        text = read_scene(text, most_px, &w->scenes[w->n_files++]);
        if (!text || *text != ',')
            return text && *text == '\0';
    }
}

static int read_options(struct work *w, struct oct_spectrometer_setup *setup)
{
    const struct oct_synth_mirror *o = w->options;
    double dispersion[2], most_px = 2.0 * oct_geometry_padded(setup->n_samples);
    if (!o->mirrors)
        return oct_command_misuse("synth", "--dispersion, --snr, --source-bump, --gain and --turns "
                                           "are of --mirror");
    if (!read_scenes(w, most_px))
        return oct_command_misuse("synth",
                                  "--mirror: %s: needs depths from 0 to %g px with commas between "
                                  "them, DEPTH+DEPTH for two at once or none for no mirror; at "
                                  "most %u files and %u depths in each",
                                  o->mirrors, most_px, MOST_FILES, MOST_REFLECTORS);
    if (o->dispersion) {
        if (oct_option_doubles(o->dispersion, dispersion, 2) != 2)
            return oct_command_misuse("synth", "--dispersion: %s: needs A2,A3 in radians",
                                      o->dispersion);
        setup->a2 = dispersion[0];
        setup->a3 = dispersion[1];
    }
    setup->snr_db = isnan(o->snr_db) ? setup->snr_db : o->snr_db;
    setup->bump = isnan(o->bump) ? setup->bump : o->bump;
    setup->gain = isnan(o->gain) ? setup->gain : o->gain;
    return 0;
}

/* ---- before the files ---- */

/* The configuration as it goes into the recordings: nothing is calibrated yet. */
static void forget_calibration(struct oct_config *config)
{
    config->calibration.wavelengths[0] = config->calibration.kmap[0] = '\0';
    config->calibration.dispersion[0] = config->calibration.background[0] = '\0';
    config->calibration.dispersion_a2 = config->calibration.dispersion_a3 = 0;
    config->calibration.dispersion_a4 = config->calibration.dispersion_a5 = 0;
    config->calibration.dispersion_over = OCT_DISPERSION_OVER_GRID;
}

static enum oct_err prepare(struct work *w, const struct oct_spectrometer_setup *setup,
                            struct oct_error *err)
{
    double even[2] = {0, setup->n_samples - 1.0};
    const struct oct_calibration cal = {.kmap_px = even, .n_kmap = 2};
    /* A single A-line has no mean that could be subtracted. */
    const struct oct_chain chain = {.dc = OCT_DC_NONE};
    enum oct_err e;
    w->config->scan.bscans = 1;
    w->config->camera.bits = setup->bits;
    forget_calibration(w->config);
    e = oct_config_geometry(w->config, &w->geometry, err);
    e = e ? e : oct_spectrometer_init(&w->spectrometer, setup, err);
    e = e ? e : oct_plan_create(&w->plan, &w->geometry, &cal, &chain, err);
    if (e)
        return e;
    w->samples = malloc(oct_geometry_spectra_bytes(&w->geometry));
    w->line_valid = malloc(w->geometry.n_lines);
    w->config_text = oct_config_text(w->config);
    if (!w->samples || !w->line_valid || !w->config_text)
        return oct_fail(err, OCT_E_NO_MEMORY, "no memory for a B-scan");
    memset(w->line_valid, 1, w->geometry.n_lines);
    return OCT_OK;
}

/* OUT.h5 of one file; of several OUT-1.h5, or OUT-01.h5 when there are ten and more. */
static enum oct_err file_name(const struct work *w, unsigned i, char path[PATH_MAX],
                              struct oct_error *err)
{
    const char *dot = strrchr(w->out, '.');
    int n;
    if (w->n_files == 1)
        return oct_synth_join(path, w->out, "", err);
    n = snprintf(path, PATH_MAX, "%.*s-%0*u%s", (int)(dot - w->out), w->out, w->n_files > 9 ? 2 : 1,
                 i + 1, dot);
    return n < PATH_MAX ? OCT_OK : oct_fail(err, OCT_E_CONFIG, "%s: name too long", w->out);
}

/* ---- one file ---- */

static enum oct_err write_samples(struct work *w, const char *path, struct oct_error *err)
{
    size_t n = (size_t)w->geometry.n_lines * w->geometry.n_samples;
    int fd;
    enum oct_err e = oct_synth_samples_open(&fd, path, err);
    if (e)
        return e;
    e = oct_synth_samples_write(fd, path, w->samples, n, err);
    if (close(fd) && !e)
        e = oct_fail(err, OCT_E_IO, "%s: cannot be written", path);
    return e;
}

static enum oct_err write_volume(struct work *w, const char *path, struct oct_error *err)
{
    char engine[64];
    const struct oct_volume_about about = {
        .config_text = w->config_text,
        .start_time = START_TIME,
        .eye = w->config->record.eye,
        .pseudonym = w->config->record.pseudonym,
        .engine = engine,
        .refractive_index = 1,
    };
    const struct oct_raw_frame frame = {.spectra = w->samples, .line_valid = w->line_valid};
    struct oct_volume_writer *writer = NULL;
    enum oct_err e, closed;
    snprintf(engine, sizeof(engine), "synthetic spectrometer, seed %" PRIu64, w->seed);
    e = oct_volume_create(&writer, path, w->plan, &about, true, false, err);
    if (e)
        return e;
    e = oct_volume_write_spectra(writer, &frame, err);
    e = e ? e : oct_volume_write_row(writer, &frame.info, err);
    closed = oct_volume_close(writer, e ? NULL : err);
    return e ? e : closed;
}

/* truth: the temporary file itself, or another one. */
static enum oct_err write_file(struct work *w, const struct scene *scene, const char *temporary,
                               const char *truth, struct oct_error *err)
{
    enum oct_err e;
    if (w->raw) {
        e = write_samples(w, temporary, err);
        e = e ? e : oct_truth_file_create(truth, err);
    } else {
        e = write_volume(w, temporary, err);
    }
    if (e)
        return e;
    return oct_truth_file_add_spectrometer(truth, &w->spectrometer, scene->reflectors, scene->n,
                                           err);
}

static void say(const struct work *w, const struct scene *scene, const char *path,
                uint64_t n_clipped)
{
    printf("%s:", path);
    for (unsigned r = 0; r < scene->n; r++)
        printf("%s %.6g px, %.6g um", r ? " and" : " a mirror at", scene->reflectors[r].depth_px,
               scene->reflectors[r].depth_px * w->spectrometer.axial_um);
    printf("%s", scene->n ? "" : " no mirror");
    if (n_clipped)
        printf("; %" PRIu64 " samples are saturated", n_clipped);
    printf("\n");
}

/* The names of a file and of its truth, and what they are called until they are whole. */
struct names {
    char path[PATH_MAX], temporary[PATH_MAX], truth[PATH_MAX], truth_temporary[PATH_MAX];
};

static enum oct_err claim_names(const struct work *w, unsigned i, struct names *names,
                                struct oct_error *err)
{
    enum oct_err e = file_name(w, i, names->path, err);
    e = e ? e : oct_synth_claim(names->path, names->temporary, err);
    if (!e && w->raw)
        e = oct_synth_join(names->truth, names->path, ".truth.h5", err);
    if (!e && w->raw)
        e = oct_synth_claim(names->truth, names->truth_temporary, err);
    return e;
}

static enum oct_err make_file(struct work *w, unsigned i, struct names *names,
                              struct oct_error *err)
{
    const struct scene *scene = &w->scenes[i];
    double turns = isnan(w->options->turns) ? 1 : w->options->turns;
    uint64_t n_clipped;
    enum oct_err e = claim_names(w, i, names, err);
    e = e ? e
          : oct_spectrometer_bscan(&w->spectrometer, scene->reflectors, scene->n, turns,
                                   w->geometry.n_lines, oct_mix64(w->seed + i), w->samples,
                                   &n_clipped, err);
    if (e)
        return e;
    e = write_file(w, scene, names->temporary, w->raw ? names->truth_temporary : names->temporary,
                   err);
    if (!e && w->raw)
        e = oct_synth_publish(names->truth_temporary, names->truth, err);
    e = e ? e : oct_synth_publish(names->temporary, names->path, err);
    if (!e) {
        say(w, scene, names->path, n_clipped);
        return OCT_OK;
    }
    oct_synth_discard(names->temporary);
    if (w->raw)
        oct_synth_discard(names->truth_temporary);
    return e;
}

static enum oct_err make_files(struct work *w, const char *calibration, struct oct_error *err)
{
    struct names *names = malloc(sizeof(*names));
    enum oct_err e = OCT_OK;
    if (!names)
        return oct_fail(err, OCT_E_NO_MEMORY, "no memory for names");
    /* Check all names before the work begins. */
    for (unsigned i = 0; !e && i < w->n_files; i++)
        e = claim_names(w, i, names, err);
    if (!e && calibration) {
        e = oct_calibration_folder_write_spectrometer(calibration, &w->spectrometer, err);
        if (!e)
            printf("%s/%s: the true configuration, beside it k map and wavelengths\n", calibration,
                   OCT_CALIBRATION_INI);
    }
    for (unsigned i = 0; !e && i < w->n_files; i++)
        e = make_file(w, i, names, err);
    if (!e)
        printf("the source allows a width of %.4g px, %.4g um\n", w->spectrometer.limit_px,
               w->spectrometer.limit_px * w->spectrometer.axial_um);
    free(names);
    return e;
}

int oct_synth_mirror_make(const struct oct_synth_mirror *mirror, struct oct_config *config,
                          const char *out, bool raw, const char *calibration, uint64_t seed)
{
    struct oct_spectrometer_setup setup = oct_spectrometer_standard;
    struct work *w = calloc(1, sizeof(*w));
    struct oct_error err = {0};
    enum oct_err e = OCT_OK;
    int misuse;
    if (!w) {
        oct_fail(&err, OCT_E_NO_MEMORY, "no memory");
        return oct_command_fail("synth", &err);
    }
    *w = (struct work){.options = mirror, .config = config, .out = out, .raw = raw, .seed = seed};
    setup.n_samples = config->camera.samples;
    setup.bits = config->camera.bits < 12 ? config->camera.bits : 12;
    misuse = read_options(w, &setup);
    if (!misuse)
        e = prepare(w, &setup, &err);
    if (!misuse && !e)
        e = make_files(w, calibration, &err);
    oct_spectrometer_finish(&w->spectrometer);
    oct_plan_destroy(w->plan);
    free(w->samples);
    free(w->line_valid);
    free(w->config_text);
    free(w);
    if (misuse)
        return misuse;
    return e ? oct_command_fail("synth", &err) : 0;
}
