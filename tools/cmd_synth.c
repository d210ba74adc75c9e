/* synth: recordings of a synthetic retina (synth/), with the truth about them, films of
 * cells (synth_cells.h), and recordings of mirrors (synth_mirror.h).
 *
 * OUT.h5: a volume a file, with calibration and /truth; several volumes are OUT-000.h5, OUT-001.h5
 * and so on. OUT.raw, OUT.bin: plain samples, all volumes one after the other, and the truth in
 * OUT.raw.truth.h5, each volume's below /truth/volume-000 and so on. */
#include "config/apply.h"
#include "pipeline/plan/plan.h"
#include "pipeline/volume/volume.h"
#include "synth/calibration_folder.h"
#include "synth/cell_paths.h"
#include "synth/retina.h"
#include "synth/truth_file.h"
#include "tools/commands.h"
#include "tools/synth_cells.h"
#include "tools/synth_files.h"
#include "tools/synth_flow.h"
#include "tools/synth_mirror.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_VOLUMES 100000u        /* of --volumes */
#define CHUNK_BYTES (16u << 20)    /* of samples rendered at a time */
#define START_S INT64_C(946684800) /* the recordings begin at 2000-01-01: same seed, same bytes */

struct synth_options {
    const char *out, *calibration; /* calibration: a folder, or NULL */
    const char *motion_name;       /* as it was given, or NULL */
    enum oct_eye_motion motion;
    uint64_t seed, n_volumes, n_drusen, n_shadows, n_blinks;
    const char *fovea; /* as it was given, or NULL */
    double fovea_at[2];
    struct oct_synth_cells cells;
    struct oct_cell_paths_setup paths; /* of cells in the retina */
    struct oct_synth_mirror mirror;
    struct oct_synth_flow flow;
    bool raw, is_film;
};

static const struct oct_option options_table[] = {
    {"--seed", "N", "same seed, same bytes", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, seed), .standard = "1"},
    {"--volumes", "N", "how many volumes; an .h5 holds one each, a .raw all", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, n_volumes), .least = 1, .most = MAX_VOLUMES,
     .standard = "1"},
    {"--motion", "KIND",
     "how the eye moves: bscans (default: slowly, and not within a B-scan),\n"
     "none, fixation or unsteady (with saccades and blinks)",
     OCT_OPTION_TEXT, .at = offsetof(struct synth_options, motion_name),
     .words = "bscans none fixation unsteady"},
    {"--fovea", "X,Y", "where the foveal pit is, shares of the field (0.24,0.42)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, fovea)},
    {"--drusen", "N", "N drusen: mounds that lift the RPE off Bruch's membrane (0)",
     OCT_OPTION_COUNT, .at = offsetof(struct synth_options, n_drusen),
     .most = OCT_RETINA_MOST_DRUSEN},
    {"--shadows", "N", "N wide vessels across the B-scans, and their shadows (0)", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, n_shadows), .most = OCT_RETINA_MOST_SHADOWS},
    {"--blinks", "N", "N blinks in each volume, whatever the motion (0)", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, n_blinks), .most = OCT_RETINA_MOST_BLINKS},
    {"--calibration", "D", "write the calibration files into the folder D", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, calibration), .words = OCT_WORDS_FOLDERS},
    {"--cells", "N",
     "N bright cells that move: in a film of their own (OUT.npy, .tif, .avi), or\n"
     "above the retina of a recording",
     OCT_OPTION_COUNT, .at = offsetof(struct synth_options, cells.n_cells), .least = 1,
     .most = OCT_CELL_PATHS_MOST},
    {"--radius", "R", "of cells, px of a film or um of a recording (10)", OCT_OPTION_NUMBER,
     .at = offsetof(struct synth_options, cells.radius), .least = 1, .most = 1000},
    {"--speed", "A:B", "px a frame, or um a volume (2:5)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, cells.speed)},
    {"--paths", "KIND", "separate (default), or overtaking, in pairs that touch", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, cells.paths), .words = "separate overtaking"},
    {"--flow-deg", "DEG", "where all cells go; 0: right, 90: down (right or left)",
     OCT_OPTION_NUMBER, .at = offsetof(struct synth_options, cells.flow_deg), .least = -360,
     .most = 360},
    {"--truth", "FILE.csv", "of a film: where its truth goes (OUT.truth.csv)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, cells.truth)},
    {"--n-frames", "N", "pictures of a film (60)", OCT_OPTION_COUNT, .was = "--frames",
     .at = offsetof(struct synth_options, cells.n_frames), .least = 1, .most = 1000000},
    {"--size", "WxH", "of a film (640x480)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, cells.size)},
    {"--cnr", "C", "of a film: contrast to noise (4)", OCT_OPTION_NUMBER,
     .at = offsetof(struct synth_options, cells.cnr), .least = 0.05, .most = 1000},
    {"--fps", "F", "of a film (30)", OCT_OPTION_NUMBER,
     .at = offsetof(struct synth_options, cells.fps), .least = 1e-6, .most = 1e6},
    {"--pixel-um", "X[,Y]", "of a film: size of a pixel (square, unknown)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, cells.pixel_um)},
    {"--motion-of-rows", NULL, "of a film: scanned row by row, while cells move", OCT_OPTION_FLAG,
     .at = offsetof(struct synth_options, cells.of_rows)},
    {"--flow", NULL,
     "instead of a retina vessels in which scatterers flow, with scan.repeats\n"
     "B-scans a place; --motion none, fixation or unsteady, --blinks, --snr (10)",
     OCT_OPTION_FLAG, .at = offsetof(struct synth_options, flow.is_asked)},
    {"--vessels", "N", "of flow (8): 4 to 20 um of radius, 0.3 to 12 mm/s", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, flow.n_vessels), .most = OCT_FLOW_PHANTOM_MOST_VESSELS},
    {"--bursts", "N", "of flow: B-scans in which the eye jumps (0)", OCT_OPTION_COUNT,
     .at = offsetof(struct synth_options, flow.n_bursts), .most = OCT_FLOW_PHANTOM_MOST_BURSTS},
    {"--tails", "RAD", "of flow: jitter of the phase below vessels (0)", OCT_OPTION_NUMBER,
     .at = offsetof(struct synth_options, flow.tail_rad), .least = 0, .most = 10},
    {"--mirror", "PX[,PX...]",
     "instead of a retina a mirror at each depth, a file each (OUT-1.h5, ...),\n"
     "before a spectrometer that nobody has calibrated; PX+PX: two at once;\n"
     "none: no mirror",
     OCT_OPTION_TEXT, .at = offsetof(struct synth_options, mirror.mirrors)},
    {"--dispersion", "A2,A3", "of mirrors: radians over the P2 steps in k (30,-6)", OCT_OPTION_TEXT,
     .at = offsetof(struct synth_options, mirror.dispersion)},
    {"--snr", "DB",
     "of mirrors: signal to noise of an A-line at depth 0 (60); of flow: of\n"
     "tissue (10)",
     OCT_OPTION_NUMBER, .at = offsetof(struct synth_options, mirror.snr_db), .least = -20,
     .most = 120},
    {"--source-bump", "H", "of mirrors: a second, narrow source, H times as high (0)",
     OCT_OPTION_NUMBER, .at = offsetof(struct synth_options, mirror.bump), .least = 0, .most = 2},
    {"--gain", "G", "of mirrors: all light times G (1); 1.6 and more saturates", OCT_OPTION_NUMBER,
     .at = offsetof(struct synth_options, mirror.gain), .least = 0.001, .most = 1000},
    {"--turns", "T", "of mirrors: turns of the fringe over the B-scan (1); 0: at rest",
     OCT_OPTION_NUMBER, .at = offsetof(struct synth_options, mirror.turns), .least = 0,
     .most = 10000},
    {NULL},
};

struct synth {
    const struct synth_options *options;
    const struct oct_config *config;
    struct oct_geometry geometry;
    struct oct_retina_params params;
    struct oct_retina *retina;
    struct oct_plan *plan;
    char *config_text;
    uint16_t *spectra; /* [chunk][M][N] */
    uint8_t *line_valid;
    uint32_t chunk;
    uint64_t n_saturated;
};

/* Takes B-scan b of the volume; arg is the sink's. */
typedef enum oct_err sink_fn(void *arg, struct synth *s, uint32_t volume, uint32_t b,
                             uint16_t *spectra, struct oct_error *err);

/* ---- names ---- */

/* OUT.h5, or OUT-007.h5 when there are several volumes. */
static enum oct_err volume_name(const struct synth_options *o, uint32_t volume, char path[PATH_MAX],
                                struct oct_error *err)
{
    const char *dot = strrchr(o->out, '.');
    int n;
    if (o->n_volumes == 1)
        return oct_synth_join(path, o->out, "", err);
    n = snprintf(path, PATH_MAX, "%.*s-%03u%s", (int)(dot - o->out), o->out, volume, dot);
    return n < PATH_MAX ? OCT_OK : oct_fail(err, OCT_E_CONFIG, "%s: name too long", o->out);
}

/* ---- one volume ---- */

static enum oct_err render_volume(struct synth *s, uint32_t volume, sink_fn *sink, void *arg,
                                  struct oct_error *err)
{
    size_t bscan_samples = (size_t)s->geometry.n_lines * s->geometry.n_samples;
    enum oct_err e = OCT_OK;
    for (uint32_t first = 0; !e && first < s->geometry.n_bscans; first += s->chunk) {
        uint32_t left = s->geometry.n_bscans - first, n = left < s->chunk ? left : s->chunk;
        uint64_t n_saturated = 0;
        e = oct_retina_render(s->retina, volume, first, n, s->spectra, &n_saturated, err);
        s->n_saturated += n_saturated;
        for (uint32_t b = 0; !e && b < n; b++)
            e = sink(arg, s, volume, first + b, s->spectra + b * bscan_samples, err);
    }
    return e;
}

static enum oct_err add_truth(const struct synth *s, uint32_t volume, const char *path,
                              const char *group, struct oct_error *err)
{
    struct oct_retina_truth truth;
    enum oct_err e = oct_retina_truth(s->retina, volume, &truth, err);
    if (e)
        return e;
    e = oct_truth_file_add_volume(path, group, &truth, s->geometry.n_bscans, s->geometry.n_lines,
                                  err);
    oct_retina_truth_finish(&truth);
    return e;
}

static double bscan_seconds(const struct synth *s)
{
    return 1 / oct_config_bscans_hz(s->config);
}

/* ---- .h5 ---- */

static enum oct_err put_in_volume(void *arg, struct synth *s, uint32_t volume, uint32_t b,
                                  uint16_t *spectra, struct oct_error *err)
{
    struct oct_volume_writer *writer = arg;
    uint64_t number = (uint64_t)volume * s->geometry.n_bscans + b;
    struct oct_raw_frame frame = {
        .info = {.id = number,
                 .number = number,
                 .volume = volume,
                 .bscan = b,
                 .sequence = number,
                 .time_ns = (uint64_t)((double)number * bscan_seconds(s) * 1e9)},
        .spectra = spectra,
        .line_valid = s->line_valid,
    };
    enum oct_err e = oct_volume_write_spectra(writer, &frame, err);
    return e ? e : oct_volume_write_row(writer, &frame.info, err);
}

static void start_time(const struct synth *s, uint32_t volume, char *text, size_t bytes)
{
    double seconds = (double)volume * s->geometry.n_bscans * bscan_seconds(s);
    time_t whole = (time_t)(START_S + (int64_t)seconds);
    unsigned ms = (unsigned)((seconds - (double)(int64_t)seconds) * 1e3);
    char date[32] = "";
    struct tm utc;
    if (gmtime_r(&whole, &utc))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, bytes, "%s.%03uZ", date, ms);
}

static enum oct_err write_volume(struct synth *s, uint32_t volume, const char *temporary,
                                 struct oct_error *err)
{
    const struct oct_retina_facts *facts = oct_retina_facts(s->retina);
    enum oct_eye_motion motion = s->options->motion;
    char start[48], engine[96];
    struct oct_volume_about about = {
        .config_text = s->config_text,
        .start_time = start,
        .eye = s->config->record.eye,
        .pseudonym = s->config->record.pseudonym,
        .engine = engine,
        .width_um = facts->width_um,
        .height_um = facts->height_um,
        .refractive_index = s->config->scan.refractive_index,
    };
    struct oct_volume_writer *writer = NULL;
    enum oct_err e, closed;
    start_time(s, volume, start, sizeof(start));
    snprintf(engine, sizeof(engine), "synthetic retina, seed %" PRIu64 ", volume %u%s%s",
             s->options->seed, volume, motion ? ", motion " : "",
             motion ? oct_eye_motion_names[motion] : "");
    e = oct_volume_create(&writer, temporary, s->plan, &about, true, false, err);
    if (e)
        return e;
    e = render_volume(s, volume, put_in_volume, writer, err);
    closed = oct_volume_close(writer, e ? NULL : err);
    e = e ? e : closed;
    e = e ? e : oct_truth_file_add_facts(temporary, facts, s->geometry.n_samples, err);
    return e ? e : add_truth(s, volume, temporary, "/truth", err);
}

static enum oct_err make_volume(struct synth *s, uint32_t volume, struct oct_error *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    enum oct_err e = volume_name(s->options, volume, path, err);
    e = e ? e : oct_synth_claim(path, temporary, err);
    if (e)
        return e;
    e = write_volume(s, volume, temporary, err);
    e = e ? e : oct_synth_publish(temporary, path, err);
    if (e)
        oct_synth_discard(temporary);
    else
        printf("%s: 1 volume, %u x %u x %u samples, with /truth\n", path, s->geometry.n_bscans,
               s->geometry.n_lines, s->geometry.n_samples);
    return e;
}

static enum oct_err make_volumes(struct synth *s, struct oct_error *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    enum oct_err e = OCT_OK;
    /* Check all names before the work begins. */
    for (uint32_t v = 0; !e && v < s->options->n_volumes; v++) {
        e = volume_name(s->options, v, path, err);
        e = e ? e : oct_synth_claim(path, temporary, err);
    }
    for (uint32_t v = 0; !e && v < s->options->n_volumes; v++)
        e = make_volume(s, v, err);
    return e;
}

/* ---- .raw, .bin ---- */

struct raw_sink {
    int fd;
    const char *path;
};

static enum oct_err put_in_raw(void *arg, struct synth *s, uint32_t volume, uint32_t b,
                               uint16_t *spectra, struct oct_error *err)
{
    const struct raw_sink *sink = arg;
    size_t n = (size_t)s->geometry.n_lines * s->geometry.n_samples;
    (void)volume;
    (void)b;
    return oct_synth_samples_write(sink->fd, sink->path, spectra, n, err);
}

static enum oct_err write_raw(struct synth *s, const char *samples, const char *truth,
                              struct oct_error *err)
{
    struct raw_sink sink = {.path = samples};
    enum oct_err e = oct_synth_samples_open(&sink.fd, samples, err);
    if (e)
        return e;
    e = oct_truth_file_create(truth, err);
    e = e ? e
          : oct_truth_file_add_facts(truth, oct_retina_facts(s->retina), s->geometry.n_samples,
                                     err);
    for (uint32_t v = 0; !e && v < s->options->n_volumes; v++) {
        char group[40];
        snprintf(group, sizeof(group), "/truth/volume-%03u", v);
        e = render_volume(s, v, put_in_raw, &sink, err);
        e = e ? e : add_truth(s, v, truth, group, err);
    }
    if (close(sink.fd) && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", samples);
    return e;
}

static enum oct_err make_raw(struct synth *s, struct oct_error *err)
{
    char truth[PATH_MAX], samples_temporary[PATH_MAX], truth_temporary[PATH_MAX];
    const char *out = s->options->out;
    enum oct_err e = oct_synth_join(truth, out, ".truth.h5", err);
    e = e ? e : oct_synth_claim(out, samples_temporary, err);
    e = e ? e : oct_synth_claim(truth, truth_temporary, err);
    if (e)
        return e;
    e = write_raw(s, samples_temporary, truth_temporary, err);
    e = e ? e : oct_synth_publish(truth_temporary, truth, err);
    e = e ? e : oct_synth_publish(samples_temporary, out, err);
    if (e) {
        oct_synth_discard(samples_temporary);
        oct_synth_discard(truth_temporary);
        return e;
    }
    printf("%s: %" PRIu64 " volume%s, %u x %u x %u samples each\n%s: the truth\n", out,
           s->options->n_volumes, s->options->n_volumes == 1 ? "" : "s", s->geometry.n_bscans,
           s->geometry.n_lines, s->geometry.n_samples, truth);
    return OCT_OK;
}

/* ---- putting it together ---- */

/* Called before the volumes are made: a folder that cannot be written fails at once. */
static enum oct_err make_calibration(const struct synth *s, struct oct_error *err)
{
    const char *folder = s->options->calibration;
    enum oct_err e =
        oct_calibration_folder_write(folder, &s->params, oct_retina_facts(s->retina), err);
    if (!e)
        printf("%s/%s: the configuration that fits, beside it the wavelengths\n", folder,
               OCT_CALIBRATION_INI);
    return e;
}

/* An even raster is made as ever. */
static enum oct_err follow_scan(struct synth *s, struct oct_error *err)
{
    const enum oct_err e = oct_config_set_scan(s->config, s->plan, err);
    const struct oct_scan *scan = &s->plan->scan;
    const bool is_even = scan->pattern == OCT_SCAN_RASTER && scan->phase_deg == 0 &&
                         scan->delay_lines == oct_scan_lag(scan) && scan->angle_deg == 0 &&
                         scan->centre_um[0] == 0 && scan->centre_um[1] == 0;
    if (!e && !is_even && s->params.cells.n_cells)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.pattern",
                            "scan.pattern: --cells are of an even raster");
    if (!e && !is_even)
        oct_retina_set_scan(s->retina, scan);
    return e;
}

static enum oct_err make_plan(struct synth *s, struct oct_error *err)
{
    const struct oct_retina_facts *facts = oct_retina_facts(s->retina);
    struct oct_calibration cal = {
        .n_wavelengths = s->geometry.n_samples,
        .coefficient = {[2] = facts->dispersion_a2, [3] = facts->dispersion_a3},
    };
    enum oct_err e = OCT_OK;
    cal.wavelengths_nm = calloc(s->geometry.n_samples, sizeof(double));
    if (!cal.wavelengths_nm)
        return oct_fail(err, OCT_E_NO_MEMORY, "no memory for the calibration");
    memcpy(cal.wavelengths_nm, facts->wavelengths_nm, s->geometry.n_samples * sizeof(double));
    /* Without subtraction of a mean line, a scan of a single line works too. */
    const struct oct_chain chain = {.dc = OCT_DC_NONE};
    if (s->config->scan.positions[0])
        e = oct_calibration_read_table(s->config->scan.positions, 2, &cal.positions_um,
                                       &cal.n_positions, err);
    e = e ? e : oct_plan_create(&s->plan, &s->geometry, &cal, &chain, err);
    oct_calibration_finish(&cal);
    return e ? e : follow_scan(s, err);
}

static enum oct_err prepare(struct synth *s, struct oct_config *config, struct oct_error *err)
{
    size_t bscan_bytes;
    enum oct_err e = oct_config_geometry(config, &s->geometry, err);
    if (e)
        return e;
    config->camera.bits = config->camera.bits < 12 ? config->camera.bits : 12;
    s->params = (struct oct_retina_params){
        .n_samples = s->geometry.n_samples,
        .n_lines = s->geometry.n_lines,
        .n_bscans = s->geometry.n_bscans,
        .seed = s->options->seed,
        .width_um = config->scan.width_um,
        .height_um = config->scan.height_um,
        .line_rate_hz = config->scan.line_rate_hz,
        .refractive_index = config->scan.refractive_index,
        .bits = config->camera.bits,
        .n_threads = config->pipeline.threads,
        .motion = s->options->motion,
        .has_fovea = s->options->fovea != NULL,
        .fovea = {s->options->fovea_at[0], s->options->fovea_at[1]},
        .n_drusen = (unsigned)s->options->n_drusen,
        .n_shadows = (unsigned)s->options->n_shadows,
        .n_blinks = (unsigned)s->options->n_blinks,
        .cells = s->options->paths,
    };
    s->params.cells.n_frames = (double)s->options->n_volumes;
    e = oct_retina_create(&s->retina, &s->params, err);
    if (e)
        return e;
    config->scan.width_um = oct_retina_facts(s->retina)->width_um;
    config->scan.height_um = oct_retina_facts(s->retina)->height_um;
    /* As a lab's own recording would: it is reconstructed with what it carries. */
    config->calibration.dispersion_a2 = oct_retina_facts(s->retina)->dispersion_a2;
    config->calibration.dispersion_a3 = oct_retina_facts(s->retina)->dispersion_a3;
    config->calibration.dispersion_a4 = config->calibration.dispersion_a5 = 0;
    config->calibration.dispersion_over = OCT_DISPERSION_OVER_GRID;
    config->calibration.dispersion[0] = '\0';
    bscan_bytes = oct_geometry_spectra_bytes(&s->geometry);
    s->chunk = (uint32_t)(CHUNK_BYTES / bscan_bytes);
    s->chunk = s->chunk < 4 ? 4 : s->chunk > 256 ? 256 : s->chunk;
    s->spectra = malloc(s->chunk * bscan_bytes);
    s->line_valid = malloc(s->geometry.n_lines);
    s->config_text = oct_config_text(config);
    if (!s->spectra || !s->line_valid || !s->config_text)
        return oct_fail(err, OCT_E_NO_MEMORY, "no memory for %u B-scans", s->chunk);
    memset(s->line_valid, 1, s->geometry.n_lines);
    return make_plan(s, err);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && name[n - m - 1] != '/' && strcmp(name + n - m, suffix) == 0;
}

/* Before there was blood, --flow DEG was where cells go: with cells it still is. */
static void name_direction(int argc, char **argv)
{
    static char name[] = "--flow-deg";
    bool has_cells = false;
    for (int i = 1; i < argc; i++)
        has_cells = has_cells || strncmp(argv[i], "--cells", 7) == 0;
    for (int i = 1; i < argc && has_cells; i++)
        if (strcmp(argv[i], "--flow") == 0)
            argv[i] = name;
}

/* Returns 0, or the exit e when the command line is wrong. */
static int read_options(struct synth_options *o, int argc, char **argv)
{
    *o = (struct synth_options){0};
    oct_synth_cells_init(&o->cells);
    oct_synth_mirror_init(&o->mirror);
    oct_synth_flow_init(&o->flow);
    name_direction(argc, argv);
    const int misuse = oct_options_read(&oct_command_synth, o, &argc, argv);
    if (misuse)
        return misuse;
    o->out = argv[1];
    o->is_film = oct_synth_cells_is_film(o->out);
    if (o->is_film && (o->calibration || o->motion_name || o->n_volumes > 1))
        return oct_command_misuse(argv[0],
                                  "--calibration, --motion and --volumes are of recordings");
    if (o->is_film && (o->fovea || o->n_drusen || o->n_shadows || o->n_blinks))
        return oct_command_misuse(argv[0],
                                  "--fovea, --drusen, --shadows and --blinks are of recordings");
    const double *at = o->fovea_at;
    if (o->fovea && (oct_option_doubles(o->fovea, o->fovea_at, 2) != 2 ||
                     !(at[0] >= 0 && at[0] <= 1 && at[1] >= 0 && at[1] <= 1)))
        return oct_command_misuse(argv[0], "--fovea: %s: needs X,Y, each from 0 to 1", o->fovea);
    if (o->calibration && !o->calibration[0])
        return oct_command_misuse(argv[0], "--calibration needs a folder");
    const int motion =
        o->motion_name ? oct_option_word(o->motion_name, oct_eye_motion_names, OCT_N_EYE_MOTIONS)
                       : 0;
    if (motion < 0)
        return oct_command_misuse(argv[0], "--motion: %s: needs none, bscans, fixation or unsteady",
                                  o->motion_name);
    o->motion = (enum oct_eye_motion)motion;
    if (o->flow.is_asked) {
        o->flow.snr_db = isnan(o->mirror.snr_db) ? o->flow.snr_db : o->mirror.snr_db;
        o->mirror.snr_db = NAN;
    }
    if (o->flow.is_asked && (oct_synth_mirror_is_asked(&o->mirror) || o->is_film || o->fovea ||
                             o->n_volumes > 1 || o->n_drusen || o->n_shadows || o->cells.n_cells))
        return oct_command_misuse(argv[0], "--flow makes one recording (.h5, .raw, .bin), and what "
                                           "is of retinas, cells and mirrors does not go with it");
    if (oct_synth_mirror_is_asked(&o->mirror) &&
        (o->is_film || o->motion_name || o->fovea || o->n_volumes > 1 || o->n_drusen ||
         o->n_shadows || o->n_blinks || o->cells.n_cells))
        return oct_command_misuse(argv[0],
                                  "--mirror makes recordings (.h5, .raw, .bin), and what is of "
                                  "retinas and cells does not go with it");
    o->raw = has_suffix(o->out, ".raw") || has_suffix(o->out, ".bin");
    if (!o->raw && !o->is_film && !has_suffix(o->out, ".h5"))
        return oct_command_misuse(argv[0],
                                  "%s: the name must end in .h5, .raw or .bin, of a film of cells "
                                  "in .npy, .tif or .avi",
                                  o->out);
    return oct_synth_cells_paths(&o->cells, o->out, o->seed, &o->paths);
}

static int run_synth(struct oct_config *config, int argc, char **argv)
{
    struct synth_options options;
    struct synth s = {.options = &options, .config = config};
    struct oct_error err = {0};
    enum oct_err e;
    int misuse = read_options(&options, argc, argv);
    if (misuse)
        return misuse;
    if (options.flow.is_asked)
        return oct_synth_flow_make(&options.flow, config, options.out, options.raw,
                                   options.calibration, options.motion, (unsigned)options.n_blinks,
                                   options.seed);
    if (oct_synth_mirror_is_asked(&options.mirror))
        return oct_synth_mirror_make(&options.mirror, config, options.out, options.raw,
                                     options.calibration, options.seed);
    if (options.is_film)
        return oct_synth_cells_film(&options.cells, options.out, options.seed,
                                    config->pipeline.threads);
    e = prepare(&s, config, &err);
    if (!e && options.calibration)
        e = make_calibration(&s, &err);
    e = e ? e : options.raw ? make_raw(&s, &err) : make_volumes(&s, &err);
    if (!e && s.n_saturated)
        printf("%" PRIu64 " samples are saturated\n", s.n_saturated);
    free(s.spectra);
    free(s.line_valid);
    free(s.config_text);
    oct_plan_destroy(s.plan);
    oct_retina_destroy(s.retina);
    if (!e)
        return 0;
    return oct_command_fail(argv[0], &err);
}

const struct oct_command oct_command_synth = {
    .name = "synth",
    .usage = "OUT",
    .help = "makes a recording of a synthetic retina",
    .options = options_table,
    .n_least = 1,
    .n_most = 1,
    .too_few = "no file to write was named",
    .run = run_synth,
};
