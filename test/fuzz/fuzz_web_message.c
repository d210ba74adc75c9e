/* Messages of a page that is let in, several an input (0x1e between them), to octweb: the first
 * byte says which role it has; a piece that begins with 0x01 comes in a fragment, one with 0x02 as
 * binary. What it answers is well formed, and a browser that is cut is gone. */
#include "test/fuzz/web.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 24 };

static bool say(struct lws *wsi, void *session, struct fuzz_input *in)
{
    size_t n;
    char *text = fuzz_piece(in, false, &n), *begin = text;
    wsi->is_first = wsi->is_final = true;
    wsi->is_binary = false;
    if (n > 0 && (*text == 1 || *text == 2)) {
        wsi->is_final = *text != 1;
        wsi->is_binary = *text == 2;
        begin++;
        n--;
    }
    n = n < OCT_WEB_MOST_RX ? n : OCT_WEB_MOST_RX;
    const int cut = fuzz_web_call(wsi, LWS_CALLBACK_RECEIVE, session, begin, n);
    fuzz_must(cut == 0 || cut == -1);
    fuzz_must((wsi->is_final && !wsi->is_binary) || cut);
    free(text);
    return cut == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char host[] = "127.0.0.1:8430", origin[] = "http://127.0.0.1:8430";
    struct fuzz_input in = {data, size};
    struct oct_web *web = fuzz_web();
    struct lws wsi = {.uri = "/", .host = host, .origin = origin, .cookie = fuzz_web_session()};
    struct oct_web_browser *session = calloc(1, fuzz_web_session_bytes());
    fuzz_must(session &&
              !fuzz_web_call(&wsi, LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION, session, NULL, 0));
    fuzz_must(!fuzz_web_call(&wsi, LWS_CALLBACK_ESTABLISHED, session, NULL, 0));
    fuzz_must(web->browsers == session && web->counts.n_browsers == 1);
    session->role = fuzz_take(&in, 1) & 1 ? OCT_WEB_OPERATE : OCT_WEB_LOOK;
    fuzz_web_turn(&wsi, session);
    fuzz_must(wsi.n_written > 0);
    for (int i = 0; in.left > 0 && i < MOST_MESSAGES && say(&wsi, session, &in); i++) {
        session->folder_due_ns = 0;
        fuzz_web_turn(&wsi, session);
        fuzz_must(strlen(session->refusal) < sizeof(session->refusal));
    }
    fuzz_web_call(&wsi, LWS_CALLBACK_CLOSED, session, NULL, 0);
    fuzz_must(web->browsers == NULL && web->counts.n_browsers == 0);
    free(session);
    struct lws nobody = {.uri = NULL};
    fuzz_web_turn(&nobody, NULL);
    fuzz_must(web->counts.n_playbacks == 0);
    return 0;
}
