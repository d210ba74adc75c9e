/* The whole daemon, as a process of its own: from the last line in to the picture out beside the
 * time that the B-scan takes to compute, from its start to its first picture beside the time that
 * FFTW takes to plan with the wisdom kept, and the rate at which it records everything before a
 * viewer beside that of its slowest part alone. */
#define _GNU_SOURCE /* memrchr */
#include "config/apply.h"
#include "kernels/fft.h"
#include "pipeline/client.h"
#include "pipeline/clock.h"
#include "tools/bench_part.h"
#include "tools/bench_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <zmq.h>

#define PATIENCE_MS 30000
#define LATENCY_RATE_HZ 100000.0

extern char **environ;

struct rig {
    struct oct_bench_scene scene;
    char folder[64], records[OCT_CONFIG_STRING_BYTES];
    void *context, *pictures;
    pid_t octd;
    pthread_t camera;
    bool has_camera;
    atomic_bool stop;
    double rate_hz;
    uint64_t n_given_up; /* lines that the camera found no room for */
    bool failed;
};

/* ---- the camera ---- */

static void sleep_until(uint64_t at_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                .tv_nsec = (long)(at_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* One B-scan a block, when a camera would have exposed it, daemon or not. */
static void *run_camera(void *argument)
{
    struct rig *r = argument;
    const struct oct_geometry *g = &r->scene.plan->geometry;
    const struct oct_client_options options = {.drop_when_full = true, .linger_ms = 1};
    struct oct_client *client;
    char endpoint[128];
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/in", r->folder);
    r->failed = oct_client_connect(&client, endpoint, g->n_samples, &options, NULL, 0) != 0;
    if (r->failed)
        return NULL;
    uint64_t begin = oct_clock_ns();
    for (uint64_t b = 0; !atomic_load(&r->stop); b++) {
        sleep_until(begin + (uint64_t)((double)(b + 1) * g->n_lines / r->rate_hz * 1e9));
        oct_client_send_owned(client, r->scene.in[b % OCT_BENCH_FRAMES].spectra, g->n_lines, b,
                              NULL, NULL);
    }
    struct oct_client_counters counters;
    oct_client_get_counters(client, &counters);
    r->n_given_up = counters.lines_dropped;
    oct_client_give_up(client);
    oct_client_close(client);
    return NULL;
}

static void end_camera(struct rig *r)
{
    atomic_store(&r->stop, true);
    if (r->has_camera)
        pthread_join(r->camera, NULL);
    r->has_camera = false;
}

/* ---- the daemon ---- */

/* The made-up spectrometer, for a configuration that has none. */
static enum oct_err add_calibration(const struct rig *r, struct oct_config *c,
                                    struct oct_error *err)
{
    struct oct_calibration cal = {0};
    oct_config_string *path = &c->calibration.wavelengths;
    if ((*path)[0] || c->calibration.kmap[0])
        return OCT_OK;
    snprintf(*path, sizeof(*path), "%s/wavelengths.txt", r->folder);
    FILE *file = fopen(*path, "w");
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", *path);
    enum oct_err e = oct_bench_calibration(&cal, c->camera.samples);
    for (size_t i = 0; i < cal.n_wavelengths; i++)
        fprintf(file, "%.10f\n", cal.wavelengths_nm[i]);
    c->calibration.dispersion_a2 = cal.coefficient[2];
    c->calibration.dispersion_a3 = cal.coefficient[3];
    oct_calibration_finish(&cal);
    bool ok = fclose(file) == 0 && !e;
    return ok ? OCT_OK : oct_fail(err, OCT_E_IO, "%s: cannot be written", *path);
}

/* The configuration as it is, on endpoints of our own. */
static enum oct_err write_config(const struct rig *r, const struct oct_config *config,
                                 struct oct_error *err)
{
    struct oct_config c = *config;
    char path[128];
    enum oct_err e = add_calibration(r, &c, err);
    if (e)
        return e;
    snprintf(c.ingest.endpoint, sizeof(c.ingest.endpoint), "ipc://%s/in", r->folder);
    snprintf(c.publish.endpoint, sizeof(c.publish.endpoint), "ipc://%s/out", r->folder);
    snprintf(c.control.endpoint, sizeof(c.control.endpoint), "ipc://%s/control", r->folder);
    snprintf(c.record.directory, sizeof(c.record.directory), "%s",
             r->records[0] ? r->records : r->folder);
    c.record.spectra = c.record.bscans = true;
    char *text = oct_config_text(&c);
    snprintf(path, sizeof(path), "%s/octd.ini", r->folder);
    FILE *file = text ? fopen(path, "w") : NULL;
    bool ok = file && fputs(text, file) >= 0;
    if (file)
        ok = fclose(file) == 0 && ok;
    free(text);
    return ok ? OCT_OK : oct_fail(err, OCT_E_IO, "%s: cannot be written", path);
}

static enum oct_err start_octd(struct rig *r, struct oct_error *err)
{
    char self[1024], config[128], log[128], cache[128];
    posix_spawn_file_actions_t actions;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 8);
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    if (!slash)
        return oct_fail(err, OCT_E_IO, "cannot find octd beside octctl");
    memcpy(slash + 1, "octd", 5);
    snprintf(config, sizeof(config), "%s/octd.ini", r->folder);
    snprintf(log, sizeof(log), "%s/log", r->folder);
    snprintf(cache, sizeof(cache), "%s", r->folder);
    setenv("XDG_CACHE_HOME", cache, 1); /* its wisdom is ours alone */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    char *const argv[] = {self, "--config", config, NULL};
    int status = posix_spawn(&r->octd, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return status ? oct_fail_errno(err, OCT_E_IO, status, "%s", self) : OCT_OK;
}

static void end_octd(struct rig *r)
{
    if (r->octd > 0) {
        kill(r->octd, SIGTERM);
        while (waitpid(r->octd, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    r->octd = 0;
}

static void close_rig(struct rig *r)
{
    end_camera(r);
    end_octd(r);
    if (r->pictures)
        zmq_close(r->pictures);
    if (r->context)
        zmq_ctx_term(r->context);
    oct_bench_scene_finish(&r->scene);
    if (r->records[0]) {
        oct_bench_empty_folder(r->records);
        rmdir(r->records);
    }
    if (r->folder[0]) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", r->folder); /* mkdtemp's own name */
        if (system(command) != 0)
            fprintf(stderr, "octctl bench: %s is left behind\n", r->folder);
    }
}

static enum oct_err open_rig(struct rig *r, const struct oct_config *config, double rate_hz,
                             struct oct_error *err)
{
    int patience = PATIENCE_MS, none = 0;
    char endpoint[128];
    *r = (struct rig){.folder = "/tmp/octctl-bench.XXXXXX", .rate_hz = rate_hz};
    if (!mkdtemp(r->folder)) {
        r->folder[0] = '\0';
        return oct_fail_errno(err, OCT_E_IO, errno, "/tmp: no folder");
    }
    enum oct_err e = oct_bench_scene_init(&r->scene, config, 0, err);
    if (!e)
        e = write_config(r, config, err);
    if (e)
        return e;
    r->context = zmq_ctx_new();
    r->pictures = zmq_socket(r->context, ZMQ_SUB);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/out", r->folder);
    int every = 1; /* ms: a late connection must not count as a late picture */
    zmq_setsockopt(r->pictures, ZMQ_RECONNECT_IVL, &every, sizeof(every));
    zmq_setsockopt(r->pictures, ZMQ_RCVTIMEO, &patience, sizeof(patience));
    zmq_setsockopt(r->pictures, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(r->pictures, ZMQ_SUBSCRIBE, "bscan", 5);
    if (zmq_connect(r->pictures, endpoint))
        return oct_fail(err, OCT_E_IO, "%s: %s", endpoint, zmq_strerror(zmq_errno()));
    return OCT_OK;
}

static enum oct_err start_camera(struct rig *r, struct oct_error *err)
{
    int status = pthread_create(&r->camera, NULL, run_camera, r);
    r->has_camera = status == 0;
    return status ? oct_fail_errno(err, OCT_E_IO, status, "camera thread") : OCT_OK;
}

/* Waits for a picture and checks that it is one of the geometry's. */
static enum oct_err take_picture(struct rig *r, struct oct_error *err)
{
    const struct oct_geometry *g = &r->scene.plan->geometry;
    size_t bytes = 0;
    int more = 1;
    size_t more_bytes = sizeof(more);
    for (int n = 0; more; n++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, r->pictures, 0) < 0) {
            zmq_msg_close(&part);
            return oct_fail(err, OCT_E_IO, "octd has sent no picture: see its log");
        }
        bytes = zmq_msg_size(&part);
        zmq_msg_close(&part);
        zmq_getsockopt(r->pictures, ZMQ_RCVMORE, &more, &more_bytes);
    }
    return bytes == oct_geometry_image_bytes(g)
               ? OCT_OK
               : oct_fail(err, OCT_E_FORMAT, "a picture has %zu bytes", bytes);
}

/* The reply to a control request; NULL: none, or none that can be read. */
static cJSON *ask(const struct rig *r, const char *request)
{
    char endpoint[128], reply[16384];
    int patience = PATIENCE_MS, none = 0, n = -1;
    void *socket = zmq_socket(r->context, ZMQ_REQ);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/control", r->folder);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof(patience));
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    if (zmq_connect(socket, endpoint) == 0 && zmq_send(socket, request, strlen(request), 0) > 0)
        n = zmq_recv(socket, reply, sizeof(reply), 0);
    cJSON *answer =
        n > 0 && n <= (int)sizeof(reply) ? cJSON_ParseWithLength(reply, (size_t)n) : NULL;
    zmq_close(socket);
    return answer;
}

/* A number of a status reply, "group" may be NULL; -1: it is not there. */
static double number_of(const cJSON *status, const char *group, const char *key)
{
    const cJSON *object = group ? cJSON_GetObjectItemCaseSensitive(status, group) : status;
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(number) ? number->valuedouble : -1;
}

static double ask_status(const struct rig *r, const char *group, const char *key)
{
    cJSON *status = ask(r, "{\"cmd\":\"status\"}");
    double value = number_of(status, group, key);
    cJSON_Delete(status);
    return value;
}

/* ---- the parts ---- */

enum oct_err oct_bench_latency(const struct oct_config *config,
                               const struct oct_bench_options *options, struct oct_bench_rows *rows,
                               struct oct_error *err)
{
    struct rig r;
    struct oct_bench_row *row =
        oct_bench_add(rows, "latency", "the B-scan's computation", "us", 1.5);
    double rate = 0, alone_us = 0;
    row->less_is_better = true;
    enum oct_err e = oct_bench_engine(config, 0, 0, options->seconds, &rate, &alone_us, err);
    if (e)
        return e;
    e = open_rig(&r, config, LATENCY_RATE_HZ, err);
    if (!e)
        e = start_octd(&r, err);
    /* octd first: what a camera queued while nobody listened would come in a burst, and its wait
     * would stand in the percentiles as if octd were slow. */
    if (!e && ask_status(&r, NULL, "uptime_s") < 0)
        e = oct_fail(err, OCT_E_IO, "octd does not answer: see its log");
    if (!e)
        e = start_camera(&r, err);
    uint64_t until = oct_clock_ns() + (uint64_t)((options->seconds + 1) * 1e9);
    while (!e && oct_clock_ns() < until)
        e = take_picture(&r, err);
    if (!e) {
        double dropped = ask_status(&r, "bscans_dropped", "ring_full");
        row->value = ask_status(&r, "latency_us", "p50");
        row->limit = alone_us;
        snprintf(row->what, sizeof(row->what), "p50 at %.0f lines/s", LATENCY_RATE_HZ);
        snprintf(row->note, sizeof(row->note), "p99 %.0f us (goal 5000), max %.0f us, dropped %.0f",
                 ask_status(&r, "latency_us", "p99"), ask_status(&r, "latency_us", "max"), dropped);
        if (row->value < 0)
            e = oct_fail(err, OCT_E_IO, "octd does not tell its latency");
    }
    close_rig(&r);
    return e;
}

static enum oct_err time_start(struct rig *r, double *seconds, struct oct_error *err)
{
    uint64_t begin = oct_clock_ns();
    enum oct_err e = start_octd(r, err);
    if (!e)
        e = take_picture(r, err);
    *seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    end_octd(r);
    /* What it sent besides is not of the next one. */
    zmq_msg_t rest;
    zmq_msg_init(&rest);
    while (zmq_msg_recv(&rest, r->pictures, ZMQ_DONTWAIT) >= 0)
        ;
    zmq_msg_close(&rest);
    return e;
}

enum oct_err oct_bench_start(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    struct rig r;
    struct oct_fft fft;
    struct oct_bench_row *row = oct_bench_add(rows, "start", "FFTW plans, with wisdom", "s", 0);
    double first = 0;
    char wisdom_dir[128];
    (void)options;
    row->less_is_better = true;
    enum oct_err e = open_rig(&r, config, 50000, err);
    if (!e)
        e = start_camera(&r, err); /* it runs already when octd starts */
    if (!e)
        e = time_start(&r, &first, err);
    if (!e)
        e = time_start(&r, &row->value, err);
    if (!e) {
        snprintf(wisdom_dir, sizeof(wisdom_dir), "%s/octd", r.folder);
        uint64_t begin = oct_clock_ns();
        e = oct_fft_init(&fft, r.scene.plan->geometry.padded, wisdom_dir, err);
        row->limit = (double)(oct_clock_ns() - begin) * 1e-9;
        if (!e)
            oct_fft_finish(&fft);
        snprintf(row->what, sizeof(row->what), "second start to first picture");
        snprintf(row->note, sizeof(row->note), "goal 1 s; the first, without wisdom, %.2f s",
                 first);
    }
    close_rig(&r);
    return e;
}

/* ---- everything at once ---- */

#define LEAST_SECONDS 5.0

/* Lines a second that each part does alone; the least of them. *slowest names it. */
static enum oct_err measure_parts(const struct oct_config *config,
                                  const struct oct_bench_options *options, double *least_hz,
                                  const char **slowest, struct oct_error *err)
{
    struct oct_bench_rows *parts = calloc(1, sizeof(*parts));
    struct oct_geometry g = {0};
    double engine_hz = 0, bscan_us = 0;
    if (!parts)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    enum oct_err e = oct_bench_engine(config, 0, 0, options->seconds, &engine_hz, &bscan_us, err);
    if (!e)
        e = oct_bench_ingest(config, options, parts, err);
    if (!e)
        e = oct_bench_recorder(config, options, parts, err);
    if (!e)
        e = oct_config_geometry(config, &g, err);
    if (!e) {
        double in = (double)oct_geometry_spectra_bytes(&g) / g.n_lines;
        double out = (double)oct_geometry_image_bytes(&g) / g.n_lines;
        const double hz[] = {engine_hz, parts->row[0].value * 1e9 / in,
                             parts->row[1].value * 1e9 / (in + out)};
        static const char *const names[] = {"the engine", "ingest", "the recorder"};
        *least_hz = 1e300;
        for (int k = 0; k < 3; k++)
            if (hz[k] < *least_hz) {
                *least_hz = hz[k];
                *slowest = names[k];
            }
    }
    free(parts);
    return e;
}

/* A daemon that has only just begun refuses: it is asked again. */
static enum oct_err start_recording(const struct rig *r, struct oct_error *err)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    uint64_t until = oct_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    for (;; nanosleep(&pause, NULL)) {
        cJSON *reply = ask(r, "{\"cmd\":\"record\",\"action\":\"start\"}");
        bool granted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(reply, "error"));
        if (!granted && oct_clock_ns() > until)
            oct_fail(err, OCT_E_IO, "octd does not record: %s", why ? why : "no answer");
        cJSON_Delete(reply);
        if (granted || oct_clock_ns() > until)
            return granted ? OCT_OK : OCT_E_IO;
    }
}

/* Records what the camera sends in so many seconds, before a viewer, until all is on the disk:
 * lines a second over that time; 0: something was lost on the way. */
static enum oct_err run_everything(struct rig *r, double seconds, double *hz, struct oct_error *err)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    cJSON *status = NULL;
    enum oct_err e = start_recording(r, err);
    if (e)
        return e;
    e = start_camera(r, err);
    uint64_t begin = oct_clock_ns(), until = begin + (uint64_t)(seconds * 1e9);
    while (!e && oct_clock_ns() < until)
        e = take_picture(r, err);
    end_camera(r);
    cJSON_Delete(ask(r, "{\"cmd\":\"record\",\"action\":\"stop\"}"));
    for (until = oct_clock_ns() + PATIENCE_MS * UINT64_C(1000000); !e; nanosleep(&pause, NULL)) {
        cJSON_Delete(status);
        status = ask(r, "{\"cmd\":\"status\"}");
        const cJSON *record = cJSON_GetObjectItemCaseSensitive(status, "record");
        if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(record, "active")))
            break;
        if (oct_clock_ns() > until)
            e = oct_fail(err, OCT_E_IO, "octd does not end its recording: see its log");
    }
    double took = (double)(oct_clock_ns() - begin) * 1e-9;
    double lines = number_of(status, NULL, "lines_received");
    double done = number_of(status, NULL, "bscans_done");
    double lost = number_of(status, NULL, "lines_missing") + (double)r->n_given_up +
                  number_of(status, "bscans_dropped", "ring_full") +
                  number_of(status, "bscans_dropped", "engine") +
                  (done - number_of(status, NULL, "bscans_written")) +
                  (done - number_of(status, NULL, "bscans_published"));
    *hz = lost == 0 && done > 0 ? lines / took : 0;
    cJSON_Delete(status);
    return e;
}

static enum oct_err try_rate(const struct oct_config *config,
                             const struct oct_bench_options *options, double rate_hz, double *hz,
                             struct oct_error *err)
{
    struct rig r;
    char records[sizeof(r.records)];
    double seconds = 2 * options->seconds;
    enum oct_err e = open_rig(&r, config, rate_hz, err);
    snprintf(records, sizeof(records), "%s/octctl-bench.XXXXXX", options->directory);
    if (!e && !mkdtemp(records))
        e = oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", records);
    if (!e) {
        memcpy(r.records, records, sizeof(records));
        e = write_config(&r, config, err);
    }
    if (!e)
        e = start_octd(&r, err);
    if (!e && ask_status(&r, NULL, "uptime_s") < 0)
        e = oct_fail(err, OCT_E_IO, "octd does not answer: see its log");
    if (!e)
        e = run_everything(&r, seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS, hz, err);
    close_rig(&r);
    return e;
}

/* From the goal down until nothing is lost. */
enum oct_err oct_bench_whole(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    struct oct_bench_row *row =
        oct_bench_add(rows, "whole", "its slowest part alone", "A-lines/s", 0.85);
    const char *slowest = "";
    enum oct_err e = measure_parts(config, options, &row->limit, &slowest, err);
    for (double share = 0.9; share > 0.05 && !e && row->value == 0; share -= 0.1)
        e = try_rate(config, options, share * row->limit, &row->value, err);
    snprintf(row->what, sizeof(row->what), "all recorded, a viewer, nothing lost");
    snprintf(row->note, sizeof(row->note), "the slowest part is %s", slowest);
    return e;
}
