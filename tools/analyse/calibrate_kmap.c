/* octctl calibrate kmap: the k map and the dispersion phase of a spectrometer from recordings of a
 * mirror, as files that octd takes, with a picture of every step. */
#include "tools/analyse/calibrate_kmap_report.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/picture_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES (9u + OCT_KMAP_MOST_MIRRORS)

struct kmap_options {
    const char *positions, *sides, *lines, *pictures;
    uint64_t order;
    bool json, force;
};

struct job {
    struct kmap_options given;
    double positions[OCT_KMAP_MOST_MIRRORS];
    int sides[OCT_KMAP_MOST_MIRRORS];
    struct oct_kmap_run run;
    struct oct_kmap_report report, spectra[OCT_KMAP_MOST_MIRRORS];
    struct oct_output_file files[MOST_FILES];
    char *names[MOST_FILES]; /* their paths */
    unsigned n_files;
    const char *made[2]; /* folders that were made; NULL */
};

static const struct oct_option options[] = {
    {"--positions", "UM,UM", "where each mirror stands, in um of optical path: the axial scale",
     OCT_OPTION_TEXT, .at = offsetof(struct kmap_options, positions),
     .needs = "a number of um for each mirror"},
    {"--sides", "++-",
     "on which side of zero delay each mirror lies (found with three or more\n"
     "mirrors, else all on one side)",
     OCT_OPTION_TEXT, .at = offsetof(struct kmap_options, sides),
     .needs = "a + or - for each mirror"},
    {"--lines", "A:B", "the A-lines A to B - 1 of each B-scan (all)", OCT_OPTION_TEXT,
     .at = offsetof(struct kmap_options, lines), .needs = "two lines, A:B"},
    {"--order", "N", "of the polynomials, 1 to 12 (as high as the residual falls)",
     OCT_OPTION_COUNT, .at = offsetof(struct kmap_options, order), .least = OCT_KMAP_LEAST_ORDER,
     .most = OCT_KMAP_MOST_ORDER, .needs = "a number from 1 to 12"},
    {"--pictures", "DIR", "write the pictures into the folder DIR (into FOLDER)", OCT_OPTION_TEXT,
     .at = offsetof(struct kmap_options, pictures), .needs = "a folder",
     .words = OCT_WORDS_FOLDERS},
    {"--json", NULL, "print the result as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct kmap_options, json)},
    {"--force", NULL, "replace files of FOLDER that exist, once the new ones are whole",
     OCT_OPTION_FLAG, .at = offsetof(struct kmap_options, force)},
    {NULL},
};

/* ---- what was asked for ---- */

static int read_sides(struct job *job, const char *name)
{
    const char *text = job->given.sides;
    for (uint32_t m = 0; m < job->run.n; m++) {
        if (text[m] != '+' && text[m] != '-')
            return oct_command_misuse(name, "--sides %s: needs a + or - for each of %u mirrors",
                                      text, job->run.n);
        job->sides[m] = text[m] == '+' ? 1 : -1;
    }
    if (text[job->run.n])
        return oct_command_misuse(name, "--sides %s: there are %u mirrors", text, job->run.n);
    job->run.setup.sides = job->sides;
    return 0;
}

static bool are_alike(const double *values, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

static int read_given(struct job *job, const char *name)
{
    const struct kmap_options *g = &job->given;
    struct oct_kmap_run *run = &job->run;
    if (g->positions) {
        const unsigned n = oct_option_doubles(g->positions, job->positions, OCT_KMAP_MOST_MIRRORS);
        if (n != run->n)
            return oct_command_misuse(name, "--positions %s: needs %u numbers, one for each mirror",
                                      g->positions, run->n);
        if (n > 1 && are_alike(job->positions, n))
            return oct_command_misuse(name, "--positions %s: the mirrors stand at one place",
                                      g->positions);
        run->positions_um = job->positions;
    }
    if (g->lines && !oct_picture_option_slab(g->lines, &run->first_line, &run->last_line))
        return oct_command_misuse(name, "--lines needs two lines, A:B, A below B");
    run->setup.order = (unsigned)g->order;
    return g->sides ? read_sides(job, name) : 0;
}

/* ---- files ---- */

static enum oct_err add(struct job *job, const char *folder, const char *name,
                        enum oct_err (*write)(void *, const char *, bool, struct oct_error *),
                        struct oct_kmap_report *report, struct oct_error *err)
{
    const size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room);
    if (!path)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    snprintf(path, room, "%s/%s", folder, name);
    job->names[job->n_files] = path;
    job->files[job->n_files++] = (struct oct_output_file){path, write, report};
    return OCT_OK;
}

static enum oct_err list_files(struct job *job, const char *folder, struct oct_error *err)
{
    struct oct_kmap_report *r = &job->report;
    const char *pictures = job->given.pictures ? job->given.pictures : folder;
    const bool parts = job->run.n > 1;
    *r = (struct oct_kmap_report){.run = &job->run, .folder = folder};
    enum oct_err e = add(job, folder, "calibration.ini", oct_kmap_write_ini, r, err);
    e = e ? e : add(job, folder, "kmap.txt", oct_kmap_write_kmap, r, err);
    e = e || !parts ? e : add(job, folder, "dispersion.txt", oct_kmap_write_phase, r, err);
    e = e ? e : add(job, folder, "report.json", oct_kmap_write_json, r, err);
    for (uint32_t m = 0; m < job->run.n && !e; m++) {
        char name[40];
        snprintf(name, sizeof(name), "spectrum-%u.png", m + 1);
        job->spectra[m] = *r;
        job->spectra[m].mirror = m;
        e = add(job, pictures, name, oct_kmap_draw_spectrum, &job->spectra[m], err);
    }
    e = e ? e : add(job, pictures, "phases.png", oct_kmap_draw_phases, r, err);
    e = e ? e : add(job, pictures, "residuals.png", oct_kmap_draw_residuals, r, err);
    e = e ? e : add(job, pictures, "kmap.png", oct_kmap_draw_map, r, err);
    e = e || !parts ? e : add(job, pictures, "dispersion.png", oct_kmap_draw_dispersion, r, err);
    return e ? e : add(job, pictures, "peaks.png", oct_kmap_draw_peaks, r, err);
}

static enum oct_err make_folder(struct job *job, unsigned i, const char *folder,
                                struct oct_error *err)
{
    if (!folder)
        return OCT_OK;
    if (mkdir(folder, 0777) == 0)
        job->made[i] = folder;
    else if (errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot make the folder", folder);
    return OCT_OK;
}

/* ---- the work ---- */

static enum oct_err calibrate(struct job *job, const char *folder, struct oct_error *err)
{
    const struct oct_input_files read = {job->run.paths, job->run.n, {NULL}};
    job->run.cancel = oct_interrupt_watch();
    enum oct_err e = list_files(job, folder, err);
    e = e ? e : make_folder(job, 0, folder, err);
    e = e ? e : make_folder(job, 1, job->given.pictures, err);
    e = e ? e : oct_outputs_check(job->files, job->n_files, job->given.force, &read, err);
    e = e ? e : oct_kmap_run(&job->run, err);
    e = e ? e : oct_outputs_write(job->files, job->n_files, job->given.force, err);
    for (unsigned i = 2; i-- > 0 && e;)
        if (job->made[i])
            rmdir(job->made[i]); /* which fails if others have put something there */
    return e;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job *job = calloc(1, sizeof(*job));
    struct oct_error err = {.text = "out of memory", .code = OCT_E_NO_MEMORY};
    if (!job)
        return oct_command_fail(argv[0], &err);
    int status = oct_options_read(&oct_command_calibrate_kmap, &job->given, &argc, argv);
    job->run.config = config;
    job->run.paths = (const char *const *)(argv + 1);
    job->run.n = argc > 2 ? (uint32_t)argc - 2 : 0;
    status = status ? status : read_given(job, argv[0]);
    if (!status && calibrate(job, argv[argc - 1], &err))
        status = oct_command_fail_at_work(argv[0], &err);
    else if (!status) {
        oct_kmap_warn(&job->report, argv[0]);
        if (job->given.json)
            status = oct_command_printed(argv[0], oct_kmap_print_json(&job->report));
        else
            oct_kmap_print(&job->report);
    }
    oct_kmap_run_finish(&job->run);
    for (unsigned i = 0; i < job->n_files; i++)
        free(job->names[i]);
    free(job);
    return status;
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
    .run = run,
};
