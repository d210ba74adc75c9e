/* octctl calibrate report: what recordings of a mirror show with a calibration. */
#include "tools/analyse/calibrate_report.h"

#include "tools/commands.h"
#include "tools/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_FILES 64

struct given {
    const char *picture, *windows;
    double axial_um; /* NaN: not given */
    bool json, force;
};

static const struct oct_option options[] = {
    {"MIRROR...", NULL, "recordings of a mirror, a depth each", OCT_OPTION_ARGUMENT, .at = 0},
    {"--picture", "FILE.png", "the A-lines of all files", OCT_OPTION_TEXT,
     .at = offsetof(struct given, picture), .needs = "a file"},
    {"--windows", "FILE.png", "the peak of the middle depth with every window", OCT_OPTION_TEXT,
     .at = offsetof(struct given, windows), .needs = "a file"},
    {"--axial-um", "UM",
     "optical path of a depth pixel, for um where a k map is configured, which\n"
     "has no scale",
     OCT_OPTION_NUMBER, .at = offsetof(struct given, axial_um), .least = OCT_OPTION_ABOVE_0,
     .most = 1000, .needs = "a number of micrometres above 0"},
    {"--json", NULL, "print JSON", OCT_OPTION_FLAG, .at = offsetof(struct given, json)},
    {"--force", NULL, "replace pictures that exist", OCT_OPTION_FLAG,
     .at = offsetof(struct given, force)},
    {NULL},
};

static enum oct_err measure_all(struct oct_measure *files, unsigned n, char **paths,
                                const struct oct_config *config, const struct given *given,
                                struct oct_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        struct oct_error why = {0};
        const enum oct_err e = oct_measure_init(&files[i], paths[i], config, given->axial_um, &why);
        if (e)
            return oct_fail(err, e, "mirror %u: %s", i + 1, why.text);
    }
    return OCT_OK;
}

/* One line for each recording that is no good mirror; returns whether there is one. */
static bool blame(const char *name, const struct oct_measure *files, unsigned n)
{
    bool is_bad = false;

    for (unsigned i = 0; i < n; i++) {
        const enum oct_mirror_state state = files[i].configured.mirror.state;
        if (files[i].why)
            fprintf(stderr, "octctl %s: mirror %u (%s): %s\n", name, i + 1, files[i].path,
                    files[i].why);
        else if (state != OCT_MIRROR_FOUND)
            fprintf(stderr, "octctl %s: mirror %u (%s): no peak to measure: %s\n", name, i + 1,
                    files[i].path, oct_mirror_state_names[state]);
        else
            continue;
        is_bad = true;
    }
    return is_bad;
}

static int show(const char *name, struct oct_calibrate_report *report, const struct given *given,
                const struct oct_output_file *outputs, struct oct_error *err)
{
    const enum oct_err e = oct_outputs_write(outputs, 2, given->force, err);

    if (e)
        return oct_command_fail_at_work(name, err);
    if (given->json && !oct_calibrate_report_json(report))
        return oct_command_printed(name, false);
    if (!given->json)
        oct_calibrate_report_text(report);
    return blame(name, report->files, report->n) ? 1 : 0;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct given given = {.axial_um = NAN};
    struct oct_calibrate_report report;
    struct oct_error err;
    int status = oct_options_read(&oct_command_calibrate_report, &given, &argc, argv);

    if (status)
        return status;
    const unsigned n = (unsigned)argc - 1;
    const struct oct_output_file outputs[] = {
        {given.picture, oct_calibrate_report_peaks, &report},
        {given.windows, oct_calibrate_report_windows, &report},
    };
    const struct oct_input_files inputs = {(const char *const *)(argv + 1), n, {NULL}};
    enum oct_err e = oct_outputs_check(outputs, 2, given.force, &inputs, &err);
    if (e)
        return oct_command_fail(argv[0], &err);
    struct oct_measure *files = calloc(n, sizeof(*files));
    if (!files) {
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    e = measure_all(files, n, argv + 1, config, &given, &err);
    if (e) {
        status = oct_command_fail_at_work(argv[0], &err);
    } else {
        oct_calibrate_report_init(&report, files, n);
        status = show(argv[0], &report, &given, outputs, &err);
    }
    for (unsigned i = 0; i < n; i++)
        oct_measure_finish(&files[i]);
    free(files);
    return status;
}

const struct oct_command oct_command_calibrate_report = {
    .name = "calibrate report",
    .usage = "MIRROR... [OPTIONS]",
    .help = "what recordings of a mirror show with the configured calibration",
    .options = options,
    .n_least = 1,
    .n_most = MOST_FILES,
    .too_few = "no recording of a mirror was named",
    .run = run,
};
