#define _GNU_SOURCE /* O_DIRECT, O_TMPFILE */
#include "pipeline/flow/forecast.h"

#include "numeric/order.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/running_dc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- the engine ---- */

#define MOST_IN_FLIGHT 96u
#define PATIENCE_US 5000000u
#define MOST_SAMPLES (4096u * 4096u) /* padded, a B-scan: larger ones take too long to try */

/* Laid out as the rings are: in the engine's memory, as many pictures as it takes at once. */
struct probe {
    const struct oct_memory_ops *memory;
    const struct oct_display *display;
    size_t bytes;
    unsigned char *block;    /* spectra, then the pictures */
    struct oct_raw_frame in; /* shared by all jobs: engines only read it */
    float *dc;               /* dc=running: its line, likewise */
    unsigned n_out;
    struct oct_image_frame out[MOST_IN_FLIGHT];
};

static void free_probe(struct probe *p)
{
    if (p->memory && p->block)
        p->memory->release(p->block, p->bytes);
    else if (p->block)
        munmap(p->block, p->bytes);
    free(p->in.line_valid);
    free(p->dc);
}

/* Mapped rather than malloc'd: the heap of a thread that does not measure again would keep the
 * memory. */
static unsigned char *map_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool make_probe(struct probe *p, const struct oct_engine_ops *ops, unsigned depth,
                       const struct oct_plan *plan, const struct oct_display *display)
{
    const struct oct_geometry *g = &plan->geometry;
    const size_t spectra = (oct_geometry_spectra_bytes(g) + 4095) / 4096 * 4096;
    const size_t image = (oct_geometry_image_bytes(g) + 4095) / 4096 * 4096;
    uint32_t seed = 1;
    *p = (struct probe){.memory = ops->memory,
                        .display = display,
                        .n_out = depth < MOST_IN_FLIGHT ? depth : MOST_IN_FLIGHT,
                        .in = {.line_valid = malloc(g->n_lines)}};
    p->bytes = spectra + p->n_out * image;
    p->block = p->memory ? p->memory->alloc(p->bytes, NULL) : map_memory(p->bytes);
    if (!p->block || !p->in.line_valid)
        return false;
    p->in.spectra = (uint16_t *)(void *)p->block;
    for (unsigned k = 0; k < p->n_out; k++)
        p->out[k].pixels = p->block + spectra + k * image;
    memset(p->in.line_valid, 1, g->n_lines);
    for (size_t i = 0; i < (size_t)g->n_lines * g->n_samples; i++) {
        seed = seed * 1664525u + 1013904223u;
        p->in.spectra[i] = (uint16_t)(1000 + (seed >> 24));
    }
    return oct_running_dc_alone(&p->dc, plan, &p->in, NULL) == OCT_OK;
}

/* Fills the engine up to n_most jobs, batches as large as it takes. */
static bool submit_more(const struct oct_engine_ops *ops, struct oct_engine *engine,
                        struct probe *p, unsigned n_most, uint64_t *submitted, uint64_t collected)
{
    struct oct_engine_job jobs[MOST_IN_FLIGHT];
    const unsigned batch = ops->max_batch(engine);
    while (*submitted - collected < n_most) {
        uint64_t room = n_most - (*submitted - collected);
        unsigned n = room < batch ? (unsigned)room : batch;
        if (n < batch && n_most >= batch)
            return true; /* whole batches keep a GPU busy */
        for (unsigned k = 0; k < n; k++)
            jobs[k] = (struct oct_engine_job){.in = &p->in,
                                              .out = &p->out[(*submitted + k) % p->n_out],
                                              .display = *p->display,
                                              .dc = p->dc};
        if (ops->submit(engine, jobs, n))
            return false;
        *submitted += n;
    }
    return true;
}

/* Computes until the time is over; returns how many B-scans were done and when the last one was. */
static uint64_t compute(const struct oct_engine_ops *ops, struct oct_engine *engine,
                        struct probe *p, unsigned n_most, uint64_t end_ns, uint64_t *last_ns)
{
    uint64_t submitted = 0, collected = 0;
    bool more = true;
    do {
        struct oct_image_frame *done;
        more = more && submit_more(ops, engine, p, n_most, &submitted, collected);
        if (submitted == collected)
            break;
        if (ops->collect(engine, PATIENCE_US, &done)) {
            /* Too late, but the engine still uses the jobs' memory: collect until it has returned
             * them all, as its contract demands. */
            more = false;
            continue;
        }
        collected++;
        *last_ns = oct_clock_ns();
        more = more && *last_ns < end_ns && done->status == OCT_OK;
    } while (more || collected < submitted);
    return collected == submitted ? collected : 0;
}

enum { N_TRIALS = 3 };

/* B-scans a second, by three trials: a short disturbance spoils only one of them. A trial that
 * exceeds its third of the time shortens the next, so that the sum is bounded. */
static double try_engine(const struct oct_engine_ops *ops, struct oct_engine *engine,
                         struct probe *p, uint64_t budget_ns)
{
    const uint64_t first_ns = oct_clock_ns(), third_ns = budget_ns / N_TRIALS;
    double hz[N_TRIALS];
    unsigned n_done = 0;
    for (unsigned k = 1; k <= N_TRIALS; k++) {
        uint64_t begin = oct_clock_ns(), end = first_ns + k * third_ns, last_ns = 0;
        if (n_done && begin + third_ns / 2 > end)
            continue; /* too short to be measured */
        uint64_t n = compute(ops, engine, p, p->n_out, end, &last_ns);
        if (n == 0 || last_ns <= begin)
            return 0;
        hz[n_done++] = (double)n * 1e9 / (double)(last_ns - begin);
    }
    return n_done ? oct_doubles_median(hz, n_done) : 0;
}

double oct_forecast_engine(const struct oct_engine_ops *ops, struct oct_engine *engine,
                           const struct oct_plan *plan, const struct oct_display *display,
                           unsigned budget_us)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint64_t budget_ns = budget_us * UINT64_C(1000);
    struct probe p;
    uint64_t last_ns = 0, begin = oct_clock_ns();
    double hz = 0;
    if ((uint64_t)g->n_lines * g->padded > MOST_SAMPLES)
        return 0;
    if (make_probe(&p, ops, ops->depth(engine), plan, display)) {
        /* The first trial runs with cold caches and memory; if it took long, there is no time for
         * others. */
        uint64_t n = compute(ops, engine, &p, 1, 0, &last_ns);
        if (n && last_ns - begin < budget_ns)
            hz = try_engine(ops, engine, &p, budget_ns);
        else if (n)
            hz = (double)n * 1e9 / (double)(last_ns - begin);
    }
    free_probe(&p);
    return hz * g->n_lines;
}

/* ---- the disk ---- */

#define CHUNK_BYTES (1u << 20)
#define MOST_BYTES (64u << 20)

/* Returns 0 or errno; a full disk ends the writing early and is no error. */
static int write_chunks(int fd, const unsigned char *chunk, uint64_t end_ns, uint64_t *n_bytes)
{
    *n_bytes = 0;
    while (*n_bytes < MOST_BYTES && oct_clock_ns() < end_ns) {
        ssize_t n = pwrite(fd, chunk, CHUNK_BYTES, (off_t)*n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && fcntl(fd, F_GETFL) & O_DIRECT) {
            /* Some file systems report only here that they do not support it. */
            if (fcntl(fd, F_SETFL, 0) == 0)
                continue;
        }
        if (n != (ssize_t)CHUNK_BYTES)
            return n >= 0 || errno == ENOSPC || errno == EDQUOT ? 0 : errno;
        *n_bytes += CHUNK_BYTES;
    }
    return fdatasync(fd) == 0 ? 0 : errno;
}

/* A file that is unlinked at once, for file systems without O_TMPFILE (exFAT, NFS, CIFS). */
static int open_unlinked(const char *directory, int flags)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof(path), "%s/.octd-forecast-XXXXXX", directory) >= sizeof(path))
        return errno = ENAMETOOLONG, -1;
    int fd = mkostemp(path, flags);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int open_nameless(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EINVAL) /* no O_DIRECT */
        fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    /* As volume/file.c does for what is recorded. */
    if (fd < 0 && (errno == EISDIR || errno == EOPNOTSUPP || errno == EINVAL)) {
        fd = open_unlinked(directory, O_DIRECT | O_CLOEXEC);
        if (fd < 0 && errno == EINVAL)
            fd = open_unlinked(directory, O_CLOEXEC);
    }
    return fd;
}

static int measure(int fd, unsigned budget_us, struct oct_forecast_disk *disk)
{
    struct statvfs fs;
    uint64_t n_bytes = 0, begin;
    if (fstatvfs(fd, &fs) != 0)
        return errno;
    disk->bytes_free = (double)fs.f_bavail * (double)fs.f_frsize;
    unsigned char *chunk = oct_aligned_alloc(4096, 1, CHUNK_BYTES);
    if (!chunk)
        return ENOMEM;
    memset(chunk, 0x5a, CHUNK_BYTES);
    begin = oct_clock_ns();
    int status = write_chunks(fd, chunk, begin + budget_us * UINT64_C(1000), &n_bytes);
    if (status == 0 && n_bytes)
        disk->bytes_per_s = (double)n_bytes * 1e9 / (double)(oct_clock_ns() - begin);
    free(chunk);
    return status;
}

enum oct_err oct_forecast_disk(const char *directory, unsigned budget_us,
                               struct oct_forecast_disk *disk, struct oct_error *err)
{
    *disk = (struct oct_forecast_disk){0};
    int fd = open_nameless(directory);
    int status = fd < 0 ? errno : measure(fd, budget_us, disk);
    if (fd >= 0)
        close(fd);
    return status ? oct_fail_key_errno(err, OCT_E_IO, "record.directory", status,
                                       "record.directory: %s", directory)
                  : OCT_OK; /* a full disk shows in bytes_free */
}

/* ---- several measurements ---- */

void oct_forecast_series_add(struct oct_forecast_series *s, double rate, double waited)
{
    if (!(rate > 0))
        return;
    s->rate[s->n_taken % OCT_FORECAST_KEPT] = rate;
    s->waited[s->n_taken % OCT_FORECAST_KEPT] = waited;
    s->n_taken++;
}

static unsigned n_kept(const struct oct_forecast_series *s)
{
    return s->n_taken < OCT_FORECAST_KEPT ? s->n_taken : OCT_FORECAST_KEPT;
}

double oct_forecast_series_rate(const struct oct_forecast_series *s, bool *busy)
{
    double calm[OCT_FORECAST_KEPT], largest = 0;
    unsigned n_calm = 0;
    for (unsigned k = 0; k < n_kept(s); k++) {
        largest = s->rate[k] > largest ? s->rate[k] : largest;
        if (s->waited[k] <= OCT_FORECAST_BUSY)
            calm[n_calm++] = s->rate[k];
    }
    *busy = n_calm == 0 && largest > 0;
    return n_calm == 0 ? largest : oct_doubles_median(calm, n_calm);
}

unsigned oct_forecast_series_below(const struct oct_forecast_series *s, double limit)
{
    unsigned n_below = 0;
    for (unsigned k = 0; k < n_kept(s); k++)
        n_below += s->rate[k] < limit;
    return n_below;
}

/* "ran waited slices", in ns. */
static void add_thread(struct oct_forecast_load *load, const char *tid)
{
    char path[64];
    unsigned long long ran_ns = 0, waited_ns = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return; /* it has ended */
    if (fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2) {
        load->ran_s += (double)ran_ns * 1e-9;
        load->waited_s += (double)waited_ns * 1e-9;
    }
    fclose(file);
}

void oct_forecast_load_begin(struct oct_forecast_load *load)
{
    *load = (struct oct_forecast_load){0};
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return;
    for (const struct dirent *task; (task = readdir(tasks));)
        if (task->d_name[0] != '.')
            add_thread(load, task->d_name);
    closedir(tasks);
}

double oct_forecast_load_end(const struct oct_forecast_load *load)
{
    struct oct_forecast_load now;
    oct_forecast_load_begin(&now);
    double ran_s = now.ran_s - load->ran_s, waited_s = now.waited_s - load->waited_s;
    return waited_s > 0 && ran_s + waited_s > 0 ? fmin(waited_s / (ran_s + waited_s), 1) : 0;
}

/* ---- what follows ---- */

static bool is_slow(double hz, double need_hz, unsigned n_slow, bool busy)
{
    return hz > 0 && hz * (busy ? OCT_FORECAST_EXCUSE : 1) < need_hz &&
           n_slow >= OCT_FORECAST_AGREEING;
}

void oct_forecast_make(struct oct_forecast *f, const struct oct_forecast_setup *s)
{
    double need = s->wanted_hz * OCT_FORECAST_MARGIN;
    double line_bytes = s->bscan_bytes / s->n_lines;
    *f = (struct oct_forecast){.wanted_hz = s->wanted_hz, .engine_hz = s->engine_hz};
    f->ring_s = (double)s->ring_bscans * s->n_lines / s->wanted_hz;
    if (line_bytes > 0) {
        f->buffer_s = (double)s->buffer_bscans * s->n_lines / s->wanted_hz;
        f->disk_hz = s->disk.bytes_per_s / line_bytes;
        f->disk_min = s->disk.bytes_free / (line_bytes * s->wanted_hz) / 60;
    }
    f->busy = s->engine_busy || s->disk_busy;
    f->rate_from = s->rate_from;
    f->slow_engine = s->rate_from && is_slow(s->engine_hz, need, s->n_engine_slow, s->engine_busy);
    f->slow_disk = s->rate_from && is_slow(f->disk_hz, need, s->n_disk_slow, s->disk_busy);
    f->told_busy = (f->slow_engine && s->engine_busy) || (f->slow_disk && s->disk_busy);
    double recorded_hz = s->wanted_hz; /* the disk gets no more than the engine computes */
    if (f->slow_engine && s->engine_hz < s->wanted_hz) {
        f->overrun_s = f->ring_s * s->wanted_hz / (s->wanted_hz - s->engine_hz);
        recorded_hz = s->engine_hz;
    }
    if (f->slow_disk && f->disk_hz < recorded_hz)
        f->record_overrun_s = (double)s->buffer_bscans * s->n_lines / (recorded_hz - f->disk_hz);
}

static const char busy_text[] = "; the machine was busy while that was measured";

void oct_forecast_text(const struct oct_forecast *f, char *text, size_t bytes)
{
    char disk[96] = "", engine[64] = "computing was not tried", buffer[64] = "";
    if (f->engine_hz > 0)
        snprintf(engine, sizeof(engine), "this machine computes %.0f", f->engine_hz);
    if (f->disk_hz > 0)
        snprintf(disk, sizeof(disk), ", the disk takes %.0f and lasts %.1f min", f->disk_hz,
                 f->disk_min);
    if (f->buffer_s > 0)
        snprintf(buffer, sizeof(buffer), ", the buffer of a recording %.2f s", f->buffer_s);
    snprintf(text, bytes, "for %.0f A-lines/s (%s): %s%s; the ring holds %.2f s%s%s", f->wanted_hz,
             f->rate_from ? f->rate_from : "scan.line_rate_hz is not set: built in", engine, disk,
             f->ring_s, buffer, f->busy ? busy_text : "");
}

void oct_forecast_warning(const struct oct_forecast *f, char *text, size_t bytes)
{
    char engine[48] = "", disk[48] = "", lines[48] = "", bscans[64] = "";
    text[0] = '\0';
    if (!f->slow_engine && !f->slow_disk)
        return;
    if (f->slow_engine)
        snprintf(engine, sizeof(engine), " this machine computes %.0f;", f->engine_hz);
    if (f->slow_disk)
        snprintf(disk, sizeof(disk), " the disk takes %.0f;", f->disk_hz);
    if (f->overrun_s > 0)
        snprintf(lines, sizeof(lines), " lines are lost after about %.1f s;", f->overrun_s);
    if (f->record_overrun_s > 0)
        snprintf(bscans, sizeof(bscans), " a recording loses B-scans after about %.1f s;",
                 f->record_overrun_s);
    snprintf(text, bytes, "too slow for %.0f A-lines/s:%s%s%s%s%s%s%s%s%s", f->wanted_hz, engine,
             disk, lines, bscans, lines[0] || bscans[0] ? "" : " there is nothing to spare;",
             f->slow_engine ? " lower scan.line_rate_hz or pipeline.crop_last" : "",
             f->slow_engine && f->slow_disk ? ";" : "",
             f->slow_disk ? " record less or on another disk (record.directory)" : "",
             f->told_busy ? busy_text : "");
}
