#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "daemon/http.h"

#include "daemon/metrics.h"
#include "pipeline/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <microhttpd.h>

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

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned code, const char *type,
                              char *text, size_t n_bytes, enum MHD_ResponseMemoryMode mode)
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

static enum MHD_Result say(struct MHD_Connection *connection, unsigned code, char *text)
{
    return answer(connection, code, "text/plain; charset=utf-8", text, strlen(text),
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
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, only_get);
    if (strcmp(url, "/metrics") != 0)
        return say(connection, MHD_HTTP_NOT_FOUND, not_found);
    cJSON *status = oct_daemon_status_tree(http->daemon);
    char *text = status ? oct_metrics_text(status, &n_bytes) : NULL;
    cJSON_Delete(status);
    if (!text)
        return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, no_memory);
    return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
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
