/* Requests as lws has read them, to octweb: a byte of flags (1 POST, 2 it becomes a WebSocket,
 * 4 without an Origin), then path, Host, Origin, Cookie, Content-Length and the body, 0x1e between
 * them. 0x01 in a Cookie stands for a session that is good, 0x02 in a body for a link that is.
 * Nobody comes in without one, from another origin, or by another name. */
#define _DEFAULT_SOURCE /* gethostname */
#include "test/fuzz/web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* What stands for something is put in its place. */
static char *piece(struct fuzz_input *in, char sign, const char *what)
{
    char *text = fuzz_piece(in, true, NULL), *at = sign ? strchr(text, sign) : NULL;
    if (!at)
        return text;
    const size_t n = strlen(text) + strlen(what) + 1;
    char *made = malloc(n);
    fuzz_must(made != NULL);
    snprintf(made, n, "%.*s%s%s", (int)(at - text), text, what, at + 1);
    free(text);
    return made;
}

/* Of the names that this machine may be called by here; an oracle of its own. */
static bool is_name(const char *host)
{
    static const char *const names[] = {"localhost", "octd.lab", "eye"};
    char own[256] = "";
    unsigned a[4], port;
    if (sscanf(host, "%u.%u.%u.%u:%u", &a[0], &a[1], &a[2], &a[3], &port) == 5)
        return port == FUZZ_WEB_PORT;
    const size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0)
            return true;
    gethostname(own, sizeof(own) - 1);
    return host[0] == '[' || (strlen(own) == n && strncasecmp(host, own, n) == 0);
}

static void upgrade(struct lws *wsi, void *session)
{
    char wanted[512];
    if (fuzz_web_call(wsi, LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION, session, NULL, 0))
        return;
    snprintf(wanted, sizeof(wanted), "http://%s", wsi->host);
    fuzz_must(wsi->cookie && strstr(wsi->cookie, fuzz_web_session()));
    fuzz_must(wsi->origin && strcasecmp(wsi->origin, wanted) == 0 && is_name(wsi->host));
    fuzz_must(!fuzz_web_call(wsi, LWS_CALLBACK_ESTABLISHED, session, NULL, 0));
    fuzz_web_turn(wsi, session);
    fuzz_web_call(wsi, LWS_CALLBACK_CLOSED, session, NULL, 0);
}

static void ask(struct lws *wsi, void *session, const char *body, const char *link)
{
    int cut = fuzz_web_call(wsi, LWS_CALLBACK_HTTP, session, (void *)wsi->uri, strlen(wsi->uri));
    const size_t n = strlen(body), half = n / 2;
    if (wsi->is_post && !cut && !wsi->status) {
        fuzz_must(strcmp(wsi->uri, "/enter") == 0);
        char *copy = strdup(body);
        cut = fuzz_web_call(wsi, LWS_CALLBACK_HTTP_BODY, session, copy, half);
        cut =
            cut ? cut : fuzz_web_call(wsi, LWS_CALLBACK_HTTP_BODY, session, copy + half, n - half);
        cut = cut ? cut : fuzz_web_call(wsi, LWS_CALLBACK_HTTP_BODY_COMPLETION, session, NULL, 0);
        free(copy);
        fuzz_web_turn(wsi, session);
        fuzz_must(cut || wsi->status == 200 || wsi->status == 403);
    }
    fuzz_must(!wsi->has_cookie || (strcmp(body, link) == 0 && wsi->status == 200));
    fuzz_must(cut || wsi->status >= 200);
    fuzz_web_call(wsi, LWS_CALLBACK_CLOSED_HTTP, session, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_web *web = fuzz_web();
    const unsigned flags = (unsigned)fuzz_take(&in, 1);
    char link[OCT_WEB_TOKEN_BYTES];
    snprintf(link, sizeof(link), "%s", fuzz_web_link());
    char *text[6];
    for (int i = 0; i < 6; i++)
        text[i] = piece(&in, i == 3 ? 1 : i == 5 ? 2 : 0, i == 3 ? fuzz_web_session() : link);
    struct lws wsi = {.uri = text[0],
                      .host = text[1],
                      .origin = flags & 4 ? NULL : text[2],
                      .cookie = text[3],
                      .length = text[4],
                      .is_post = flags & 1};
    void *session = calloc(1, fuzz_web_session_bytes());
    fuzz_must(session != NULL);
    memset(web->failures, 0, sizeof(web->failures));
    if (flags & 2)
        upgrade(&wsi, session);
    else
        ask(&wsi, session, text[5], link);
    fuzz_must(web->browsers == NULL);
    free(session);
    for (int i = 0; i < 6; i++)
        free(text[i]);
    return 0;
}
