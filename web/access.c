#define _DEFAULT_SOURCE /* gethostname, explicit_bzero */
#include "web/access.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TOKENS_NS (300 * OCT_NS_PER_MS)
#define FAILURES_NS (10 * OCT_NS_PER_S)

/* ---- names of this machine ---- */

static bool is_name_of(const struct oct_web *web, const char *name)
{
    char own[256] = "", names[OCT_CONFIG_STRING_BYTES], bare[64];
    struct in_addr v4;
    struct in6_addr v6;
    const size_t n = strlen(name);
    if (inet_pton(AF_INET, name, &v4) == 1 || strcasecmp(name, "localhost") == 0)
        return true;
    if (n > 2 && n < sizeof(bare) && name[0] == '[' && name[n - 1] == ']') {
        snprintf(bare, sizeof(bare), "%.*s", (int)n - 2, name + 1);
        return inet_pton(AF_INET6, bare, &v6) == 1;
    }
    if (gethostname(own, sizeof(own) - 1) == 0 && strcasecmp(name, own) == 0)
        return true;
    snprintf(names, sizeof(names), "%s", web->config->web.names);
    for (char *rest, *each = strtok_r(names, ", ", &rest); each; each = strtok_r(NULL, ", ", &rest))
        if (strcasecmp(name, each) == 0)
            return true;
    return false;
}

bool oct_web_access_is_ours(const struct oct_web *web, struct lws *wsi, bool needs_origin)
{
    char host[256], name[256], own[16], origin[300], wanted[300];
    const bool has_origin = lws_hdr_copy(wsi, origin, sizeof(origin), WSI_TOKEN_ORIGIN) > 0;
    bool good = lws_hdr_copy(wsi, host, sizeof(host), WSI_TOKEN_HOST) > 0;
    if (good) {
        snprintf(name, sizeof(name), "%s", host);
        char *port = strrchr(name, ':');
        if (port && strchr(port, ']'))
            port = NULL;
        snprintf(own, sizeof(own), ":%d", web->port);
        good = port ? strcmp(port, own) == 0 : web->port == (web->tls ? 443 : 80);
        if (port)
            *port = '\0';
        good = good && is_name_of(web, name);
    }
    snprintf(wanted, sizeof(wanted), "%s://%s", web->tls ? "https" : "http", good ? host : "");
    if (has_origin ? strcasecmp(origin, wanted) != 0 : needs_origin)
        good = false;
    return good;
}

/* ---- cookies ---- */

void oct_web_access_cookie_name(const struct oct_web *web, char name[32])
{
    snprintf(name, 32, "%soctweb%d", web->tls ? "__Host-" : "", web->port);
}

bool oct_web_access_knows(struct oct_web *web, struct lws *wsi, struct oct_web_browser *b)
{
    char token[OCT_WEB_TOKEN_BYTES], name[32];
    size_t n = sizeof(token);
    const struct oct_web_token *t = NULL;
    oct_web_access_cookie_name(web, name);
    if (lws_http_cookie_get(wsi, name, token, &n) == 0)
        t = oct_web_tokens_find(&web->tokens, token, false, (uint64_t)time(NULL));
    web->counts.refused_token += t == NULL;
    if (!t)
        return false;
    memcpy(b->name, t->name, sizeof(b->name));
    memcpy(b->sum, t->sum, sizeof(b->sum));
    b->role = t->role;
    return true;
}

/* ---- the file: in the worker's thread ---- */

/* What the worker does with it: reads it where it changed, after a link was used, if one is. */
struct oct_web_login {
    struct oct_web_job job;
    struct oct_web *web;
    struct lws *wsi;                /* of a link: who waits; NULL: nobody does (any more) */
    bool has_link, is_done, counts; /* as a failure, until it is none */
    char address[INET6_ADDRSTRLEN];
    char link[OCT_WEB_TOKEN_BYTES], token[OCT_WEB_TOKEN_BYTES];
    enum oct_err used, read;
    struct oct_error why_not_used, why_not_read;
    bool changed;
    struct timespec at; /* of the file that is known, and then of the one that was read */
    ino_t inode;
    struct oct_web_tokens tokens;
};

static void look_at_file(struct oct_web_login *l, const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0)
        s = (struct stat){.st_mtim = {0, 1}};
    /* Each change is another file: two within a tick of the clock differ by their numbers. */
    if (memcmp(&s.st_mtim, &l->at, sizeof(s.st_mtim)) == 0 && s.st_ino == l->inode)
        return;
    l->changed = true;
    l->at = s.st_mtim;
    l->inode = s.st_ino;
    l->read = oct_web_tokens_read(&l->tokens, path, &l->why_not_read);
}

static void work_on_login(struct oct_web_job *job)
{
    struct oct_web_login *l = (struct oct_web_login *)job;
    const char *path = l->web->tokens_path;
    if (l->has_link)
        l->used = oct_web_link_use(path, l->link, l->token, &l->why_not_used);
    explicit_bzero(l->link, sizeof(l->link));
    look_at_file(l, path);
}

/* ---- what was read ---- */

static void take_tokens(struct oct_web *web, const struct oct_web_login *l)
{
    web->tokens_at = l->read ? (struct timespec){0, 0} : l->at; /* then it is tried again */
    web->tokens_inode = l->inode;
    web->tokens = l->tokens;
    if (l->read && strcmp(l->why_not_read.text, web->tokens_why) != 0)
        oct_log(OCT_LOG_ERROR, "%s; nobody is let in", l->why_not_read.text);
    snprintf(web->tokens_why, sizeof(web->tokens_why), "%s", l->read ? l->why_not_read.text : "");
}

static void send_away(struct oct_web *web)
{
    const uint64_t now_s = (uint64_t)time(NULL);
    for (struct oct_web_browser *b = web->browsers; b; b = b->next) {
        bool is_in = false;
        for (unsigned i = 0; i < web->tokens.n; i++)
            if (strcmp(web->tokens.token[i].sum, b->sum) == 0)
                is_in = web->tokens.token[i].until_s > now_s;
        if (!is_in)
            lws_set_timeout(b->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
    }
}

/* The failures of an address: its own entry, or that of the one that failed longest ago. */
static struct oct_web_failures *failures_of(struct oct_web *web, const char *address,
                                            uint64_t now_ns)
{
    struct oct_web_failures *f = &web->failures[0];
    for (unsigned i = 0; i < OCT_WEB_MOST_STRANGERS; i++) {
        if (strcmp(web->failures[i].address, address) == 0) {
            f = &web->failures[i];
            break;
        }
        if (web->failures[i].since_ns < f->since_ns)
            f = &web->failures[i];
    }
    if (strcmp(f->address, address) != 0 || now_ns - f->since_ns > FAILURES_NS) {
        *f = (struct oct_web_failures){.since_ns = now_ns};
        snprintf(f->address, sizeof(f->address), "%s", address);
    }
    return f;
}

static void end_login_work(struct oct_web_job *job)
{
    struct oct_web_login *l = (struct oct_web_login *)job;
    struct oct_web *web = l->web;
    if (l->changed)
        take_tokens(web, l);
    send_away(web);
    if (!l->has_link) {
        web->tokens_are_read = false;
        free(l);
        return;
    }
    l->is_done = true;
    if (l->used) {
        if (l->used != OCT_E_STATE)
            oct_log(OCT_LOG_ERROR, "%s", l->why_not_used.text);
        web->counts.refused_token++;
    } else if (l->counts) {
        struct oct_web_failures *f = failures_of(web, l->address, oct_clock_ns());
        f->n -= f->n > 0;
    }
    if (l->wsi)
        lws_callback_on_writable(l->wsi);
    else
        oct_web_access_end(l);
}

static struct oct_web_login *make_login(struct oct_web *web)
{
    struct oct_web_login *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->job = (struct oct_web_job){.work = work_on_login, .done = end_login_work};
    l->web = web;
    l->at = web->tokens_at;
    l->inode = web->tokens_inode;
    return l;
}

void oct_web_access_turn(struct oct_web *web, uint64_t now_ns)
{
    if (now_ns < web->tokens_due_ns || web->tokens_are_read)
        return;
    web->tokens_due_ns = now_ns + TOKENS_NS;
    struct oct_web_login *l = make_login(web);
    web->tokens_are_read = l && oct_web_worker_give(web->door, &l->job);
    if (!web->tokens_are_read)
        free(l);
}

/* ---- links ---- */

/* Where a peer is: an address, of IPv6 the network of 64 bits that a house has. */
static void find_address(struct lws *wsi, char address[INET6_ADDRSTRLEN])
{
    char peer[64] = "";
    struct in6_addr v6;
    lws_get_peer_simple(wsi, peer, sizeof(peer));
    snprintf(address, INET6_ADDRSTRLEN, "%.45s", peer);
    if (inet_pton(AF_INET6, peer, &v6) != 1 || IN6_IS_ADDR_V4MAPPED(&v6))
        return;
    memset(&v6.s6_addr[8], 0, 8);
    inet_ntop(AF_INET6, &v6, address, INET6_ADDRSTRLEN);
}

/* A link that is known is used, however often others of that address failed. */
struct oct_web_login *oct_web_access_begin(struct oct_web *web, struct lws *wsi, const char *link,
                                           unsigned *status)
{
    char address[INET6_ADDRSTRLEN];
    const bool is_known = oct_web_tokens_find(&web->tokens, link, true, (uint64_t)time(NULL));
    find_address(wsi, address);
    struct oct_web_failures *f = failures_of(web, address, oct_clock_ns());
    *status = 429;
    if (!is_known && f->n >= OCT_WEB_MOST_FAILURES)
        return NULL;
    *status = 503;
    struct oct_web_login *l = make_login(web);
    if (!l)
        return NULL;
    l->has_link = true;
    l->wsi = wsi;
    l->counts = !is_known;
    f->n += l->counts;
    memcpy(l->address, address, sizeof(l->address));
    snprintf(l->link, sizeof(l->link), "%s", link);
    if (oct_web_worker_give(web->door, &l->job))
        return l;
    f->n -= l->counts;
    free(l);
    return NULL;
}

bool oct_web_access_is_done(const struct oct_web_login *login)
{
    return login->is_done;
}

const char *oct_web_access_token(const struct oct_web_login *login)
{
    return login->used ? NULL : login->token;
}

void oct_web_access_end(struct oct_web_login *l)
{
    if (!l)
        return;
    l->wsi = NULL;
    if (!l->is_done) /* the worker has it */
        return;
    explicit_bzero(l->token, sizeof(l->token));
    free(l);
}
