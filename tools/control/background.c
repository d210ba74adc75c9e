/* octctl background: the mean spectrum of a few B-scans as a file that calibration.background
 * takes, from a recording or from a running octd: it takes the next B-scans beside its stream, the
 * status says how far it is, and the values come a few thousand at a time. */
#include "pipeline/flow/background.h"
#include "formats/csv.h"
#include "formats/recording.h"
#include "formats/whole_file.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/control/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ANSWER_S 5.0 /* octd answers within 100 ms, or it is not there */
#define GRACE_S 5.0  /* beyond the time that octd itself gives its B-scans */

struct options {
    uint64_t n_bscans; /* 0: not given */
    double timeout_s;  /* live: for its B-scans */
    const char *endpoint;
    bool force;
};

/* A mean spectrum and where it is from. */
struct line {
    char source[600]; /* the recording's path, or the daemon's endpoint */
    uint32_t n;       /* N */
    double *values;   /* [n] counts */
    double n_bscans, n_lines, n_saturated;
};

/* ---- from a recording ---- */

/* Where neither a file nor --set says how many bits a sample has, the recording's own configuration
 * does, unless it is damaged. */
static unsigned bits_of(const struct oct_recording *recording, const struct oct_config *config)
{
    const char *text = oct_recording_config_text(recording);
    unsigned bits = config->camera.bits;
    if (!text || oct_config_is_set(config, "camera.bits"))
        return bits;
    struct oct_config *own = oct_alloc(1, sizeof(*own));
    oct_config_init(own);
    if (oct_config_load_text(own, text, "the recording's configuration", NULL) == OCT_OK)
        bits = own->camera.bits;
    free(own);
    return bits;
}

/* Adds the first n_most B-scans that came. */
static enum oct_err add_bscans(struct oct_background *b, struct oct_recording *recording,
                               uint64_t n_most, struct oct_error *err)
{
    const size_t n = (size_t)b->geometry.n_lines * b->geometry.n_samples;
    struct oct_raw_frame frame = {.spectra = oct_alloc(n, sizeof(uint16_t)),
                                  .line_valid = oct_alloc(b->geometry.n_lines, 1)};
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; !e && i < oct_recording_n_bscans(recording) && b->n_bscans < n_most; i++) {
        bool valid;
        e = oct_recording_read(recording, i, &frame, &valid, err);
        if (!e && valid)
            oct_background_add(b, &frame);
    }
    free(frame.spectra);
    free(frame.line_valid);
    return e;
}

static void take_line(struct line *line, const struct oct_background *b)
{
    line->n = b->geometry.n_samples;
    line->n_bscans = (double)b->n_bscans;
    line->n_lines = (double)b->n_lines;
    line->n_saturated = (double)b->n_saturated;
    line->values = oct_alloc(line->n, sizeof(*line->values));
    for (uint32_t i = 0; i < line->n; i++)
        line->values[i] = oct_background_at(b, i);
}

static enum oct_err read_recording(struct line *line, struct oct_config *config, const char *path,
                                   const struct options *options, struct oct_error *err)
{
    struct oct_recording *recording;
    struct oct_background b = {.sums = NULL};
    enum oct_err e = oct_recording_open(&recording, path, config, err);
    if (e)
        return e;
    snprintf(line->source, sizeof(line->source), "%s", path);
    const struct oct_geometry g = {.n_samples = oct_recording_n_samples(recording),
                                   .n_lines = oct_recording_n_lines(recording)};
    e = oct_background_init(&b, &g, bits_of(recording, config), err);
    if (!e)
        e = add_bscans(&b, recording,
                       options->n_bscans ? options->n_bscans : OCT_BACKGROUND_MOST_BSCANS, err);
    if (!e && options->n_bscans > b.n_bscans)
        e = oct_fail(err, OCT_E_STATE,
                     "%s has %" PRIu64 " B-scans with A-lines, and --bscans wants %" PRIu64, path,
                     b.n_bscans, options->n_bscans);
    e = e ? e : oct_background_check(&b, err);
    if (!e)
        take_line(line, &b);
    oct_background_finish(&b);
    oct_recording_close(recording);
    return e;
}

/* ---- from a running octd ---- */

static enum oct_err wait_done(struct oct_control_wait *wait, const struct options *options,
                              double *number, struct line *line, struct oct_error *err)
{
    const uint64_t n_bscans = options->n_bscans ? options->n_bscans : OCT_BACKGROUND_BSCANS;
    char request[128];
    cJSON *status = NULL;
    const cJSON *result = NULL;
    snprintf(request, sizeof(request), "{\"cmd\":\"background\",\"bscans\":%u,\"timeout_s\":%.3f}",
             (unsigned)n_bscans, options->timeout_s);
    enum oct_err e = oct_errand_ask(wait, request, number, err);
    wait->most_s = options->timeout_s + GRACE_S;
    e = e ? e : oct_errand_wait(wait, *number, &status, &result, err);
    const double n = oct_json_number(result, "samples");
    line->n_bscans = oct_json_number(result, "bscans");
    line->n_lines = oct_json_number(result, "lines");
    line->n_saturated = oct_json_number(result, "saturated");
    if (!e && (!(n >= 1 && n <= OCT_MAX_SAMPLES) || !(line->n_lines >= 1) ||
               !(line->n_bscans >= 1) || !(line->n_saturated >= 0)))
        e = oct_fail(err, OCT_E_FORMAT, "octd's status says nothing of the background");
    line->n = e ? 0 : (uint32_t)n;
    cJSON_Delete(status);
    return e;
}

/* Adds the values of a reply to those that are there. */
static enum oct_err add_values(const cJSON *answer, double number, uint32_t *n_have,
                               struct line *line, struct oct_error *err)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(answer, "values"), *value;
    enum oct_err e = oct_errand_granted(answer, err);
    if (e)
        return e;
    if (oct_json_number(answer, "number") != number)
        return oct_fail(err, OCT_E_STATE, "another command came between, or octd started anew");
    if (!cJSON_IsArray(values) || !values->child)
        return oct_fail(err, OCT_E_FORMAT, "octd's answer has no values");
    cJSON_ArrayForEach(value, values)
    {
        const double counts = cJSON_GetNumberValue(value);
        if (*n_have == line->n || !(counts >= 0 && counts <= UINT16_MAX))
            return oct_fail(err, OCT_E_FORMAT, "octd's values are no counts, or too many");
        line->values[(*n_have)++] = counts;
    }
    return OCT_OK;
}

static enum oct_err ask_octd(struct line *line, const struct oct_config *config,
                             const struct options *options, struct oct_error *err)
{
    struct oct_control_wait wait = {.command = "background"};
    double number = 0;
    uint32_t n_have = 0;
    enum oct_err e = oct_control_open(&wait.control, config, options->endpoint, ANSWER_S, err);
    if (e)
        return e;
    snprintf(line->source, sizeof(line->source), "%s", oct_control_endpoint(wait.control));
    e = wait_done(&wait, options, &number, line, err);
    line->values = oct_alloc(line->n, sizeof(*line->values));
    while (!e && n_have < line->n) {
        char request[64];
        cJSON *answer = NULL;
        snprintf(request, sizeof(request), "{\"cmd\":\"background\",\"first\":%u}", n_have);
        e = oct_control_ask(wait.control, request, &answer, NULL, err);
        e = e ? e : add_values(answer, number, &n_have, line, err);
        cJSON_Delete(answer);
    }
    oct_control_close(wait.control);
    return e;
}

/* ---- the file ---- */

/* The header: a line that begins with # is none of the values. */
static void write_header(const struct line *line, char *text, size_t bytes)
{
    const time_t now = time(NULL);
    char date[32] = "?", source[sizeof(line->source)];
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(source, sizeof(source), "%s", line->source);
    for (char *c = source; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    snprintf(text, bytes,
             "# background: the mean of %.0f A-lines (%.0f B-scans), counts\n"
             "# recorded: %s\n"
             "# source: %s\n"
             "# saturated samples: %.0f of %.0f",
             line->n_lines, line->n_bscans, date, source, line->n_saturated,
             line->n_lines * line->n);
}

static enum oct_err write_file(const char *path, bool force, const struct line *line,
                               struct oct_error *err)
{
    char header[1024];
    struct oct_csv *csv;
    write_header(line, header, sizeof(header));
    enum oct_err e = oct_csv_create(&csv, path, force, header, err);
    if (e)
        return e;
    for (uint32_t i = 0; i < line->n; i++) {
        oct_csv_number(csv, line->values[i]);
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

static void warn_of_saturation(const char *name, const struct line *line)
{
    const double n = line->n_lines * line->n;
    if (line->n_saturated > 0)
        fprintf(stderr,
                "octctl %s: warning: saturated: %.0f of %.0f samples (%.2g %%) are at the camera's "
                "limit (camera.bits): less light or a shorter exposure\n",
                name, line->n_saturated, n, 100 * line->n_saturated / n);
}

/* ---- the command ---- */

static const struct oct_option options[] = {
    {"--bscans", "N", "the mean of N B-scans (64; of a recording the first 4096)", OCT_OPTION_COUNT,
     .at = offsetof(struct options, n_bscans), .least = 1, .most = OCT_BACKGROUND_MOST_BSCANS},
    {"--force", NULL, "replace OUT.txt if it exists", OCT_OPTION_FLAG,
     .at = offsetof(struct options, force)},
    {"--timeout", "S", "wait at most S seconds for the B-scans of a running octd",
     OCT_OPTION_NUMBER, .at = offsetof(struct options, timeout_s), .least = 0.1, .most = 3600,
     .standard = "10"},
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT,
     .at = offsetof(struct options, endpoint)},
    {NULL},
};

static int run_background(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    struct line line = {.n = 0};
    struct oct_error err;
    int status = oct_options_read(&oct_command_background, &given, &argc, argv);
    if (status)
        return status;
    const char *const path = argv[1], *const recording = argc > 2 ? argv[2] : NULL;
    if (recording && given.endpoint)
        return oct_command_misuse(argv[0], "RECORDING and --endpoint: it is one or the other");
    enum oct_err e = oct_whole_file_may(path, given.force, &recording, 1, &err);
    if (e)
        return oct_command_fail(argv[0], &err);
    e = recording ? read_recording(&line, config, recording, &given, &err)
                  : ask_octd(&line, config, &given, &err);
    e = e ? e : write_file(path, given.force, &line, &err);
    if (!e) {
        warn_of_saturation(argv[0], &line);
        printf("%s: the mean of %.0f A-lines (%.0f B-scans)\n", path, line.n_lines, line.n_bscans);
    }
    free(line.values);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_background = {
    .name = "background",
    .usage = "OUT.txt [RECORDING]",
    .help = "records a background line from the stream",
    .options = options,
    .n_least = 1,
    .n_most = 2,
    .too_few = "say where to: OUT.txt",
    .run = run_background,
};
