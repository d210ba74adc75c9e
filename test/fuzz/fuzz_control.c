/* Control requests, several an input (0x1e between them), to oct_control_answer: the real daemon,
 * its state machine and a real session of a small CPU engine; the first byte says in which state.
 * Only slow work is a stand-in (oct_job_begin below): no session is built, no recording is begun,
 * so no input gets at the disk. */
#include "daemon/control.h"
#include "pipeline/base/log.h"
#include "pipeline/base/utf8.h"
#include "test/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { MOST_REQUESTS = 24 };

static uv_loop_t loop;
static struct oct_config config;
static struct oct_session *session;
static struct oct_daemon daemon_;

/* ---- stand-ins: these come before the library's own ---- */

void oct_log(enum oct_log_level level, const char *format, ...)
{
    char text[2048];
    va_list values;
    (void)level;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
}

/* Nothing begins; finish_job below says how it ended. */
void oct_job_begin(struct oct_daemon_job *job, uv_loop_t *its_loop)
{
    (void)job;
    (void)its_loop;
}

static void finish_job(struct oct_daemon *d, bool well)
{
    struct oct_daemon_job *job = &d->job;
    if (job->kind == OCT_JOB_NONE)
        return;
    job->err = (struct oct_error){.code = OCT_OK};
    if (job->kind == OCT_JOB_BUILD)
        job->session = session;
    if (job->kind == OCT_JOB_BUILD && !well)
        job->refused = oct_fail(&job->err, OCT_E_CONFIG, "refused by the stand-in") != OCT_OK;
    if (job->kind == OCT_JOB_RECORD)
        oct_fail(&job->err, OCT_E_IO, "no disk behind the stand-in");
    job->done(job);
}

/* ---- the rig ---- */

static void set_key(const char *key, const char *value)
{
    struct oct_error err = {.text = ""};
    if (oct_config_set(&config, key, value, "fuzz", &err))
        fuzz_fail(err.text, __FILE__, __LINE__);
}

static void set_endpoint(const char *key, const char *name)
{
    char endpoint[1024];
    snprintf(endpoint, sizeof(endpoint), "ipc://%s", fuzz_path(0, name));
    set_key(key, endpoint);
}

static void end_session(void)
{
    oct_session_destroy(session);
    session = NULL;
    oct_daemon_finish(&daemon_);
}

static void set_up(void)
{
    struct oct_error err = {.text = ""};
    setenv("XDG_CACHE_HOME", fuzz_folder(), 1);
    uv_loop_init(&loop);
    oct_config_init(&config);
    set_key("camera.samples", "16");
    set_key("scan.lines", "4");
    set_key("scan.bscans", "2");
    set_key("pipeline.backend", "cpu");
    set_key("pipeline.threads", "1");
    set_key("pipeline.ring_bscans", "8");
    set_key("record.last_s", "1");
    set_key("record.directory", fuzz_path(0, ""));
    const char *kmap = fuzz_path(0, "kmap");
    fuzz_write_file(kmap, "0\n15\n", 5);
    set_key("calibration.kmap", kmap);
    set_endpoint("ingest.endpoint", "lines");
    set_endpoint("publish.endpoint", "pictures");
    set_endpoint("control.endpoint", "control");
    const struct oct_epochs epochs = {.last = UINT32_MAX};
    if (oct_session_create(&session, &config, NULL, "fuzz", false, &epochs, &err) ||
        oct_daemon_init(&daemon_, &loop, &config, &err))
        fuzz_fail(err.text, __FILE__, __LINE__);
    atexit(end_session);
}

/* As after the daemon's start, in one of its states. */
static void reset(uint32_t state)
{
    struct oct_daemon *d = &daemon_;
    struct oct_disk disk = d->disk;
    *d = (struct oct_daemon){.config = config,
                             .zmq_context = d->zmq_context,
                             .loop = &loop,
                             .state = (enum oct_state)(state % OCT_N_STATES),
                             .session = session,
                             .open = state & 8,
                             .disk = disk,
                             .was_ready = true,
                             .started_ns = d->started_ns};
    d->must_build = d->state == OCT_STATE_STARTING;
    d->drain_by_ns = UINT64_MAX;
    memcpy(d->name, "fuzz", 5);
}

/* Then it was one JSON object from the first byte to the last. */
static void check_granted(const char *text, size_t n)
{
    cJSON *request = cJSON_ParseWithOpts(text, NULL, true);
    fuzz_must(strlen(text) == n && cJSON_IsObject(request));
    cJSON_Delete(request);
}

static void ask(struct fuzz_input *in)
{
    static struct oct_config before;
    enum oct_under_way under_way;
    size_t n;
    struct fuzz_input same = *in;
    char *request = fuzz_piece(in, false, &n), *text = fuzz_piece(&same, true, NULL);
    before = daemon_.config;
    char *reply = oct_control_answer(&daemon_, request, n, &under_way);
    fuzz_must(reply != NULL && oct_utf8_valid_bytes(reply, strlen(reply)) == strlen(reply));
    cJSON *tree = cJSON_Parse(reply);
    const cJSON *ok = cJSON_GetObjectItemCaseSensitive(tree, "ok");
    fuzz_must(cJSON_IsObject(tree) && cJSON_IsBool(ok));
    if (cJSON_IsFalse(ok)) {
        fuzz_must(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "error")) != NULL);
        fuzz_must(memcmp(&before, &daemon_.config, sizeof(before)) == 0);
    }
    fuzz_must((unsigned)daemon_.state < OCT_N_STATES);
    if (cJSON_IsTrue(ok))
        check_granted(text, n);
    cJSON_Delete(tree);
    cJSON_free(reply);
    free(request);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    if (!session)
        set_up();
    uint32_t first = (uint32_t)fuzz_take(&in, 1);
    reset(first);
    for (int i = 0; in.left > 0 && i < MOST_REQUESTS; i++) {
        ask(&in);
        if ((first >> (4 + i % 4)) & 1) {
            finish_job(&daemon_, i % 3 != 2);
            oct_daemon_tick(&daemon_);
        }
        cJSON_free(oct_control_outcome(&daemon_, OCT_UNDER_WAY_CHANGE));
        cJSON_free(oct_control_outcome(&daemon_, OCT_UNDER_WAY_LAST));
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}
