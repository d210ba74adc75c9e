#include "tools/files/recon_many.h"

#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"
#include "tools/files/recon_run.h"
#include "tools/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_JOBS 64u
#define ENOUGH_JOBS 4u
#define LOOK_US 100000u

struct run;

/* A thread that reconstructs one recording after another. */
struct lane {
    struct run *run;
    pthread_t thread;
    struct oct_recon *recon;
    uint64_t done, all; /* B-scans of the one that it is at; guarded by the run's lock */
};

struct run {
    const struct oct_recon_many *many;
    struct oct_workers *workers;
    struct oct_progress progress;
    struct lane lanes[MOST_JOBS];
    unsigned n_lanes;
    int results; /* -1: nobody reads them */

    pthread_mutex_t lock; /* guards what follows, and stderr */
    pthread_cond_t ended; /* n_at_work has sunk */
    unsigned next, n_at_work;
    struct oct_recon_counts counts;
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

static enum oct_err add(struct oct_recon_names *names, const char *in, const char *folder,
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
            e = add(names, name, folder, err);
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
        e = add(names, in[i], folder, err);
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

/* ---- booking ---- */

/* Lock held. */
static void note_result(struct run *r, unsigned i, const char *state, const char *why)
{
    char line[OCT_ERROR_TEXT_BYTES + 64];
    if (r->results < 0)
        return;
    const int n = snprintf(line, sizeof(line), "%u %s%s%s\n", i, state, *why ? " " : "", why);
    if (write(r->results, line, (size_t)n) != n && !r->why.code)
        oct_fail_errno(&r->why, OCT_E_IO, errno, "%s: cannot be written", r->many->results);
}

static void book(struct run *r, unsigned i, enum oct_err e, bool is_skipped,
                 const struct oct_recon_result *result, const struct oct_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (e == OCT_E_CLOSED) {
        r->counts.was_cancelled = true; /* neither done nor failed */
    } else if (e) {
        r->counts.n_failed++;
        oct_progress_clear(&r->progress);
        fprintf(stderr, "octctl %s: %s\n", r->many->command, err->text);
        note_result(r, i, "failed", err->text);
    } else if (is_skipped) {
        r->counts.n_skipped++;
        note_result(r, i, "skipped", "");
    } else {
        r->counts.n_done++;
        r->counts.n_lines += result->n_bscans * result->n_lines;
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

static void run_one(struct lane *lane, unsigned i)
{
    const struct oct_recon_many *many = lane->run->many;
    const bool is_there = many->skip && oct_recon_is_there(many->names->out[i]);
    const struct oct_recon_job job = {
        .in = many->names->in[i],
        .out = many->names->out[i],
        .force = many->force,
        .analyses = many->analyses,
        .progress = note_progress,
        .progress_context = lane,
        .cancel = many->cancel,
    };
    struct oct_recon_result result = {0};
    struct oct_error err = {.text = ""};
    enum oct_err e = OCT_OK;
    if (many->skip && !many->force && !is_there)
        e = check_damage(job.out, &err);
    if (!e && !is_there)
        e = oct_recon_run(lane->recon, many->config, &job, &result, &err);
    if (e)
        name_recording(&err, job.in);
    book(lane->run, i, e, is_there, &result, &err);
    note_progress(lane, 0, 0);
}

static bool take_next(struct run *r, unsigned *i)
{
    const struct oct_recon_many *many = r->many;
    pthread_mutex_lock(&r->lock);
    const bool cancelled = many->cancel && *many->cancel;
    const bool has = r->next < many->names->n && !cancelled;
    r->counts.was_cancelled |= cancelled && r->next < many->names->n;
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
        run_one(lane, i);
    pthread_mutex_lock(&r->lock);
    r->n_at_work--;
    if (oct_recon_engine_name(lane->recon)[0])
        snprintf(r->counts.engine, sizeof(r->counts.engine), "%s",
                 oct_recon_engine_name(lane->recon));
    r->counts.n_engines += oct_recon_n_engines(lane->recon);
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the main thread ---- */

/* Lock held. */
static void show(struct run *r, unsigned n)
{
    const unsigned ended = r->counts.n_done + r->counts.n_skipped + r->counts.n_failed;
    const double seconds = oct_progress_seconds(&r->progress);
    double work = 0; /* of recordings, without those skipped, which take no time */
    char text[128], left[32] = "";

    for (unsigned k = 0; k < r->n_lanes; k++)
        work += r->lanes[k].all ? (double)r->lanes[k].done / (double)r->lanes[k].all : 0;
    const double rest = fmax(0, (double)(n - ended) - work);
    work += r->counts.n_done + r->counts.n_failed;
    if (work > 0 && rest > 0) {
        const unsigned s = (unsigned)fmin(ceil(seconds * rest / work), 3599999);
        snprintf(left, sizeof(left), ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    }
    const double rate = seconds > 0 ? work / seconds : 0;
    snprintf(text, sizeof(text), "%u of %u recordings, %u failed, %.*f a second%s", ended, n,
             r->counts.n_failed, rate < 10 ? 1 : 0, rate, left);
    oct_progress_say(&r->progress, 1 - rest / n, text);
}

static enum oct_err start_lanes(struct run *r, unsigned n, struct oct_error *err)
{
    for (; r->n_lanes < n; r->n_lanes++) {
        struct lane *lane = &r->lanes[r->n_lanes];
        lane->run = r;
        enum oct_err e = oct_recon_create(&lane->recon, r->workers, err);
        if (e)
            return e;
        pthread_mutex_lock(&r->lock);
        r->n_at_work++;
        pthread_mutex_unlock(&r->lock);
        e = oct_thread_start(&lane->thread, "octd-recon", run_lane, lane, "reconstruction", err);
        if (!e)
            continue;
        oct_recon_destroy(lane->recon);
        pthread_mutex_lock(&r->lock);
        r->n_at_work--;
        pthread_mutex_unlock(&r->lock);
        return e;
    }
    return OCT_OK;
}

static void await_lanes(struct run *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->n_at_work > 0) {
        show(r, r->many->names->n);
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
    const char *path = r->many->results;
    r->results = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    return path && r->results < 0
               ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", path)
               : OCT_OK;
}

/* Recordings at a time, where nobody says how many. One computes while another waits for the disk:
 * with two threads 100 recordings of 0.85 MB took 4.7 s one at a time, 2.5 s two, 1.9 s three and
 * 2.2 s four at a time. Each lane holds rings for 16 B-scans, so there are few of them. */
static unsigned count_jobs(const struct oct_recon_many *many, unsigned n_threads)
{
    const unsigned enough = n_threads < ENOUGH_JOBS ? n_threads + 1 : ENOUGH_JOBS;
    unsigned n = many->jobs ? many->jobs : enough;
    n = n < MOST_JOBS ? n : MOST_JOBS;
    return n < many->names->n ? n : many->names->n;
}

enum oct_err oct_recon_many_run(const struct oct_recon_many *many, struct oct_recon_counts *counts,
                                struct oct_error *err)
{
    struct run *r = oct_alloc(1, sizeof(*r));
    r->many = many;
    r->progress = (struct oct_progress){.started_ns = oct_clock_ns(), .quiet = many->config->quiet};
    pthread_mutex_init(&r->lock, NULL);
    oct_condition_init(&r->ended);
    enum oct_err e = open_results(r, err);
    if (!e)
        e = oct_workers_create(&r->workers, many->config->pipeline.threads, err);
    if (!e)
        e = start_lanes(r, count_jobs(many, oct_workers_n_threads(r->workers)), err);
    await_lanes(r); /* those that did start do all */
    r->counts.seconds = oct_progress_seconds(&r->progress);
    r->counts.n_jobs = r->n_lanes;
    if (r->n_lanes > 0)
        e = OCT_OK;
    if (!e && r->why.code) {
        e = r->why.code;
        *err = r->why;
    }
    *counts = r->counts;
    oct_workers_destroy(r->workers);
    if (r->results >= 0)
        close(r->results);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return e;
}
