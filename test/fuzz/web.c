#include "test/fuzz/web.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/utf8.h"
#include "web/access.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 24, DEPTH = 16 };

static struct oct_config config;
static struct oct_web *web;
static struct oct_view_picture picture;
static const struct lws_protocols *protocol;
static char session[OCT_WEB_TOKEN_BYTES + 16], link_token[OCT_WEB_TOKEN_BYTES];

/* Nothing is told: it would be told of every input. */
void oct_log(enum oct_log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

/* ---- libwebsockets ---- */

struct lws_context {
    void *user;
};
static struct lws_context context;

struct lws_context *lws_create_context(const struct lws_context_creation_info *info)
{
    protocol = info->protocols;
    context.user = info->user;
    return &context;
}

struct lws_context *lws_get_context(const struct lws *wsi)
{
    (void)wsi;
    return &context;
}

void *lws_context_user(struct lws_context *its)
{
    return its->user;
}

static const char *header_of(const struct lws *wsi, enum lws_token_indexes h)
{
    switch (h) {
    case WSI_TOKEN_HOST:
        return wsi->host;
    case WSI_TOKEN_ORIGIN:
        return wsi->origin;
    case WSI_TOKEN_HTTP_CONTENT_LENGTH:
        return wsi->length;
    case WSI_TOKEN_GET_URI:
        return wsi->is_post ? NULL : wsi->uri;
    case WSI_TOKEN_POST_URI:
        return wsi->is_post ? wsi->uri : NULL;
    default:
        return NULL;
    }
}

int lws_hdr_total_length(struct lws *wsi, enum lws_token_indexes h)
{
    const char *value = header_of(wsi, h);
    return value ? (int)strlen(value) : 0;
}

int lws_hdr_copy(struct lws *wsi, char *to, int room, enum lws_token_indexes h)
{
    const char *value = header_of(wsi, h);
    const int n = value ? (int)strlen(value) : 0;
    *to = '\0';
    if (n >= room)
        return -1;
    memcpy(to, value ? value : "", (size_t)n + 1);
    return n;
}

int lws_http_cookie_get(struct lws *wsi, const char *name, char *to, size_t *room)
{
    const char *at = wsi->cookie ? strstr(wsi->cookie, name) : NULL;
    if (!at || at[strlen(name)] != '=')
        return 1;
    at += strlen(name) + 1;
    const size_t n = strcspn(at, ";");
    if (n >= *room)
        return 1;
    memcpy(to, at, n);
    to[n] = '\0';
    *room = n;
    return 0;
}

const char *lws_get_peer_simple(struct lws *wsi, char *name, size_t room)
{
    (void)wsi;
    snprintf(name, room, "2001:db8::1");
    return name;
}

int lws_add_http_common_headers(struct lws *wsi, unsigned code, const char *type, lws_filepos_t n,
                                unsigned char **p, unsigned char *end)
{
    (void)n;
    fuzz_must(type && *p < end);
    wsi->status = code & 0xffff;
    return 0;
}

int lws_add_http_header_by_name(struct lws *wsi, const unsigned char *name,
                                const unsigned char *value, int n, unsigned char **p,
                                unsigned char *end)
{
    fuzz_must(n >= 0 && n < end - *p && memchr(value, '\n', (size_t)n) == NULL &&
              memchr(value, '\r', (size_t)n) == NULL);
    *p += n;
    wsi->has_cookie |= strcmp((const char *)name, "set-cookie:") == 0;
    return 0;
}

int lws_finalize_write_http_header(struct lws *wsi, unsigned char *start, unsigned char **p,
                                   unsigned char *end)
{
    (void)wsi;
    return *p > end || start > *p;
}

int lws_http_transaction_completed(struct lws *wsi)
{
    (void)wsi;
    return 0;
}

/* A text is one JSON object, and a picture as long as it says. */
static void look_at(const unsigned char *bytes, size_t n, enum lws_write_protocol how)
{
    uint32_t n_json, n_image;
    if (how == LWS_WRITE_TEXT) {
        cJSON *tree = cJSON_ParseWithLength((const char *)bytes, n);
        fuzz_must(cJSON_IsObject(tree) && oct_utf8_valid_bytes((const char *)bytes, n) == n);
        cJSON_Delete(tree);
    } else if (how == LWS_WRITE_BINARY) {
        fuzz_must(n >= 64 && memcmp(bytes, "OCTP", 4) == 0);
        memcpy(&n_json, bytes + 56, 4);
        memcpy(&n_image, bytes + 60, 4);
        fuzz_must(n == 64 + (size_t)n_json + n_image);
    }
}

int lws_write(struct lws *wsi, unsigned char *bytes, size_t n, enum lws_write_protocol how)
{
    look_at(bytes, n, how);
    wsi->n_written++;
    return (int)n;
}

int lws_callback_on_writable(struct lws *wsi)
{
    wsi->wants_turn = true;
    return 1;
}

void lws_close_reason(struct lws *wsi, enum lws_close_status status, unsigned char *text, size_t n)
{
    fuzz_must(status != 0 && n < 124);
    snprintf(wsi->closed_for, sizeof(wsi->closed_for), "%.*s", (int)n, (const char *)text);
}

void lws_set_timeout(struct lws *wsi, enum pending_timeout reason, int seconds)
{
    (void)reason;
    wsi->is_cut |= seconds == LWS_TO_KILL_ASYNC;
}

int lws_is_first_fragment(struct lws *wsi)
{
    return wsi->is_first;
}

int lws_is_final_fragment(struct lws *wsi)
{
    return wsi->is_final;
}

int lws_frame_is_binary(struct lws *wsi)
{
    return wsi->is_binary;
}

size_t lws_remaining_packet_payload(struct lws *wsi)
{
    return wsi->remaining;
}

/* ---- workers: what is given is done with the next turn ---- */

struct oct_web_worker {
    struct oct_web_job *jobs;
    unsigned n;
};

enum oct_err oct_web_worker_create(struct oct_web_worker **worker, const char *name,
                                   void (*notify)(void *), void *notified, struct oct_error *err)
{
    (void)name;
    (void)notify;
    (void)notified;
    *worker = calloc(1, sizeof(**worker));
    return *worker ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

bool oct_web_worker_end(struct oct_web_worker *w, uint64_t timeout_ns)
{
    (void)w;
    return timeout_ns > 0;
}

void oct_web_worker_destroy(struct oct_web_worker *w)
{
    free(w);
}

bool oct_web_worker_give(struct oct_web_worker *w, struct oct_web_job *job)
{
    if (w->n == OCT_WEB_MOST_JOBS)
        return false;
    job->next = w->jobs;
    w->jobs = job;
    w->n++;
    return true;
}

void oct_web_worker_turn(struct oct_web_worker *w)
{
    while (w->jobs) {
        struct oct_web_job *job = w->jobs;
        w->jobs = job->next;
        w->n--;
        job->work(job);
        job->done(job);
    }
}

/* ---- playback: a recording of four B-scans, without pictures ---- */

struct oct_play {
    bool opened;
};

enum oct_err oct_play_create(struct oct_play **play, const struct oct_config *its,
                             void (*notify)(void *), void *notified, struct oct_error *err)
{
    (void)its;
    (void)notify;
    (void)notified;
    *play = calloc(1, sizeof(**play));
    return *play ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

bool oct_play_turn(struct oct_play *play, struct oct_view_model *model)
{
    static struct oct_view_file file = {.name = "a.h5", .n_bscans = 4, .n_lines = 8, .depth = 8};
    if (!play->opened && model->playback.opens)
        oct_view_playback_opened(model, &file);
    play->opened = true;
    fuzz_must(!model->playback.active || model->playback.wanted < file.n_bscans);
    fuzz_must(!model->playback.active || model->playback.slice_line < file.n_lines);
    return true;
}

const char *oct_play_refusal(const struct oct_play *play)
{
    (void)play;
    return "";
}

bool oct_play_wait_open(struct oct_play *play, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return play->opened;
}

void oct_play_destroy(struct oct_play *play)
{
    free(play);
}

void oct_play_leave(struct oct_play *play, void (*left)(void *), void *its)
{
    free(play);
    left(its);
}

/* ---- octweb ---- */

static void show_picture(void)
{
    static const char json[] =
        "{\"frame_num\":1,\"acquisition_id\":\"a\",\"dtype\":\"uint8\",\"dsize\":384,"
        "\"dataset\":\"bscans\",\"compression\":\"none\",\"shape\":[\"24\",\"16\"],\"time_ns\":1,"
        "\"missing_lines\":0,\"lo\":0.0,\"hi\":60.0,\"volume\":0,\"bscan\":0}";
    static unsigned char pixels[LINES * DEPTH];
    struct oct_picture_header header;
    struct oct_error err = {0};
    for (unsigned i = 0; i < sizeof(pixels); i++)
        pixels[i] = (unsigned char)(i * 37);
    fuzz_must(!oct_picture_decode(&header, json, strlen(json), sizeof(pixels), &err) &&
              !oct_view_picture_set(&picture, &header, pixels, sizeof(pixels), &err));
    picture.arrival_ns = oct_clock_ns();
    oct_view_model_offer(&web->app->model, &picture);
}

static void make_tokens(void)
{
    struct oct_error err;
    char made[OCT_WEB_TOKEN_BYTES], token[OCT_WEB_TOKEN_BYTES];
    fuzz_must(!oct_web_link_add(web->tokens_path, "one", OCT_WEB_OPERATE, made, &err) &&
              !oct_web_link_use(web->tokens_path, made, token, &err) &&
              !oct_web_tokens_read(&web->tokens, web->tokens_path, &err));
    snprintf(session, sizeof(session), "octweb%d=%s", FUZZ_WEB_PORT, token);
}

static void finish(void)
{
    oct_web_view_destroy(web->live);
    oct_web_encoder_destroy(web->encoder);
    oct_view_model_finish(&web->app->model);
    oct_view_picture_finish(&picture);
    oct_web_worker_destroy(web->door);
    oct_web_worker_destroy(web->folder);
    free(web->app);
    free(web);
}

struct oct_web *fuzz_web(void)
{
    struct oct_error err = {0};
    if (web)
        return web;
    oct_config_init(&config);
    web = calloc(1, sizeof(*web));
    fuzz_must(web && (web->app = calloc(1, sizeof(*web->app))) &&
              !oct_web_worker_create(&web->door, "door", NULL, NULL, &err) &&
              !oct_web_worker_create(&web->folder, "folder", NULL, NULL, &err) &&
              (web->encoder = oct_web_encoder_create()));
    fuzz_write_file(fuzz_path(0, "a.h5"), "x", 1);
    snprintf(web->tokens_path, sizeof(web->tokens_path), "%s", fuzz_path(0, "tokens"));
    fuzz_must(!oct_config_set(&config, "record.directory", fuzz_folder(), "fuzz", &err) &&
              !oct_config_set(&config, "web.names", "octd.lab, eye", "fuzz", &err));
    web->config = &config;
    oct_view_model_init(&web->app->model, "tcp://127.0.0.1:1", true);
    web->live = oct_web_view_create(&web->app->model, &web->app->model, web->encoder);
    fuzz_must(web->live && !oct_web_listen(web, &err) && web->port == FUZZ_WEB_PORT);
    make_tokens();
    show_picture();
    atexit(finish);
    return web;
}

const char *fuzz_web_session(void)
{
    return session;
}

const char *fuzz_web_link(void)
{
    struct oct_error err;
    if (oct_web_tokens_find(&web->tokens, link_token, true, 1))
        return link_token;
    oct_web_name_remove(web->tokens_path, "two", &err); /* its sessions would fill the file */
    fuzz_must(!oct_web_link_add(web->tokens_path, "two", OCT_WEB_LOOK, link_token, &err) &&
              !oct_web_tokens_read(&web->tokens, web->tokens_path, &err));
    return link_token;
}

int fuzz_web_call(struct lws *wsi, enum lws_callback_reasons reason, void *its, void *in, size_t n)
{
    return protocol->callback(wsi, reason, its, in, n);
}

size_t fuzz_web_session_bytes(void)
{
    return protocol->per_session_data_size;
}

void fuzz_web_turn(struct lws *wsi, void *its)
{
    const uint64_t now_ns = oct_clock_ns();
    oct_view_model_tick(&web->app->model, now_ns);
    web->counts.n_playbacks -= atomic_exchange(&web->n_left, 0);
    fuzz_must(web->counts.n_playbacks <= OCT_WEB_MOST_PLAYBACKS);
    oct_web_worker_turn(web->door);
    oct_web_worker_turn(web->folder);
    oct_web_view_refresh(web->live);
    for (struct oct_web_browser *b = web->browsers; b; b = b->next) {
        oct_web_playback_turn(web, b, now_ns);
        oct_web_browser_wake(web, b);
    }
    for (int i = 0; wsi->wants_turn && i < 16; i++) {
        wsi->wants_turn = false;
        fuzz_must(fuzz_web_call(wsi,
                                web->browsers ? LWS_CALLBACK_SERVER_WRITEABLE
                                              : LWS_CALLBACK_HTTP_WRITEABLE,
                                its, NULL, 0) == 0 ||
                  wsi->closed_for[0] || !web->browsers);
    }
}
