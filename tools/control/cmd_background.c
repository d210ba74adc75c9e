/* background: the mean spectrum of a few B-scans as a file that calibration.background takes. */
#include "formats/csv.h"
#include "formats/whole_file.h"
#include "pipeline/flow/background.h"
#include "tools/commands.h"
#include "tools/control/background.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct oct_option options[] = {
    {"--bscans", "N", "the mean of N B-scans (64; of a recording the first 4096)", OCT_OPTION_COUNT,
     .at = offsetof(struct oct_background_options, n_bscans), .least = 1,
     .most = OCT_BACKGROUND_MOST_BSCANS, .needs = "a number from 1 to 4096"},
    {"--force", NULL, "replace OUT.txt if it exists", OCT_OPTION_FLAG,
     .at = offsetof(struct oct_background_options, force)},
    {"--timeout", "S", "wait at most S seconds for the B-scans of a running octd (10)",
     OCT_OPTION_NUMBER, .at = offsetof(struct oct_background_options, timeout_s), .least = 0.1,
     .most = 3600, .needs = "a number of seconds from 0.1 to 3600"},
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT,
     .at = offsetof(struct oct_background_options, endpoint)},
    {NULL},
};

/* The header: a line that begins with # is none of the values. */
static void write_header(const struct oct_background_line *line, char *text, size_t bytes)
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

static enum oct_err write_file(const char *path, bool force, const struct oct_background_line *line,
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

static void warn_of_saturation(const char *name, const struct oct_background_line *line)
{
    const double n = line->n_lines * line->n;
    if (line->n_saturated > 0)
        fprintf(stderr,
                "octctl %s: warning: saturated: %.0f of %.0f samples (%.2g %%) are at the camera's "
                "limit (camera.bits): less light or a shorter exposure\n",
                name, line->n_saturated, n, 100 * line->n_saturated / n);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct oct_background_options given = {.timeout_s = 10};
    struct oct_background_line line = {.n = 0};
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
    e = recording ? oct_background_of_recording(&line, config, recording, &given, &err)
                  : oct_background_live(&line, config, &given, &err);
    if (!e)
        e = write_file(path, given.force, &line, &err);
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
    .run = run,
};
