#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "daemon/http.h"

#include "daemon/state.h"
#include "pipeline/base/log.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The status as Prometheus text (exposition format 0.0.4): one table names each number of the
 * status that is a metric, so that the two cannot disagree. docs/metrics.md lists them. */

struct cJSON;

/* A number of the status, or an object of numbers. */
struct metric {
    const char *path;  /* "record.active" */
    const char *name;  /* that of a counter ends by "_total", others are gauges */
    const char *help;  /* NULL: that of the row before */
    const char *label; /* of an object's members: its name; else "name=\"value\"", or NULL */
    double scale;      /* 0: as it stands */
};

/* A number of each object of the status' array "analysis", or an object of numbers there. */
static const struct metric of_analyses[] = {
    {"seen", "octd_analysis_seen_total",
     .help = "B-scans that an analysis dealt with: done + skipped."},
    {"done", "octd_analysis_done_total", .help = "Of those, analysed."},
    {"skipped", "octd_analysis_skipped_total", .label = "reason", .help = "Of those, skipped."},
    {"results", "octd_analysis_results_total", .help = "Results that an analysis made."},
    {"published", "octd_analysis_published_total", .help = "Of those, sent to subscribers."},
    {"recorded", "octd_analysis_recorded_total", .help = "Of those, written into files."},
    {"not_recorded", "octd_analysis_not_recorded_total",
     .help = "Of those, too late for their file or passed over."},
    {"busy_s", "octd_analysis_busy_seconds", .help = "At work at one B-scan for so long."},
    {"failing", "octd_analysis_failing", .help = "Whether its newest B-scan failed."},
};

/* Rows of one name stand together. */
static const struct metric metrics[] = {
    {"uptime_s", "octd_uptime_seconds", .help = "Since the daemon's start."},
    {"source.streaming", "octd_source_streaming", .help = "Whether lines come."},
    {"source.losses", "octd_source_losses_total",
     .help = "Times that the sender fell silent in the middle of a volume."},
    {"lines_received", "octd_lines_received_total", .help = "A-lines placed into B-scans."},
    {"lines_missing", "octd_lines_missing_total", .help = "A-lines that never came."},
    {"lines_cut", "octd_lines_cut_total",
     .help = "Of those, cut off by a stop or a start: no loss of the camera's."},
    {"lines_duplicate", "octd_lines_duplicate_total", .help = "A-lines that came again."},
    {"lines_late", "octd_lines_late_total", .help = "A-lines whose B-scan was closed."},
    {"lines_flyback", "octd_lines_flyback_total", .help = "A-lines that belong to no B-scan."},
    {"lines_dropped", "octd_lines_dropped_total",
     .help = "A-lines whose B-scan found no free slot."},
    {"messages_received", "octd_messages_received_total", .help = "Well-formed messages."},
    {"messages_duplicate", "octd_messages_duplicate_total", .help = "Messages that came again."},
    {"messages_missed", "octd_messages_missed_total",
     .help = "Messages that had not come when a later one did."},
    {"messages_reordered", "octd_messages_reordered_total",
     .help = "Of those missed, came after all."},
    {"messages_ignored", "octd_messages_ignored_total", .help = "Messages taken while idle."},
    {"messages_bad", "octd_messages_bad_total", .label = "reason", .help = "Malformed messages."},
    {"acquisitions", "octd_acquisitions_total", .help = "Acquisitions that began."},
    {"bscans_begun", "octd_bscans_begun_total",
     .help = "B-scans of which a line came: done + dropped + in flight."},
    {"bscans_done", "octd_bscans_done_total", .help = "B-scans reconstructed."},
    {"bscans_dropped", "octd_bscans_dropped_total", .label = "reason", .help = "B-scans lost."},
    {"bscans_in_flight", "octd_bscans_in_flight", .help = "B-scans between the two."},
    {"bscans_published", "octd_bscans_published_total", .help = "B-scans sent to viewers."},
    {"bscans_not_published", "octd_bscans_not_published_total",
     .help = "B-scans that the publisher skipped."},
    {"record.active", "octd_recording", .help = "Whether a recording is under way."},
    {"record.bscans_queued", "octd_recorder_queue_bscans",
     .help = "B-scans that wait for the recorder."},
    {"record_total.offered", "octd_record_offered_total",
     .help = "B-scans that recordings should have: written + dropped + pending."},
    {"record_total.written", "octd_record_written_total", .help = "Of those, safe in files."},
    {"record_total.dropped", "octd_record_dropped_total", .label = "reason",
     .help = "Of those, lost."},
    {"record_total.pending", "octd_record_pending", .help = "Of those, not safe yet."},
    {"bscans_written", "octd_bscans_written_total", .help = "B-scans safe in files."},
    {"bscans_unsaved", "octd_bscans_unsaved_total", .help = "B-scans lost to a failed recording."},
    {"volumes_written", "octd_volumes_written_total", .help = "Files closed."},
    {"volumes_incomplete", "octd_volumes_incomplete_total", .help = "Of those, not whole."},
    {"bytes_written", "octd_written_bytes_total", .help = "Bytes safe in files."},
    {"disk_bytes_free", "octd_disk_free_bytes", .help = "Where recordings go."},
    {"average.averaged", "octd_average_bscans", .help = "B-scans in the live average."},
    {"average.score", "octd_average_score", .help = "Correlation of the newest B-scan with it."},
    {"average.rejected", "octd_average_rejected_total",
     .help = "B-scans that it left out as no match."},
    {"average.resets", "octd_average_resets_total", .help = "Times that it began anew."},
    {"average.behind", "octd_average_behind_total",
     .help = "B-scans that it left out because others had come meanwhile."},
    {"latency_us.p50", "octd_latency_seconds", .label = "quantile=\"0.5\"", .scale = 1e-6,
     .help = "From a B-scan's last line to its publication, in this acquisition."},
    {"latency_us.p99", "octd_latency_seconds", .label = "quantile=\"0.99\"", .scale = 1e-6},
    {"latency_us.max", "octd_latency_seconds", .label = "quantile=\"1\"", .scale = 1e-6},
};

/* "a.b" of a tree; NULL: not there. */
static const cJSON *find_path(const cJSON *tree, const char *path)
{
    char word[32];
    const char *dot = strchr(path, '.');
    if (!dot)
        return cJSON_GetObjectItemCaseSensitive(tree, path);
    snprintf(word, sizeof(word), "%.*s", (int)(dot - path), path);
    return find_path(cJSON_GetObjectItemCaseSensitive(tree, word), dot + 1);
}

static void write_head(FILE *out, const char *name, const char *help)
{
    const char *word = strrchr(name, '_');
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            strcmp(word, "_total") == 0 ? "counter" : "gauge");
}

/* Counts stand in the tree as text, to the last digit. */
static void write_value(FILE *out, const cJSON *value, double scale)
{
    double number = cJSON_IsRaw(value) ? strtod(value->valuestring, NULL) : value->valuedouble;
    if (cJSON_IsBool(value))
        fprintf(out, " %d\n", cJSON_IsTrue(value));
    else if (cJSON_IsRaw(value) && scale == 0)
        fprintf(out, " %s\n", value->valuestring);
    else
        fprintf(out, " %.17g\n", scale == 0 ? number : number * scale);
}

/* A number, or the numbers of an object. labels: of all of them, NULL: none. */
static void write_metric(FILE *out, const struct metric *m, const char *labels, const cJSON *value)
{
    const cJSON *member;
    const char *comma = labels ? "," : "";
    labels = labels ? labels : "";
    if (!cJSON_IsObject(value)) {
        fprintf(out, *labels ? "%s{%s}" : "%s", m->name, labels);
        write_value(out, value, m->scale);
        return;
    }
    cJSON_ArrayForEach(member, value)
    {
        fprintf(out, "%s{%s%s%s=\"%s\"}", m->name, labels, comma, m->label, member->string);
        write_value(out, member, m->scale);
    }
}

/* A label's value may hold anything: backslash, quote and line feed are escaped. */
static void write_escaped(FILE *out, const char *text)
{
    for (; text && *text; text++)
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
}

static void write_words(FILE *out, const cJSON *status)
{
    static const char *const troubles[] = {"source", "source_refused", "engine",        "recording",
                                           "disk",   "analysis",       "analysis_late", "keys"};
    const char *phase = cJSON_GetStringValue(find_path(status, "phase"));
    const cJSON *degraded = find_path(status, "degraded"), *item;

    write_head(out, "octd_build_info", "What runs.");
    fputs("octd_build_info{version=\"", out);
    write_escaped(out, cJSON_GetStringValue(find_path(status, "version")));
    fputs("\",backend=\"", out);
    write_escaped(out, cJSON_GetStringValue(find_path(status, "backend")));
    fputs("\"} 1\n", out);
    write_head(out, "octd_state", "1 for the state that the daemon is in.");
    for (int s = 0; s < OCT_N_STATES; s++)
        fprintf(out, "octd_state{state=\"%s\"} %d\n", oct_state_names[s],
                phase && strcmp(phase, oct_state_names[s]) == 0);
    write_head(out, "octd_degraded", "1 for what is not as it should be.");
    for (size_t k = 0; k < sizeof(troubles) / sizeof(troubles[0]); k++) {
        bool there = false;
        cJSON_ArrayForEach(item, degraded)
        {
            there |= cJSON_IsString(item) && strcmp(item->valuestring, troubles[k]) == 0;
        }
        fprintf(out, "octd_degraded{what=\"%s\"} %d\n", troubles[k], there);
    }
}

static void write_of_analyses(FILE *out, const struct metric *m, const cJSON *analyses)
{
    const cJSON *analysis;
    char labels[64];
    write_head(out, m->name, m->help);
    cJSON_ArrayForEach(analysis, analyses)
    {
        const cJSON *value = find_path(analysis, m->path);
        snprintf(labels, sizeof(labels), "analysis=\"%s\"",
                 cJSON_GetStringValue(find_path(analysis, "name")));
        if (value) /* else it did not start */
            write_metric(out, m, labels, value);
    }
}

/* The text of a status (oct_daemon_status), malloc'd, of *n_bytes; NULL when out of memory.
 * What the status does not know (null) is left out. */
static char *metrics_text(const cJSON *status, size_t *n_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_bytes);
    if (!out)
        return NULL;
    write_words(out, status);
    for (size_t k = 0; k < sizeof(metrics) / sizeof(metrics[0]); k++) {
        const cJSON *value = find_path(status, metrics[k].path);
        if (!value || cJSON_IsNull(value))
            continue;
        if (metrics[k].help)
            write_head(out, metrics[k].name, metrics[k].help);
        write_metric(out, &metrics[k], cJSON_IsObject(value) ? NULL : metrics[k].label, value);
    }
    const cJSON *analyses = find_path(status, "analysis");
    for (size_t k = 0;
         cJSON_GetArraySize(analyses) > 0 && k < sizeof(of_analyses) / sizeof(of_analyses[0]); k++)
        write_of_analyses(out, &of_analyses[k], analyses);
    bool whole = !ferror(out);
    if (fclose(out) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

#define MOST_CONNECTIONS 16u
#define SILENCE_S 5u
#define CONNECTION_BYTES ((size_t)16384) /* for request and header; larger ones are refused */
#define AT_ONCE 32

struct oct_http {
    const struct oct_daemon *daemon;
    struct MHD_Daemon *server;
    uv_poll_t poll;
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* "127.0.0.1:9464" or "[::1]:9464", of this machine alone; false: it is not. */
static bool read_address(const char *text, union address *address, socklen_t *bytes)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9' || (size_t)(colon - text) >= sizeof(host))
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (*end || port > 65535)
        return false;
    *address = (union address){0};
    bool is_v6 = text[0] == '[' && colon[-1] == ']';
    size_t n = (size_t)(colon - text) - (is_v6 ? 2 : 0);
    memcpy(host, text + is_v6, n);
    host[n] = '\0';
    if (is_v6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        *bytes = sizeof(address->v6);
        return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 &&
               IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    *bytes = sizeof(address->v4);
    return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 &&
           ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

static enum oct_err listen_on(const char *endpoint, int *fd, struct oct_error *err)
{
    union address address;
    socklen_t bytes;
    int yes = 1;

    if (!read_address(endpoint, &address, &bytes))
        return oct_fail_key(err, OCT_E_CONFIG, "metrics.endpoint",
                            "metrics.endpoint: '%s' is no loopback ADDRESS:PORT, such as "
                            "127.0.0.1:9464 or [::1]:9464",
                            endpoint);
    *fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0)
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (*fd < 0 || bind(*fd, &address.any, bytes) != 0 || listen(*fd, (int)MOST_CONNECTIONS) != 0) {
        int why = errno;
        if (*fd >= 0)
            close(*fd);
        return oct_fail_key_errno(err, OCT_E_IO, "metrics.endpoint", why, "metrics.endpoint: %s",
                                  endpoint);
    }
    if (getsockname(*fd, &address.any, &bytes) == 0)
        oct_log(
            OCT_LOG_INFO, "metrics on http://%.*s:%u/metrics",
            (int)(strrchr(endpoint, ':') - endpoint), endpoint,
            ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port));
    return OCT_OK;
}

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned code,
                                     const char *type, char *text, size_t n_bytes,
                                     enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(n_bytes, text, mode);
    if (!response) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned code, char *text)
{
    return send_response(connection, code, "text/plain; charset=utf-8", text, strlen(text),
                         MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result on_request(void *argument, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_bytes, void **state)
{
    static char only_get[] = "only GET is answered here\n";
    static char not_found[] = "there is /metrics, nothing else\n";
    static char no_memory[] = "out of memory\n";
    struct oct_http *http = argument;
    size_t n_bytes;
    (void)version;
    (void)upload;
    (void)upload_bytes;
    (void)state;

    if (strcmp(method, "GET") != 0) /* a body to upload is not read */
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, only_get);
    if (strcmp(url, "/metrics") != 0)
        return send_text(connection, MHD_HTTP_NOT_FOUND, not_found);
    cJSON *status = oct_daemon_status(http->daemon);
    char *text = status ? metrics_text(status, &n_bytes) : NULL;
    cJSON_Delete(status);
    if (!text)
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, no_memory);
    return send_response(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
                         n_bytes, MHD_RESPMEM_MUST_FREE);
}

/* ---- life ---- */

void oct_http_serve(struct oct_http *http)
{
    MHD_UNSIGNED_LONG_LONG soon_ms = 0;
    if (!http)
        return;
    /* Its events are edge-triggered: libmicrohttpd says whether work is left. */
    for (int n = 0; n < AT_ONCE && soon_ms == 0; n++) {
        MHD_run(http->server);
        if (MHD_get_timeout(http->server, &soon_ms) != MHD_YES)
            return;
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    oct_http_serve(poll->data);
}

enum oct_err oct_http_create(struct oct_http **out, uv_loop_t *loop,
                             const struct oct_daemon *daemon, struct oct_error *err)
{
    int fd = -1;
    *out = NULL;
    struct oct_error why = {.code = OCT_OK};
    if (listen_on(daemon->config.metrics.endpoint, &fd, &why))
        return oct_config_blame(&daemon->config, &why, err);
    struct oct_http *http = calloc(1, sizeof(*http));
    if (http)
        http->server = MHD_start_daemon(
            MHD_USE_EPOLL, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http && http->server ? MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        close(fd);
        free(http);
        return oct_fail_key(err, OCT_E_NO_MEMORY, "metrics.endpoint",
                            "metrics.endpoint: no HTTP server");
    }
    http->daemon = daemon;
    http->poll.data = http;
    uv_poll_init(loop, &http->poll, info->epoll_fd);
    uv_poll_start(&http->poll, UV_READABLE, on_readable);
    *out = http;
    return OCT_OK;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void oct_http_destroy(struct oct_http *http)
{
    if (!http)
        return;
    uv_poll_stop(&http->poll);
    uv_close((uv_handle_t *)&http->poll, on_closed);
    MHD_stop_daemon(http->server);
}
