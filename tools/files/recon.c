/* octctl recon: reads a recording, or many, and writes a volume file of each, through the daemon's
 * own pipeline. octctl analyse: the same, and what octd's analyses find in it.
 *
 * Many are reconstructed several at a time by threads that each have an engine of their own
 * (recon_run.h), which serves all recordings of one plan, on one pool of workers. A recording that
 * fails is told in one line on stderr and stops no other.
 *
 *     main thread: starts the lanes, draws one line of progress, joins them
 *     lane 0..N-1: take the next recording, run it, book it -> ... until there are no more
 */
#include "tools/files/recon.h"

#include "config/analysis.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/files/recon_run.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

void oct_recon_names_finish(struct oct_recon_names *names)
{
    for (unsigned i = 0; i < names->n; i++) {
        free(names->in[i]);
        free(names->out[i]);
    }
    free(names->in);
    free(names->out);
    *names = (struct oct_recon_names){0};
}

static enum oct_err add_recording(struct oct_recon_names *names, const char *in, const char *folder,
                                  struct oct_error *err)
{
    const char *slash = strrchr(in, '/'), *base = slash ? slash + 1 : in;
    const char *dot = strrchr(base, '.');
    const int n_stem = (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base));
    if (n_stem == 0 || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return oct_fail(err, OCT_E_ARG, "'%s': names no file", in);
    if (strcmp(in, "-") == 0)
        return oct_fail(err, OCT_E_ARG,
                        "'-': a pipe has no name for its output: give one, "
                        "without --out-dir");
    const bool ends = folder[0] && folder[strlen(folder) - 1] == '/';
    names->in = oct_alloc_more(names->in, names->n + 1, sizeof(char *));
    names->out = oct_alloc_more(names->out, names->n + 1, sizeof(char *));
    names->in[names->n] = oct_alloc_text("%s", in);
    names->out[names->n++] = oct_alloc_text("%s%s%.*s.h5", folder, ends ? "" : "/", n_stem, base);
    return OCT_OK;
}

static enum oct_err add_list(struct oct_recon_names *names, const char *list, const char *folder,
                             struct oct_error *err)
{
    FILE *file = strcmp(list, "-") == 0 ? stdin : fopen(list, "re");
    char *name = NULL;
    size_t room = 0;
    ssize_t n;
    enum oct_err e = OCT_OK;
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", list);
    while (!e && (n = getdelim(&name, &room, '\0', file)) > 0)
        if (name[n - 1] != '\0')
            e = oct_fail(err, OCT_E_FORMAT, "%s: ends within a name: each ends with a NUL byte",
                         list);
        else if (n == 1)
            e = oct_fail(err, OCT_E_FORMAT, "%s: name %u is empty", list, names->n + 1);
        else
            e = add_recording(names, name, folder, err);
    if (!e && ferror(file))
        e = oct_fail(err, OCT_E_IO, "%s: cannot be read", list);
    if (file != stdin)
        fclose(file);
    free(name);
    return e;
}

struct pair {
    const char *in, *out;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->out, ((const struct pair *)b)->out);
}

/* Two recordings of one name, of different folders or formats, would have one output. */
static enum oct_err check_pairs(const struct oct_recon_names *names, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    struct pair *pairs = oct_alloc(names->n, sizeof(*pairs));
    for (unsigned i = 0; i < names->n; i++)
        pairs[i] = (struct pair){names->in[i], names->out[i]};
    qsort(pairs, names->n, sizeof(*pairs), compare);
    for (unsigned i = 1; i < names->n && !e; i++)
        if (strcmp(pairs[i - 1].out, pairs[i].out) == 0)
            e = oct_fail(err, OCT_E_ARG, "%s and %s: both would become %s: give them to two runs",
                         pairs[i - 1].in, pairs[i].in, pairs[i].out);
    free(pairs);
    return e;
}

enum oct_err oct_recon_names_init(struct oct_recon_names *names, const char *const *in, unsigned n,
                                  const char *list, const char *folder, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *names = (struct oct_recon_names){0};
    for (unsigned i = 0; i < n && !e; i++)
        e = add_recording(names, in[i], folder, err);
    if (!e && list)
        e = add_list(names, list, folder, err);
    if (!e && names->n == 0)
        e = oct_fail(err, OCT_E_ARG, "no recording is named");
    return e ? e : check_pairs(names, err);
}

enum oct_err oct_recon_make_folder(const char *folder, struct oct_error *err)
{
    char *path = oct_alloc_text("%s", folder);
    struct stat st;
    int failed = 0;
    for (char *slash = path; slash && *path;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        failed = mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
        if (slash)
            *slash = '/';
    }
    free(path);
    if (!failed && (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)))
        failed = ENOTDIR;
    return failed ? oct_fail_errno(err, OCT_E_IO, failed, "%s: cannot make the folder", folder)
                  : OCT_OK;
}

/* ---- many at a time ---- */

#define MOST_JOBS 64u
#define ENOUGH_JOBS 4u
#define LOOK_US 100000u

struct options {
    bool force, skip, has_complex;
    const char *folder, *list, *results, *analyses;
    uint64_t jobs;
};

/* Those that are named run, and are awake; their other settings are the configuration's. */
static enum oct_err choose_analyses(struct oct_config *config, const char *names,
                                    struct oct_error *err)
{
    char key[OCT_IMAGE_NAME_BYTES + sizeof(".enabled")], value[OCT_CONFIG_STRING_BYTES];
    enum oct_err e = oct_config_set(config, "analysis.run", names, "", err);
    for (const char *at = config->analysis.run; *at && !e;) {
        const struct oct_analysis_ops *ops;
        if ((e = oct_config_analysis_next(&at, &ops, err)))
            return e;
        snprintf(key, sizeof(key), "%s.enabled", ops->settings_of ? ops->settings_of : ops->name);
        if (oct_config_get(config, key, value, sizeof(value), NULL) == OCT_OK)
            e = oct_config_set(config, key, "yes", "", err);
    }
    return e;
}

struct run;

/* A thread that reconstructs one recording after another. */
struct lane {
    struct run *run;
    pthread_t thread;
    struct oct_recon *recon;
    uint64_t done, all; /* B-scans of the one that it is at; guarded by the run's lock */
};

struct run {
    const struct oct_config *config;
    const struct options *given;
    const struct oct_recon_names *names;
    const volatile sig_atomic_t *cancel;
    struct oct_workers *workers;
    struct oct_progress progress;
    struct lane lanes[MOST_JOBS];
    unsigned n_lanes;
    int results; /* -1: nobody reads them */

    pthread_mutex_t lock;   /* guards what follows, and stderr */
    pthread_cond_t ended;   /* n_ended has risen */
    unsigned next, n_ended; /* lanes that have ended */
    unsigned n_done, n_skipped, n_failed, n_engines;
    uint64_t n_lines; /* A-lines of those done */
    bool was_cancelled;
    char engine[16];      /* "cpu" or "cuda"; "": none was needed */
    struct oct_error why; /* of results that could not be written */
};

bool oct_recon_is_there(const char *path)
{
    struct oct_volume_reader *reader;
    if (access(path, F_OK) != 0 || oct_volume_open(&reader, path, NULL) != OCT_OK)
        return false;
    const bool is_there = oct_volume_facts(reader)->depth > 0;
    oct_volume_reader_destroy(reader);
    return is_there;
}

/* What has the output's name and cannot be left out. */
static enum oct_err check_damage(const char *out, struct oct_error *err)
{
    struct oct_volume_reader *reader;
    struct oct_error why = {.text = ""};
    if (access(out, F_OK) != 0)
        return OCT_OK;
    if (oct_volume_open(&reader, out, &why) != OCT_OK)
        return oct_fail(err, OCT_E_IO,
                        "%s: exists already, and is damaged or no reconstruction "
                        "(%s); --force makes it anew",
                        out, why.text);
    oct_volume_reader_destroy(reader);
    return OCT_OK;
}

/* ---- booking ---- */

/* Lock held. */
static void note_result(struct run *r, unsigned i, const char *state, const char *why)
{
    char line[OCT_ERROR_TEXT_BYTES + 64];
    if (r->results < 0)
        return;
    const int n = snprintf(line, sizeof(line), "%u %s%s%s\n", i, state, *why ? " " : "", why);
    if (write(r->results, line, (size_t)n) != n && !r->why.code)
        oct_fail_errno(&r->why, OCT_E_IO, errno, "%s: cannot be written", r->given->results);
}

static void book(struct run *r, unsigned i, enum oct_err e, bool is_skipped,
                 const struct oct_recon_result *result, const struct oct_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (e == OCT_E_CLOSED) {
        r->was_cancelled = true; /* neither done nor failed */
    } else if (e) {
        r->n_failed++;
        oct_progress_clear(&r->progress);
        fprintf(stderr, "octctl recon: %s\n", err->text);
        note_result(r, i, "failed", err->text);
    } else if (is_skipped) {
        r->n_skipped++;
        note_result(r, i, "skipped", "");
    } else {
        r->n_done++;
        r->n_lines += result->n_bscans * result->n_lines;
        note_result(r, i, "done", "");
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- a lane ---- */

static void note_progress(void *context, uint64_t done, uint64_t all)
{
    struct lane *lane = context;
    pthread_mutex_lock(&lane->run->lock);
    lane->done = done;
    lane->all = all;
    pthread_mutex_unlock(&lane->run->lock);
}

/* Each message of a recording names it: that of a fault of the configuration need not. */
static void name_recording(struct oct_error *err, const char *in)
{
    char text[OCT_ERROR_TEXT_BYTES];
    struct oct_error name; /* as messages show it, in one line */
    oct_fail(&name, err->code, "%s", in);
    if (strstr(err->text, name.text))
        return;
    memcpy(text, err->text, sizeof(text));
    oct_fail(err, err->code, "%s: %s", in, text);
}

static void run_next(struct lane *lane, unsigned i)
{
    const struct run *r = lane->run;
    const bool is_there = r->given->skip && oct_recon_is_there(r->names->out[i]);
    const struct oct_recon_job job = {
        .in = r->names->in[i],
        .out = r->names->out[i],
        .force = r->given->force,
        .has_complex = r->given->has_complex,
        .analyses = r->given->analyses != NULL,
        .progress = note_progress,
        .progress_context = lane,
        .cancel = r->cancel,
    };
    struct oct_recon_result result = {0};
    struct oct_error err = {.text = ""};
    enum oct_err e = OCT_OK;
    if (r->given->skip && !r->given->force && !is_there)
        e = check_damage(job.out, &err);
    if (!e && !is_there)
        e = oct_recon_run(lane->recon, r->config, &job, &result, &err);
    if (e)
        name_recording(&err, job.in);
    book(lane->run, i, e, is_there, &result, &err);
    note_progress(lane, 0, 0);
}

static bool take_next(struct run *r, unsigned *i)
{
    pthread_mutex_lock(&r->lock);
    const bool cancelled = *r->cancel;
    const bool has = r->next < r->names->n && !cancelled;
    r->was_cancelled |= cancelled && r->next < r->names->n;
    *i = r->next;
    r->next += has;
    pthread_mutex_unlock(&r->lock);
    return has;
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    struct run *r = lane->run;
    unsigned i;
    while (take_next(r, &i))
        run_next(lane, i);
    pthread_mutex_lock(&r->lock);
    r->n_ended++;
    if (oct_recon_engine_name(lane->recon)[0])
        snprintf(r->engine, sizeof(r->engine), "%s", oct_recon_engine_name(lane->recon));
    r->n_engines += oct_recon_n_engines(lane->recon);
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the main thread ---- */

/* Lock held. */
static void show_progress(struct run *r, unsigned n)
{
    const unsigned ended = r->n_done + r->n_skipped + r->n_failed;
    const double seconds = oct_progress_seconds(&r->progress);
    double work = 0; /* of recordings, without those skipped, which take no time */
    char text[128], left[32] = "";

    for (unsigned k = 0; k < r->n_lanes; k++)
        work += r->lanes[k].all ? (double)r->lanes[k].done / (double)r->lanes[k].all : 0;
    const double rest = fmax(0, (double)(n - ended) - work);
    work += r->n_done + r->n_failed;
    if (work > 0 && rest > 0) {
        const unsigned s = (unsigned)fmin(ceil(seconds * rest / work), 3599999);
        snprintf(left, sizeof(left), ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    }
    const double rate = seconds > 0 ? work / seconds : 0;
    snprintf(text, sizeof(text), "%u of %u recordings, %u failed, %.*f a second%s", ended, n,
             r->n_failed, rate < 10 ? 1 : 0, rate, left);
    oct_progress_say(&r->progress, 1 - rest / n, text);
}

static enum oct_err start_lanes(struct run *r, unsigned n, struct oct_error *err)
{
    for (; r->n_lanes < n; r->n_lanes++) {
        struct lane *lane = &r->lanes[r->n_lanes];
        lane->run = r;
        lane->recon = oct_recon_create(r->workers);
        const enum oct_err e =
            oct_thread_start(&lane->thread, "octd-recon", run_lane, lane, "reconstruction", err);
        if (e) {
            oct_recon_destroy(lane->recon);
            return e;
        }
    }
    return OCT_OK;
}

static void await_lanes(struct run *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->n_ended < r->n_lanes) {
        show_progress(r, r->names->n);
        oct_condition_wait_us(&r->ended, &r->lock, LOOK_US);
    }
    oct_progress_clear(&r->progress);
    pthread_mutex_unlock(&r->lock);
    for (unsigned k = 0; k < r->n_lanes; k++) {
        pthread_join(r->lanes[k].thread, NULL);
        oct_recon_destroy(r->lanes[k].recon);
    }
}

static enum oct_err open_results(struct run *r, struct oct_error *err)
{
    const char *path = r->given->results;
    r->results = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    return path && r->results < 0
               ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path)
               : OCT_OK;
}

/* Recordings at a time, where nobody says how many. One computes while another waits for the disk:
 * with two threads 100 recordings of 0.85 MB took 4.7 s one at a time, 2.5 s two, 1.9 s three and
 * 2.2 s four at a time. Each lane holds rings for 16 B-scans, so there are few of them. */
static unsigned count_jobs(const struct run *r, unsigned n_threads)
{
    const unsigned enough = n_threads < ENOUGH_JOBS ? n_threads + 1 : ENOUGH_JOBS;
    unsigned n = r->given->jobs ? (unsigned)r->given->jobs : enough;
    n = n < MOST_JOBS ? n : MOST_JOBS;
    return n < r->names->n ? n : r->names->n;
}

static void report_many(const struct run *r)
{
    const double seconds = oct_progress_seconds(&r->progress);
    printf("%s: %u done, %u skipped, %u failed in %.2f s", r->given->folder, r->n_done,
           r->n_skipped, r->n_failed, seconds);
    if (r->n_done)
        printf(" (%.1f recordings/s, %.0f A-lines/s), %u at a time, %u engine%s, %s",
               r->n_done / seconds, (double)r->n_lines / seconds, r->n_lanes, r->n_engines,
               r->n_engines == 1 ? "" : "s", r->engine);
    putchar('\n');
}

/* An error is one of the whole run. */
static enum oct_err run_lanes(struct run *r, struct oct_error *err)
{
    pthread_mutex_init(&r->lock, NULL);
    oct_condition_init(&r->ended);
    enum oct_err e = open_results(r, err);
    e = e ? e : oct_workers_create(&r->workers, r->config->pipeline.threads, err);
    e = e ? e : start_lanes(r, count_jobs(r, oct_workers_n_threads(r->workers)), err);
    await_lanes(r); /* those that did start do all */
    if (r->n_lanes > 0)
        e = OCT_OK;
    if (!e && r->why.code) {
        e = r->why.code;
        *err = r->why;
    }
    oct_workers_destroy(r->workers);
    if (r->results >= 0)
        close(r->results);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    return e;
}

static int run_names(const struct oct_config *config, const struct options *given,
                     const struct oct_recon_names *names)
{
    struct run *r = oct_alloc(1, sizeof(*r));
    struct oct_error err;
    *r = (struct run){
        .config = config,
        .given = given,
        .names = names,
        .cancel = oct_interrupt_watch(),
        .progress = {.started_ns = oct_clock_ns(), .quiet = config->quiet},
    };
    enum oct_err e = run_lanes(r, &err);
    if (!e)
        report_many(r);
    if (!e && r->was_cancelled)
        e = oct_fail(&err, OCT_E_CLOSED, "interrupted: %u of %u recordings are not done",
                     names->n - r->n_done - r->n_skipped - r->n_failed, names->n);
    const int status = e ? oct_command_fail("recon", &err) : r->n_failed > 0;
    free(r);
    return status;
}

static int run_many(const struct oct_config *config, const struct options *given, int argc,
                    char **argv)
{
    struct oct_recon_names names;
    struct oct_error err;
    enum oct_err e = oct_recon_names_init(&names, (const char *const *)argv + 1,
                                          (unsigned)(argc - 1), given->list, given->folder, &err);
    e = e ? e : oct_recon_make_folder(given->folder, &err);
    const int status = e ? oct_command_fail(argv[0], &err) : run_names(config, given, &names);
    oct_recon_names_finish(&names);
    return status;
}

/* ---- one recording ---- */

static void report(const struct oct_recon *recon, const struct oct_recon_job *job,
                   const struct oct_recon_result *result)
{
    printf("%s: %llu B-scans of %u lines, %u depth pixels in %.2f s (%.0f A-lines/s), %s\n",
           job->out, (unsigned long long)result->n_bscans, result->n_lines, result->depth,
           result->seconds, (double)result->n_bscans * result->n_lines / result->seconds,
           oct_recon_engine_name(recon));
    if (result->n_skipped)
        printf("%s: %llu B-scans are missing in %s and stay empty\n", job->out,
               (unsigned long long)result->n_skipped, job->in);
}

static int run_one(const struct oct_config *config, const char *name,
                   const struct oct_recon_job *job, struct oct_progress *progress)
{
    struct oct_recon_result result = {0};
    struct oct_recon *recon = oct_recon_create(NULL);
    struct oct_error err;
    const enum oct_err e = oct_recon_run(recon, config, job, &result, &err);
    if (!e) {
        const uint64_t n = result.n_bscans + result.n_skipped;
        oct_progress_end(progress, n, n);
        if (oct_config_is_set(config, "pipeline.backend") && !config->quiet)
            fprintf(stderr, "%s\n", oct_recon_engine(recon));
        report(recon, job, &result);
    } else {
        oct_progress_clear(progress);
    }
    oct_recon_destroy(recon);
    return e ? oct_command_fail(name, &err) : 0;
}

static int run_single(const struct oct_config *config, const struct options *given, int argc,
                      char **argv)
{
    if (given->skip || given->jobs || given->list || given->results)
        return oct_command_misuse(argv[0],
                                  "--jobs, --skip-existing, --files0-from and --results are for "
                                  "many recordings: they need --out-dir D");
    if (argc < 3)
        return oct_command_misuse(argv[0], "%s", oct_command_recon.too_few);
    if (argc > 3)
        return oct_command_misuse(argv[0],
                                  "one argument too many: '%s' (of several recordings "
                                  "each has its output in the folder of --out-dir)",
                                  argv[3]);
    if (strlen(argv[2]) >= OCT_CONFIG_STRING_BYTES)
        return oct_command_misuse(argv[0], "the output's name is too long");
    struct oct_progress progress = {
        .what = "B-scans", .started_ns = oct_clock_ns(), .quiet = config->quiet};
    const struct oct_recon_job job = {
        .in = argv[1],
        .out = argv[2],
        .force = given->force,
        .has_complex = given->has_complex,
        .analyses = given->analyses != NULL,
        .progress = oct_progress_show,
        .progress_context = &progress,
        .cancel = oct_interrupt_watch(),
    };
    return run_one(config, argv[0], &job, &progress);
}

/* ---- the command ---- */

/* The first is of `recon` alone. */
static const struct oct_option options[] = {
    {"--analyse", "NAME[,NAME...]", "what these analyses of octd find, too (octctl analyse --help)",
     OCT_OPTION_TEXT, .at = offsetof(struct options, analyses), .words = OCT_WORDS_NONE},
    {"--force", NULL, "replace an output that exists, once the new one is whole", OCT_OPTION_FLAG,
     .at = offsetof(struct options, force)},
    {"--out-dir", "D", "of each recording NAME.* make D/NAME.h5; D is made where it is missing",
     OCT_OPTION_TEXT, .at = offsetof(struct options, folder), .words = OCT_WORDS_FOLDERS},
    {"--jobs", "N", "recordings at a time, 1 to 64 (one more than threads, 4 at most)",
     OCT_OPTION_COUNT, .at = offsetof(struct options, jobs), .least = 1, .most = 64},
    {"--skip-existing", NULL, "leave out recordings whose output is there and whole",
     OCT_OPTION_FLAG, .at = offsetof(struct options, skip)},
    {"--files0-from", "FILE",
     "more recordings: their names, each ended by a NUL byte\n(find -print0); -: standard input",
     OCT_OPTION_TEXT, .at = offsetof(struct options, list)},
    {"--complex", NULL,
     "write the complex values before the square, too: /complex, r and i in\ncounts, 8 bytes a "
     "pixel",
     OCT_OPTION_FLAG, .at = offsetof(struct options, has_complex)},
    {"--results", "FILE",
     "append a line for each recording: its number from 0, then done,\n"
     "skipped or failed and why",
     OCT_OPTION_TEXT, .at = offsetof(struct options, results)},
    {NULL},
};

static int run_given(struct oct_config *config, const struct options *given, int argc, char **argv)
{
    struct oct_error err;
    if (given->analyses && choose_analyses(config, given->analyses, &err))
        return oct_command_fail(argv[0], &err);
    return given->folder ? run_many(config, given, argc, argv)
                         : run_single(config, given, argc, argv);
}

static int run_recon(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    const int status = oct_options_read(&oct_command_recon, &given, &argc, argv);
    return status ? status : run_given(config, &given, argc, argv);
}

const struct oct_command oct_command_recon = {
    .name = "recon",
    .usage = "IN OUT.h5 | IN... --out-dir D",
    .help = "reconstructs a recording, or many, offline",
    .options = options,
    .n_most = INT_MAX,
    .too_few = "two files are needed: the recording and the output",
    .run = run_recon,
};

/* The analyses there are, and which keys are theirs (--set). */
static void print_analyses(void)
{
    static const char head[] = "            ";
    puts("\nanalyses, and the keys that --set gives them:");
    for (unsigned i = 0; i < oct_n_analyses; i++) {
        const struct oct_analysis_ops *ops = oct_analyses[i];
        struct oct_config_key key;
        oct_write_wrapped(stdout, (size_t)printf("  %-10s", ops->name), head, ops->meaning);
        for (size_t k = 0; oct_config_key_at(k, &key); k++) {
            char name[128], text[512];
            snprintf(name, sizeof(name), "%s.%s", key.section, key.name);
            snprintf(text, sizeof(text), "%s: %s", name, key.meaning);
            if (oct_config_analysis_has(ops->name, name) && strcmp(key.name, "enabled") != 0 &&
                strcmp(key.name, "record") != 0)
                oct_write_wrapped(stdout, (size_t)printf("%s", head), head, text);
        }
    }
}

static int run_analyse(struct oct_config *config, int argc, char **argv)
{
    struct options given = {0};
    const int status = oct_options_read(&oct_command_analyse, &given, &argc, argv);
    if (status)
        return status;
    given.analyses = argv[1];
    argv[1] = argv[0];
    return run_given(config, &given, argc - 1, argv + 1);
}

const struct oct_command oct_command_analyse = {
    .name = "analyse",
    .usage = "NAME[,NAME...] IN OUT.h5 | NAME[,NAME...] IN... --out-dir D",
    .help = "what octd's analyses find in a recording, or many",
    .help_more = print_analyses,
    .options = options + 1,
    .n_least = 2,
    .n_most = INT_MAX,
    .too_few = "needed: names of analyses (enface, quality, cells, ...), the recording, the output",
    .words = OCT_WORDS_NONE,
    .run = run_analyse,
};
