/* Who may come in: by which name this machine is called, cookies, links, and the file of tokens,
 * which a thread of its own (web/worker.h) reads and changes. lws' thread calls all functions. */
#ifndef OCT_WEB_ACCESS_H
#define OCT_WEB_ACCESS_H

#include "web/server.h"

#define OCT_WEB_MOST_FAILURES 10u /* of an address in ten seconds */

/* A link that is being used. */
struct oct_web_login;

/* Whether the Host is this machine's by any of its names, with octweb's port: a page of another
 * name that leads here (DNS rebinding) gets nothing. An Origin, which may be needed, is the same.
 */
bool oct_web_access_is_ours(const struct oct_web *web, struct lws *wsi, bool needs_origin);

/* "octweb8430": of this port, so that two octwebs of a host have two. */
void oct_web_access_cookie_name(const struct oct_web *web, char name[32]);

/* Whether its cookie is of a session; fills the browser's name, role and session. */
bool oct_web_access_knows(struct oct_web *web, struct lws *wsi, struct oct_web_browser *b);

/* Looks for changes of the file from time to time; who is in it no more is sent away. */
void oct_web_access_turn(struct oct_web *web, uint64_t now_ns);

/* Begins to use a link: when it was, lws is asked for a turn of that wsi. NULL: it is not tried;
 * *status says why. */
struct oct_web_login *oct_web_access_begin(struct oct_web *web, struct lws *wsi, const char *link,
                                           unsigned *status);
bool oct_web_access_is_done(const struct oct_web_login *login);
/* The session's token; NULL: there is none. */
const char *oct_web_access_token(const struct oct_web_login *login);
void oct_web_access_end(struct oct_web_login *login); /* NULL is fine */

#endif
