#include "web/server.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "web/access.h"
#include "web/certificate.h"
#include "web/pages.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_NS (12 * OCT_NS_PER_MS) /* at most so often */
#define TICK_US (20 * LWS_US_PER_MS) /* and at least */
#define END_NS (5 * OCT_NS_PER_S)    /* disks are waited for so long at the end */
#define LOGIN_S 20
#define CLOSE_LATER 1013 /* RFC 6455's registry: try again later */

/* Of a request; the WebSocket that it may become goes on with the browser in it. */
struct session {
    struct oct_web_browser browser;
    bool is_browser, is_too_many;
    struct oct_web_login *login;    /* being used; owned */
    char body[OCT_WEB_TOKEN_BYTES]; /* of a login */
    size_t n_body;
    bool is_login;
};

static struct oct_web *web_of(struct lws *wsi)
{
    return lws_context_user(lws_get_context(wsi));
}

/* ---- answers ---- */

static bool add_header(struct lws *wsi, const char *name, const char *value, unsigned char **p,
                       unsigned char *end)
{
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
                                       (const unsigned char *)value, (int)strlen(value), p,
                                       end) == 0;
}

/* What a page may do: nothing but with this host, by the name that it was called by. */
static bool add_policy(struct lws *wsi, unsigned char **p, unsigned char *end)
{
    struct oct_web *web = web_of(wsi);
    char host[256] = "", policy[768];
    if (oct_web_access_is_ours(web, wsi, false))
        lws_hdr_copy(wsi, host, sizeof(host), WSI_TOKEN_HOST);
    snprintf(policy, sizeof(policy),
             "default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; "
             "connect-src 'self'%s%s; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
             host[0] ? web->tls ? " wss://" : " ws://" : "", host);
    return add_header(wsi, "content-security-policy:", policy, p, end);
}

/* The whole answer at once; lws keeps what the system does not take. `bytes` are not written to:
 * only HTTP/1 is spoken. */
static int answer(struct lws *wsi, unsigned code, const char *type, const char *cookie,
                  const unsigned char *bytes, size_t n)
{
    unsigned char buffer[LWS_PRE + 2048], *start = buffer + LWS_PRE, *p = start;
    unsigned char *end = buffer + sizeof(buffer) - 1;
    static const char *const headers[][2] = {
        {"cache-control:", "no-store"},
        {"referrer-policy:", "no-referrer"},
        {"x-content-type-options:", "nosniff"},
        {"x-frame-options:", "deny"},
    };
    bool good = lws_add_http_common_headers(wsi, code | LWSAHH_FLAG_NO_SERVER_NAME, type, n, &p,
                                            end) == 0 &&
                add_policy(wsi, &p, end) &&
                (!cookie || add_header(wsi, "set-cookie:", cookie, &p, end));
    for (size_t i = 0; good && i < sizeof(headers) / sizeof(headers[0]); i++)
        good = add_header(wsi, headers[i][0], headers[i][1], &p, end);
    if (!good || lws_finalize_write_http_header(wsi, start, &p, end))
        return -1;
    if (n > 0 && lws_write(wsi, (unsigned char *)bytes, n, LWS_WRITE_HTTP_FINAL) < 0)
        return -1;
    return lws_http_transaction_completed(wsi);
}

static int answer_text(struct lws *wsi, unsigned code, const char *text)
{
    return answer(wsi, code, "text/plain; charset=utf-8", NULL, (const unsigned char *)text,
                  strlen(text));
}

/* ---- metrics ---- */

static int answer_metrics(struct oct_web *web, struct lws *wsi)
{
    const struct oct_web_counts *c = &web->counts;
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"connections", "gauge", "Connections of browsers.", c->n_connections},
        {"browsers", "gauge", "Browsers that look.", c->n_browsers},
        {"playbacks", "gauge", "Recordings that are played.", c->n_playbacks},
        {"pictures_total", "counter", "Pictures sent.", (double)c->n_pictures},
        {"bytes_total", "counter", "Bytes sent over WebSockets.", (double)c->n_bytes},
        {"actions_total", "counter", "What browsers asked for.", (double)c->n_actions},
        {"refused_connections_total", "counter", "Too many.", (double)c->refused_connections},
        {"refused_host_total", "counter", "Of another Host or Origin.", (double)c->refused_host},
        {"refused_token_total", "counter", "Without a token that is known.",
         (double)c->refused_token},
        {"refused_message_total", "counter", "Messages that are none.", (double)c->refused_message},
        {"refused_role_total", "counter", "What a role may not.", (double)c->refused_role},
    };
    char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "# HELP octweb_%s %s\n# TYPE octweb_%s %s\noctweb_%s %.0f\n",
                              rows[i].name, rows[i].help, rows[i].name, rows[i].type, rows[i].name,
                              rows[i].value);
    return answer(wsi, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
                  (const unsigned char *)text, n);
}

static bool is_of_this_machine(struct lws *wsi)
{
    char peer[64] = "";
    lws_get_peer_simple(wsi, peer, sizeof(peer));
    const char *v4 = strncmp(peer, "::ffff:", 7) == 0 ? peer + 7 : peer;
    return strncmp(v4, "127.", 4) == 0 || strcmp(peer, "::1") == 0;
}

/* ---- requests ---- */

static bool is_ours(struct oct_web *web, struct lws *wsi, bool needs_origin)
{
    const bool is = oct_web_access_is_ours(web, wsi, needs_origin);
    web->counts.refused_host += !is;
    return is;
}

static int login(struct oct_web *web, struct lws *wsi, struct session *s)
{
    unsigned status;
    if (s->login) /* lws says so again when a request behind it comes */
        return 0;
    s->body[s->n_body] = '\0';
    s->login = oct_web_access_begin(web, wsi, s->body, &status);
    memset(s->body, 0, sizeof(s->body));
    if (s->login) {
        lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, LOGIN_S);
        return 0; /* answered when it was tried */
    }
    answer_text(wsi, status,
                status == 429 ? "too many links that were none: wait ten seconds\n"
                              : "octweb is busy: try again\n");
    return -1;
}

static int answer_login(struct oct_web *web, struct lws *wsi, struct session *s)
{
    char cookie[256], name[32];
    if (!s->login || !oct_web_access_is_done(s->login))
        return 0;
    const char *token = oct_web_access_token(s->login);
    oct_web_access_cookie_name(web, name);
    snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict%s", name,
             token ? token : "", OCT_WEB_SESSION_S, web->tls ? "; Secure" : "");
    const bool is_in = token != NULL;
    oct_web_access_end(s->login);
    s->login = NULL;
    if (!is_in)
        return answer_text(wsi, 403, "this link was used, is over or was never made\n");
    return answer(wsi, 200, "text/plain; charset=utf-8", cookie, (const unsigned char *)"in\n", 3);
}

static int on_request(struct oct_web *web, struct lws *wsi, struct session *s, const char *path)
{
    const struct oct_web_page *page = oct_web_page_find(path);
    const bool is_post = lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI) > 0;
    if (!is_ours(web, wsi, is_post))
        return answer_text(wsi, 403, "octweb is not called by this name: see web.names\n");
    if (is_post) {
        char length[16];
        s->n_body = 0;
        s->is_login =
            strcmp(path, "/enter") == 0 &&
            lws_hdr_copy(wsi, length, sizeof(length), WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 &&
            strtoul(length, NULL, 10) == OCT_WEB_TOKEN_BYTES - 1;
        if (s->is_login)
            return 0; /* its body comes */
        answer_text(wsi, 400, "no such request\n");
        return -1;
    }
    if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) == 0)
        return answer_text(wsi, 405, "GET alone\n");
    if (page)
        return answer(wsi, 200, page->type, NULL, page->bytes, (size_t)(page->end - page->bytes));
    if (strcmp(path, "/metrics") == 0 && is_of_this_machine(wsi))
        return answer_metrics(web, wsi);
    return answer_text(wsi, 404, "no such page\n");
}

static int on_body(struct session *s, const char *bytes, size_t n)
{
    if (!s->is_login || n > sizeof(s->body) - 1 - s->n_body)
        return -1;
    memcpy(s->body + s->n_body, bytes, n);
    s->n_body += n;
    return 0;
}

/* ---- WebSockets ---- */

static int on_upgrade(struct oct_web *web, struct lws *wsi, struct session *s)
{
    memset(s, 0, sizeof(*s));
    if (!is_ours(web, wsi, true) || !oct_web_access_knows(web, wsi, &s->browser))
        return -1;
    return 0;
}

/* It is told, in the frame that closes the WebSocket. */
static int send_off(struct lws *wsi)
{
    char text[80];
    const int n = snprintf(text, sizeof(text), "%u browsers look already, as many as octweb takes",
                           OCT_WEB_MOST_BROWSERS);
    lws_close_reason(wsi, (enum lws_close_status)CLOSE_LATER, (unsigned char *)text, (size_t)n);
    return -1;
}

static void on_open(struct oct_web *web, struct lws *wsi, struct session *s)
{
    struct oct_web_browser *b = &s->browser;
    lws_callback_on_writable(wsi);
    s->is_too_many = web->counts.n_browsers >= OCT_WEB_MOST_BROWSERS;
    if (s->is_too_many) {
        web->counts.refused_connections++;
        return;
    }
    b->wsi = wsi;
    oct_web_pace_init(&b->pace, oct_clock_ns());
    b->says_hello = true;
    b->next = web->browsers;
    web->browsers = b;
    web->counts.n_browsers++;
    s->is_browser = true;
    oct_log(OCT_LOG_INFO, "%s looks (%s)", b->name, oct_web_role_names[b->role]);
}

static void on_close(struct oct_web *web, struct session *s)
{
    if (!s || !s->is_browser)
        return;
    oct_web_browser_end(web, &s->browser);
    s->is_browser = false;
    web->counts.n_browsers--;
}

static int on_receive(struct oct_web *web, struct lws *wsi, struct session *s, const char *bytes,
                      size_t n)
{
    if (s->is_too_many)
        return 0;
    if (!lws_is_first_fragment(wsi) || !lws_is_final_fragment(wsi) || lws_frame_is_binary(wsi) ||
        lws_remaining_packet_payload(wsi) > 0) {
        web->counts.refused_message++;
        return -1;
    }
    return oct_web_browser_hear(web, &s->browser, bytes, n) ? 0 : -1;
}

/* ---- turns ---- */

/* Takes what came, and wakes those for whom there is something. */
static void turn(lws_sorted_usec_list_t *sul)
{
    struct oct_web *web = lws_container_of(sul, struct oct_web, turn);
    web->turn_waits = false;
    web->turned_ns = oct_clock_ns();
    web->counts.n_playbacks -= atomic_exchange(&web->n_left, 0);
    oct_web_worker_turn(web->door);
    oct_web_worker_turn(web->folder);
    oct_view_app_turn(web->app);
    if (web->counts.n_browsers > 0)
        oct_web_view_refresh(web->live);
    for (struct oct_web_browser *b = web->browsers; b; b = b->next) {
        oct_web_playback_turn(web, b, web->turned_ns);
        oct_web_browser_wake(web, b);
    }
}

static void turn_soon(struct oct_web *web)
{
    const uint64_t now_ns = oct_clock_ns(), due_ns = web->turned_ns + TURN_NS;
    if (web->turn_waits)
        return;
    web->turn_waits = true;
    lws_sul_schedule(web->context, 0, &web->turn, turn,
                     due_ns > now_ns ? (lws_usec_t)((due_ns - now_ns) / 1000 + 1) : 1);
}

static void tick(lws_sorted_usec_list_t *sul)
{
    struct oct_web *web = lws_container_of(sul, struct oct_web, tick);
    web->ends = web->is_over();
    oct_web_access_turn(web, oct_clock_ns());
    turn_soon(web);
    lws_sul_schedule(web->context, 0, &web->tick, tick, TICK_US);
}

void oct_web_notify(void *context)
{
    struct oct_web *web = context;
    if (web->context)
        lws_cancel_service(web->context);
}

/* ---- lws ---- */

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct oct_web *web = web_of(wsi);
    struct session *s = user;
    switch (reason) {
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
        if (web->counts.n_connections >= OCT_WEB_MOST_CONNECTIONS) {
            web->counts.refused_connections++;
            return -1;
        }
        return 0;
    case LWS_CALLBACK_WSI_CREATE:
        web->counts.n_connections++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        web->counts.n_connections--;
        return 0;
    case LWS_CALLBACK_HTTP:
        return on_request(web, wsi, s, in);
    case LWS_CALLBACK_HTTP_BODY:
        return on_body(s, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return s->is_login ? login(web, wsi, s) : -1;
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return answer_login(web, wsi, s);
    case LWS_CALLBACK_CLOSED_HTTP:
        if (s) {
            oct_web_access_end(s->login);
            s->login = NULL;
        }
        return 0;
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return on_upgrade(web, wsi, s);
    case LWS_CALLBACK_ESTABLISHED:
        on_open(web, wsi, s);
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        if (s->is_too_many)
            return send_off(wsi);
        return oct_web_browser_write(web, &s->browser) ? 0 : -1;
    case LWS_CALLBACK_RECEIVE:
        return on_receive(web, wsi, s, in, len);
    case LWS_CALLBACK_CLOSED:
        on_close(web, s);
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        turn_soon(web);
        return 0;
    default:
        return 0;
    }
}

static const struct lws_protocols protocols[] = {
    {"octweb", on_event, sizeof(struct session), OCT_WEB_MOST_RX, 0, NULL, 0},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};
static const lws_retry_bo_t silence = {.secs_since_valid_ping = 10, .secs_since_valid_hangup = 20};

static void log_line(int level, const char *line)
{
    const size_t n = strcspn(line, "\n");
    oct_log(level & LLL_ERR ? OCT_LOG_WARNING : OCT_LOG_INFO, "%.*s", (int)n, line);
}

/* ---- listening ---- */

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

static enum oct_err read_endpoint(struct oct_web *web, char *host, size_t room,
                                  struct oct_error *err)
{
    const char *text = web->config->web.endpoint, *port = strrchr(text, ':');
    char *end = NULL;
    const long number = port ? strtol(port + 1, &end, 10) : 0;
    if (!port || port == text || *end || number < 1 || number > 65535)
        return oct_fail_key(err, OCT_E_CONFIG, "web.endpoint",
                            "web.endpoint: %s: give ADDRESS:PORT, such as 127.0.0.1:8430", text);
    snprintf(host, room, "%.*s", (int)(port - text), text);
    const size_t n = strlen(host);
    if (host[0] == '[' && host[n - 1] == ']') {
        memmove(host, host + 1, n);
        host[n - 2] = '\0';
    }
    web->port = (int)number;
    web->tls = web->config->web.certificate[0] != '\0';
    if (!web->tls && !is_loopback(host))
        return oct_fail_key(err, OCT_E_CONFIG, "web.endpoint",
                            "web.endpoint: %s: beyond this machine browsers need TLS: set "
                            "web.certificate and web.certificate_key to two files, which are made "
                            "where there are none",
                            text);
    if (web->tls && !web->config->web.certificate_key[0])
        return oct_fail_key(err, OCT_E_CONFIG, "web.certificate_key",
                            "web.certificate_key: it is not set, and web.certificate is");
    return OCT_OK;
}

static enum oct_err read_certificate(struct oct_web *web, struct oct_error *err)
{
    const char *certificate = web->config->web.certificate;
    char text[96];
    enum oct_err code = oct_web_certificate_make(certificate, web->config->web.certificate_key,
                                                 web->config->web.names, err);
    if (code || (code = oct_web_certificate_fingerprint(certificate, text, err)))
        return code;
    oct_log(OCT_LOG_INFO, "certificate %s, SHA-256 fingerprint %s", certificate, text);
    return OCT_OK;
}

enum oct_err oct_web_listen(struct oct_web *web, struct oct_error *err)
{
    char host[64];
    enum oct_err code = read_endpoint(web, host, sizeof(host), err);
    if (code || (web->tls && (code = read_certificate(web, err))))
        return code;
    lws_set_log_level(LLL_ERR, log_line);
    const bool is_any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    const struct lws_context_creation_info info = {
        .port = web->port,
        .iface = is_any                           ? NULL
                 : strcmp(host, "localhost") == 0 ? "127.0.0.1"
                                                  : host,
        .protocols = protocols,
        .user = web,
        .gid = -1,
        .uid = -1,
        .options = LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
                   (strchr(host, ':') ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6) |
                   (web->tls ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0),
        .ssl_cert_filepath = web->tls ? web->config->web.certificate : NULL,
        .ssl_private_key_filepath = web->tls ? web->config->web.certificate_key : NULL,
        .alpn = "http/1.1",
        .timeout_secs = 5,
        .keepalive_timeout = 5,
        .max_http_header_data = 4096,
        .max_http_header_pool = 32,
        .retry_and_idle_policy = &silence,
    };
    web->context = lws_create_context(&info);
    if (!web->context)
        return oct_fail(err, OCT_E_IO,
                        "web.endpoint: %s: octweb cannot listen there: is it in use?",
                        web->config->web.endpoint);
    oct_log(OCT_LOG_INFO, "%s://%s", web->tls ? "https" : "http", web->config->web.endpoint);
    return OCT_OK;
}

enum oct_err oct_web_serve(struct oct_web *web, struct oct_error *err)
{
    enum oct_err code = oct_web_worker_create(&web->door, "octweb-door", oct_web_notify, web, err);
    code = code ? code
                : oct_web_worker_create(&web->folder, "octweb-folder", oct_web_notify, web, err);
    if (code)
        return code;
    lws_sul_schedule(web->context, 0, &web->tick, tick, 1);
    while (!web->ends && lws_service(web->context, 0) >= 0)
        ;
    lws_sul_schedule(web->context, 0, &web->tick, tick, LWS_SET_TIMER_USEC_CANCEL);
    lws_sul_schedule(web->context, 0, &web->turn, turn, LWS_SET_TIMER_USEC_CANCEL);
    return OCT_OK;
}

/* Waits for those that notify: the workers, and playbacks, which may have a label to write. */
static bool end_threads(struct oct_web *web)
{
    const uint64_t end_ns = oct_clock_ns() + END_NS;
    for (struct oct_web_browser *b = web->browsers; b; b = b->next)
        oct_web_playback_end(web, b);
    bool ended = oct_web_worker_end(web->door, END_NS) && oct_web_worker_end(web->folder, END_NS);
    while (ended && atomic_load(&web->n_left) < web->counts.n_playbacks) {
        ended = oct_clock_ns() < end_ns;
        nanosleep(&(struct timespec){.tv_nsec = 5 * OCT_NS_PER_MS}, NULL);
    }
    return ended;
}

bool oct_web_close(struct oct_web *web)
{
    if (!end_threads(web)) {
        oct_log(OCT_LOG_WARNING, "a disk does not answer: octweb ends without it");
        return false;
    }
    if (web->context)
        lws_context_destroy(web->context);
    web->context = NULL;
    oct_web_worker_destroy(web->door);
    oct_web_worker_destroy(web->folder);
    return true;
}
