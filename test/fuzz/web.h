/* octweb without sockets, threads and recordings: libwebsockets' functions, the workers and
 * playback have stand-ins here, so that what a browser sends reaches octweb's own code alone, at
 * once. One thread. */
#ifndef OCT_TEST_FUZZ_WEB_H
#define OCT_TEST_FUZZ_WEB_H

#include "test/fuzz/fuzz.h"
#include "web/server.h"

#define FUZZ_WEB_PORT 8430

/* A connection, as lws would have read it. */
struct lws {
    const char *uri, *host, *origin, *cookie, *length; /* NULL: there is none */
    bool is_post;
    bool is_first, is_final, is_binary;
    size_t remaining;
    bool wants_turn, is_cut; /* a write or a timeout is asked for; it is to be closed */
    unsigned status, n_written;
    bool has_cookie; /* one was given to it */
    char closed_for[128];
};

/* octweb that listens, with a B-scan, a recording "a.h5", a session and a link that is not used. */
struct oct_web *fuzz_web(void);
const char *fuzz_web_session(void); /* "octweb8430=..." */
const char *fuzz_web_link(void);

/* The callback of lws; session: zeroed at first, of fuzz_web_session_bytes. */
int fuzz_web_call(struct lws *wsi, enum lws_callback_reasons reason, void *session, void *in,
                  size_t n);
size_t fuzz_web_session_bytes(void);

/* A turn of octweb's: what came is taken, and all that asked for a write write. */
void fuzz_web_turn(struct lws *wsi, void *session);

#endif
