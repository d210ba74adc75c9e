/* octd as a process of its own, with a camera and a viewer of ours. */
#define _GNU_SOURCE /* memrchr */
#include "tools/bench/rig.h"
#include "config/apply.h"
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "pipeline/net/control_client.h"
#include "pipeline/wire/shm_layout.h"
#include "tools/bench/part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#define STATUS_STEP_MS 1000u /* time between two checks that octd still runs */

extern char **environ;

/* ---- the camera ---- */

static void sleep_until(uint64_t at_ns)
{
    const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                .tv_nsec = (long)(at_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

enum oct_err oct_bench_rig_load(struct oct_bench_rig *r, unsigned block, struct oct_error *err)
{
    const size_t bytes = oct_geometry_spectra_bytes(&r->scene.plan->geometry);
    free(r->film);
    r->block = block;
    r->film = malloc((block + OCT_BENCH_FRAMES) * bytes);
    if (!r->film)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the camera's B-scans");
    for (unsigned n = 0; n < block + OCT_BENCH_FRAMES; n++)
        memcpy((char *)r->film + n * bytes, r->scene.in[n % OCT_BENCH_FRAMES].spectra, bytes);
    return OCT_OK;
}

/* What the camera of a rig keeps. */
struct camera {
    struct oct_bench_rig *rig;
    struct oct_client *client;
    uint32_t n_lines;                       /* of a block */
    size_t bytes;                           /* of a block */
    const void *filled[OCT_SHM_MOST_SLOTS]; /* slots that hold spectra */
    unsigned n_filled;
};

/* Whether the slot at this address was filled before; notes it. */
static bool note_filled(struct camera *c, const void *slot)
{
    for (unsigned k = 0; k < c->n_filled; k++)
        if (c->filled[k] == slot)
            return true;
    if (c->n_filled < OCT_SHM_MOST_SLOTS)
        c->filled[c->n_filled++] = slot;
    return false;
}

/* The clock when the last line is sent, not the first: the measured delay begins there. */
static enum oct_client_result send_block(struct camera *c, uint64_t number)
{
    const struct oct_bench_rig *r = c->rig;
    const size_t bscan = oct_geometry_spectra_bytes(&r->scene.plan->geometry);
    const uint64_t first = number * (r->block ? r->block : 1) % OCT_BENCH_FRAMES;
    uint16_t *from = r->film ? (uint16_t *)(void *)((char *)r->film + first * bscan)
                             : r->scene.in[first].spectra;
    uint16_t *to;
    if (r->filling == OCT_BENCH_HAND_OVER)
        return oct_client_send_owned(c->client, from, c->n_lines, oct_clock_ns(), NULL, NULL);
    enum oct_client_result result = oct_client_borrow(c->client, c->n_lines, &to);
    if (result != OCT_CLIENT_OK)
        return result;
    if (!note_filled(c, to) || r->filling == OCT_BENCH_FILL_PLACE)
        memcpy(to, from, c->bytes);
    return oct_client_send_borrowed(c->client, c->n_lines, oct_clock_ns());
}

/* Sends each block at the time at which a camera would have exposed it, whether octd takes it or
 * not; or as soon as there is room. */
static void send_blocks(struct camera *c)
{
    struct oct_bench_rig *r = c->rig;
    uint64_t begin = oct_clock_ns();
    enum oct_client_result result = OCT_CLIENT_OK;
    for (uint64_t b = 0; !atomic_load(&r->stop) && !r->camera_failed;
         b += result == OCT_CLIENT_OK) {
        if (atomic_exchange(&r->restart, false)) {
            oct_client_start(c->client);
            begin = oct_clock_ns();
            b = 0;
        }
        if (r->rate_hz > 0)
            sleep_until(begin + (uint64_t)((double)(b + 1) * c->n_lines / r->rate_hz * 1e9));
        result = send_block(c, b);
        r->camera_failed = result == OCT_CLIENT_REFUSED || result == OCT_CLIENT_FAILED;
        if (r->rate_hz > 0)
            result = OCT_CLIENT_OK; /* what was dropped is not sent again */
    }
    r->camera_s = (double)(oct_clock_ns() - begin) * 1e-9;
}

static void *run_camera(void *argument)
{
    struct oct_bench_rig *r = argument;
    const struct oct_geometry *g = &r->scene.plan->geometry;
    const struct oct_client_options options = {
        .drop_when_full = r->rate_hz > 0, .wait_ms = 100, .linger_ms = 1};
    struct camera *c = calloc(1, sizeof(*c));
    r->camera_failed = !c || oct_client_connect(&c->client, r->ingest, g->n_samples, &options, NULL,
                                                0) != OCT_CLIENT_OK;
    if (r->camera_failed) {
        free(c);
        return NULL;
    }
    c->rig = r;
    c->n_lines = g->n_lines * (r->block ? r->block : 1);
    c->bytes = oct_geometry_spectra_bytes(g) * (r->block ? r->block : 1);
    send_blocks(c);
    struct oct_client_counters counters;
    oct_client_flush(c->client, 1000);
    oct_client_get_counters(c->client, &counters);
    r->n_given_up = counters.lines_dropped + counters.lines_queued;
    oct_client_give_up(c->client);
    oct_client_close(c->client);
    free(c);
    return NULL;
}

void oct_bench_camera_end(struct oct_bench_rig *r)
{
    atomic_store(&r->stop, true);
    if (r->has_camera)
        pthread_join(r->camera, NULL);
    r->has_camera = false;
}

enum oct_err oct_bench_camera_start(struct oct_bench_rig *r, struct oct_error *err)
{
    atomic_store(&r->stop, false);
    enum oct_err e = oct_thread_start(&r->camera, NULL, run_camera, r, "camera thread", err);
    r->has_camera = e == OCT_OK;
    return e;
}

/* ---- the daemon ---- */

/* Adds a made-up spectrometer to a configuration that has none. */
static enum oct_err add_calibration(const struct oct_bench_rig *r, struct oct_config *c,
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

/* Writes the configuration as given, with endpoints of the rig's own. */
enum oct_err oct_bench_rig_configure(const struct oct_bench_rig *r, const struct oct_config *config,
                                     struct oct_error *err)
{
    struct oct_config c = *config;
    char path[128];
    enum oct_err e = add_calibration(r, &c, err);
    if (e)
        return e;
    snprintf(c.ingest.endpoint, sizeof(c.ingest.endpoint), "%s", r->ingest);
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

enum oct_err oct_bench_rig_start(struct oct_bench_rig *r, struct oct_error *err)
{
    char self[1024], config[128], log[128];
    posix_spawn_file_actions_t actions;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 8);
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    if (!slash)
        return oct_fail(err, OCT_E_IO, "cannot find octd beside octctl");
    memcpy(slash + 1, "octd", 5);
    snprintf(config, sizeof(config), "%s/octd.ini", r->folder);
    snprintf(log, sizeof(log), "%s/log", r->folder);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    char *const argv[] = {self, "--config", config, NULL};
    int status = posix_spawn(&r->octd, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return status ? oct_fail_errno(err, OCT_E_IO, status, "%s", self) : OCT_OK;
}

void oct_bench_rig_end(struct oct_bench_rig *r)
{
    if (r->octd > 0) {
        kill(r->octd, SIGTERM);
        while (waitpid(r->octd, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    r->octd = 0;
}

/* Prints the end of octd's log, which is removed with the folder. */
static void show_log(const struct oct_bench_rig *r)
{
    char path[128], text[1501];
    snprintf(path, sizeof(path), "%s/log", r->folder);
    FILE *log = fopen(path, "r");
    if (!log)
        return;
    if (fseek(log, -(long)(sizeof(text) - 1), SEEK_END) != 0)
        rewind(log); /* it is shorter */
    size_t n = fread(text, 1, sizeof(text) - 1, log);
    fclose(log);
    text[n] = '\0';
    const char *from = n == sizeof(text) - 1 ? strchr(text, '\n') : NULL;
    if (n)
        fprintf(stderr, "octctl bench: the end of octd's log:\n%s\n", from ? from + 1 : text);
}

void oct_bench_rig_close(struct oct_bench_rig *r, bool failed)
{
    oct_bench_camera_end(r);
    oct_bench_rig_end(r);
    oct_bench_pictures_close(r);
    if (r->context)
        zmq_ctx_term(r->context);
    free(r->film);
    oct_bench_scene_finish(&r->scene);
    if (r->records[0]) {
        oct_bench_empty_folder(r->records);
        rmdir(r->records);
    }
    if (failed && r->folder[0])
        show_log(r);
    if (r->folder[0]) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", r->folder); /* mkdtemp's own name */
        if (system(command) != 0)
            fprintf(stderr, "octctl bench: %s is left behind\n", r->folder);
    }
}

/* Returns whether octd has ended by itself: then nobody need wait for it. */
static bool has_ended(const struct oct_bench_rig *r)
{
    siginfo_t info = {.si_pid = 0};
    return r->octd > 0 && waitid(P_PID, (id_t)r->octd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == r->octd;
}

/* Receives a part of a picture as zmq_msg_recv does: -1 when octd has ended, or when nothing came
 * within OCT_BENCH_PATIENCE_MS. */
static int receive(const struct oct_bench_rig *r, zmq_msg_t *message)
{
    int step_ms = 200, n = -1;
    zmq_setsockopt(r->pictures, ZMQ_RCVTIMEO, &step_ms, sizeof(step_ms));
    for (int waited_ms = 0; n < 0 && waited_ms < OCT_BENCH_PATIENCE_MS; waited_ms += step_ms) {
        bool ended = has_ended(r); /* before: what it sent last still counts */
        n = zmq_msg_recv(message, r->pictures, 0);
        if (n < 0 && ended)
            break;
    }
    return n;
}

enum oct_err oct_bench_pictures_open(struct oct_bench_rig *r, struct oct_error *err)
{
    int none = 0;
    int every = 1; /* ms: a late connection must not count as a late picture */
    char endpoint[128];
    r->pictures = zmq_socket(r->context, ZMQ_SUB);
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/out", r->folder);
    zmq_setsockopt(r->pictures, ZMQ_RECONNECT_IVL, &every, sizeof(every));
    zmq_setsockopt(r->pictures, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(r->pictures, ZMQ_SUBSCRIBE, "bscan", 5);
    if (zmq_connect(r->pictures, endpoint))
        return oct_fail(err, OCT_E_IO, "%s: %s", endpoint, zmq_strerror(zmq_errno()));
    return OCT_OK;
}

void oct_bench_pictures_close(struct oct_bench_rig *r)
{
    if (r->pictures)
        zmq_close(r->pictures);
    r->pictures = NULL;
}

/* A port that is free now: octd takes it in a moment. */
static enum oct_err find_port(struct oct_bench_rig *r, struct oct_error *err)
{
    size_t bytes = sizeof(r->ingest);
    void *socket = zmq_socket(r->context, ZMQ_PULL);
    const bool found = zmq_bind(socket, "tcp://127.0.0.1:*") == 0 &&
                       zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, r->ingest, &bytes) == 0;
    zmq_close(socket);
    return found ? OCT_OK : oct_fail(err, OCT_E_IO, "no port is free: %s", zmq_strerror(errno));
}

static enum oct_err choose_ingest(struct oct_bench_rig *r, const char *configured,
                                  struct oct_error *err)
{
    if (strcmp(configured, OCT_BENCH_TCP) == 0)
        return find_port(r, err);
    if (oct_shm_is_endpoint(configured))
        snprintf(r->ingest, sizeof(r->ingest), OCT_SHM_SCHEME "bench-rig-%d", (int)getpid());
    else
        snprintf(r->ingest, sizeof(r->ingest), "ipc://%s/in", r->folder);
    return OCT_OK;
}

enum oct_err oct_bench_rig_open(struct oct_bench_rig *r, const struct oct_config *config,
                                double rate_hz, struct oct_error *err)
{
    *r = (struct oct_bench_rig){.folder = "/tmp/octctl-bench.XXXXXX", .rate_hz = rate_hz};
    if (!mkdtemp(r->folder)) {
        r->folder[0] = '\0';
        return oct_fail_errno(err, OCT_E_IO, errno, "/tmp: no folder");
    }
    /* octd keeps its wisdom in the rig's folder; this program has no use for the variable. */
    setenv("XDG_CACHE_HOME", r->folder, 1);
    r->context = zmq_ctx_new();
    enum oct_err e = choose_ingest(r, config->ingest.endpoint, err);
    e = e ? e : oct_bench_scene_init(&r->scene, config, 0, err);
    e = e ? e : oct_bench_rig_configure(r, config, err);
    if (e)
        return e;
    return oct_bench_pictures_open(r, err);
}

static void read_header(zmq_msg_t *header, struct oct_bench_message *message)
{
    cJSON *object = cJSON_ParseWithLength(zmq_msg_data(header), zmq_msg_size(header));
    const double sent_ns = oct_bench_number(object, NULL, "time_ns");
    message->number = oct_bench_number(object, NULL, "frame_num");
    message->sent_ns = sent_ns > 0 ? (uint64_t)sent_ns : 0;
    message->lo = oct_bench_number(object, NULL, "lo");
    message->hi = oct_bench_number(object, NULL, "hi");
    cJSON_Delete(object);
}

enum oct_err oct_bench_message_take(struct oct_bench_rig *r, struct oct_bench_message *message,
                                    struct oct_error *err)
{
    int more = 1;
    size_t more_bytes = sizeof(more);
    for (int n = 0; more; n++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (receive(r, &part) < 0) {
            zmq_msg_close(&part);
            return oct_fail(err, OCT_E_IO, "octd has sent no picture");
        }
        message->bytes = zmq_msg_size(&part);
        if (n == 0)
            message->is_picture =
                message->bytes == 5 && memcmp(zmq_msg_data(&part), "bscan", 5) == 0;
        if (n == 1)
            read_header(&part, message);
        if (n == 2 && message->is_picture && message->pixels &&
            message->bytes == oct_geometry_image_bytes(&r->scene.plan->geometry))
            memcpy(message->pixels, zmq_msg_data(&part), message->bytes);
        zmq_msg_close(&part);
        zmq_getsockopt(r->pictures, ZMQ_RCVMORE, &more, &more_bytes);
    }
    return OCT_OK;
}

enum oct_err oct_bench_picture_take(struct oct_bench_rig *r, uint64_t *sent_ns,
                                    struct oct_error *err)
{
    struct oct_bench_message message = {.bytes = 0};
    const enum oct_err e = oct_bench_message_take(r, &message, err);
    if (e)
        return e;
    if (sent_ns)
        *sent_ns = message.sent_ns;
    return message.bytes == oct_geometry_image_bytes(&r->scene.plan->geometry)
               ? OCT_OK
               : oct_fail(err, OCT_E_FORMAT, "a picture has %zu bytes", message.bytes);
}

static cJSON *ask(const struct oct_bench_rig *r, const char *request, unsigned timeout_ms)
{
    char endpoint[128], *reply = NULL;
    const struct oct_control_client_setup setup = {.endpoint = endpoint};
    struct oct_control_client *client;
    snprintf(endpoint, sizeof(endpoint), "ipc://%s/control", r->folder);
    if (oct_control_client_create(&client, &setup, NULL))
        return NULL;
    oct_control_client_ask(client, request, timeout_ms, &reply, NULL, NULL);
    oct_control_client_destroy(client);
    cJSON *answer = reply ? cJSON_Parse(reply) : NULL;
    free(reply);
    return answer;
}

cJSON *oct_bench_rig_ask(const struct oct_bench_rig *r, const char *request)
{
    return ask(r, request, OCT_BENCH_PATIENCE_MS);
}

cJSON *oct_bench_rig_status(const struct oct_bench_rig *r)
{
    cJSON *status = NULL;
    bool ended = false;
    for (unsigned waited_ms = 0; !status && !ended && waited_ms < OCT_BENCH_PATIENCE_MS;
         waited_ms += STATUS_STEP_MS) {
        ended = has_ended(r); /* before: what it sent last still counts */
        status = ask(r, "{\"cmd\":\"status\"}", STATUS_STEP_MS);
    }
    return status;
}

double oct_bench_number(const cJSON *status, const char *group, const char *key)
{
    const cJSON *object = group ? cJSON_GetObjectItemCaseSensitive(status, group) : status;
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(number) ? number->valuedouble : -1;
}

bool oct_bench_phase_is(const cJSON *status, const char *phase)
{
    const char *is = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "phase"));
    return is && strcmp(is, phase) == 0;
}

cJSON *oct_bench_rig_until(const struct oct_bench_rig *r,
                           bool (*is_wanted)(const cJSON *status, double than), double than,
                           bool *came)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    const uint64_t until = oct_clock_ns() + OCT_BENCH_PATIENCE_MS * UINT64_C(1000000);
    cJSON *status = NULL;
    for (;; nanosleep(&pause, NULL)) {
        cJSON_Delete(status);
        status = oct_bench_rig_status(r);
        *came = status && is_wanted(status, than);
        if (!status || *came || oct_clock_ns() > until)
            return status;
    }
}

static bool takes_lines_or_failed(const cJSON *status, double than)
{
    (void)than;
    return oct_bench_phase_is(status, "armed") || oct_bench_phase_is(status, "running") ||
           oct_bench_phase_is(status, "error");
}

enum oct_err oct_bench_rig_await(const struct oct_bench_rig *r, struct oct_error *err)
{
    bool came;
    cJSON *status = oct_bench_rig_until(r, takes_lines_or_failed, 0, &came);
    const bool answers = status != NULL, failed = oct_bench_phase_is(status, "error");
    cJSON_Delete(status);
    if (!answers)
        return oct_fail(err, OCT_E_IO, "octd does not answer");
    return came && !failed ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not take lines");
}

enum oct_err oct_bench_rig_run(struct oct_bench_rig *r, struct oct_error *err)
{
    const enum oct_err e = oct_bench_rig_start(r, err);
    return e ? e : oct_bench_rig_await(r, err);
}

enum oct_err oct_bench_rig_command(const struct oct_bench_rig *r, const char *request,
                                   struct oct_error *err)
{
    cJSON *reply = oct_bench_rig_ask(r, request);
    const bool granted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    cJSON_Delete(reply);
    return granted ? OCT_OK : oct_fail(err, OCT_E_IO, "octd does not do %s", request);
}
