/* Who may look at octd by a browser: a file of tokens, which octctl writes and octweb reads.
 *
 * A line is NAME ROLE KIND SALT SUM UNTIL: the role `look` or `operate`; the kind `link`, which is
 * good for one use, or `session`; SALT and SUM hexadecimal, SUM the SHA-256 of the salt's digits
 * and the token; UNTIL seconds since 1970. The file holds no token, only their sums; a token has
 * 256 random bits. It has mode 0600, and whoever changes it replaces it whole, under the lock of
 * PATH.lock; lines that are over are left out then.
 *
 * No state; any thread; as long as the disk takes. A file that is absent has no tokens. */
#ifndef OCT_PIPELINE_NET_WEB_ACCESS_H
#define OCT_PIPELINE_NET_WEB_ACCESS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_WEB_NAME_BYTES 33u
#define OCT_WEB_TOKEN_BYTES 65u /* 64 hexadecimal digits */
#define OCT_WEB_MOST_TOKENS 256u
#define OCT_WEB_LINK_S 3600u
#define OCT_WEB_SESSION_S (7u * 24 * 3600)

enum oct_web_role { OCT_WEB_LOOK, OCT_WEB_OPERATE, OCT_WEB_N_ROLES };
extern const char *const oct_web_role_names[]; /* NULL-terminated */

struct oct_web_token {
    char name[OCT_WEB_NAME_BYTES];
    enum oct_web_role role;
    bool is_link; /* else a session */
    char salt[33], sum[OCT_WEB_TOKEN_BYTES];
    uint64_t until_s;
};

struct oct_web_tokens {
    unsigned n;
    struct oct_web_token token[OCT_WEB_MOST_TOKENS];
};

/* 1 to 32 letters, digits, '.', '_' and '-'. */
bool oct_web_name_is(const char *name);

/* OCT_E_FORMAT names the line that is none, and *tokens has none; OCT_E_IO. */
enum oct_err oct_web_tokens_read(struct oct_web_tokens *tokens, const char *path,
                                 struct oct_error *err);

/* The one whose sum a token has, unless it is over; NULL: there is none. */
const struct oct_web_token *oct_web_tokens_find(const struct oct_web_tokens *tokens,
                                                const char *token, bool is_link, uint64_t now_s);

/* Makes a link for that name and role. OCT_E_STATE: the file is full. */
enum oct_err oct_web_link_add(const char *path, const char *name, enum oct_web_role role,
                              char link[OCT_WEB_TOKEN_BYTES], struct oct_error *err);

/* Takes the link out and makes a session in its place. OCT_E_STATE: there is no such link (any
 * more). */
enum oct_err oct_web_link_use(const char *path, const char *link, char session[OCT_WEB_TOKEN_BYTES],
                              struct oct_error *err);

/* Takes out all links and sessions of that name; OCT_E_STATE: there are none. */
enum oct_err oct_web_name_remove(const char *path, const char *name, struct oct_error *err);

#endif
