#define _DEFAULT_SOURCE /* flock, getentropy, explicit_bzero */
#include "pipeline/net/web_access.h"

#include "pipeline/base/folder.h"
#include "pipeline/base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *const oct_web_role_names[] = {"look", "operate", NULL};

bool oct_web_name_is(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    const size_t n = strlen(name);
    return n >= 1 && n < OCT_WEB_NAME_BYTES && strspn(name, letters) == n;
}

static bool is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

static void sum_of(const char *salt, const char *token, char hex[OCT_WEB_TOKEN_BYTES])
{
    unsigned char sum[OCT_SHA256_BYTES];
    struct oct_sha256 sha;
    oct_sha256_init(&sha);
    oct_sha256_add(&sha, salt, strlen(salt));
    oct_sha256_add(&sha, token, strlen(token));
    oct_sha256_end(&sha, sum);
    oct_sha256_hex(sum, hex);
}

/* Fills n_digits hexadecimal digits, 64 at most, from the system's random numbers. */
static enum oct_err draw_digits(char *digits, size_t n_digits, struct oct_error *err)
{
    unsigned char bytes[32];
    if (getentropy(bytes, n_digits / 2) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "random numbers");
    for (size_t i = 0; i < n_digits / 2; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof(bytes));
    return OCT_OK;
}

/* ---- the file ---- */

static bool parse(const char *line, struct oct_web_token *t)
{
    char role[16], kind[16];
    int end = -1;
    if (sscanf(line, "%32s %15s %15s %32s %64s %" SCNu64 "%n", t->name, role, kind, t->salt, t->sum,
               &t->until_s, &end) != 6 ||
        end < 0 || (line[end] != '\n' && line[end] != '\0'))
        return false;
    t->is_link = strcmp(kind, "link") == 0;
    for (int i = 0; i < OCT_WEB_N_ROLES; i++)
        if (strcmp(role, oct_web_role_names[i]) == 0) {
            t->role = (enum oct_web_role)i;
            return oct_web_name_is(t->name) && (t->is_link || strcmp(kind, "session") == 0) &&
                   is_hex(t->salt, sizeof(t->salt) - 1) && is_hex(t->sum, sizeof(t->sum) - 1);
        }
    return false;
}

enum oct_err oct_web_tokens_read(struct oct_web_tokens *tokens, const char *path,
                                 struct oct_error *err)
{
    char line[256];
    enum oct_err code = OCT_OK;
    tokens->n = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    for (unsigned number = 1; !code && fgets(line, sizeof(line), file); number++)
        if (tokens->n == OCT_WEB_MOST_TOKENS || !parse(line, &tokens->token[tokens->n++]))
            code = oct_fail(err, OCT_E_FORMAT, "%s:%u: no line of a file of tokens", path, number);
    if (!code && ferror(file))
        code = oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
    fclose(file);
    tokens->n = code ? 0 : tokens->n;
    return code;
}

const struct oct_web_token *oct_web_tokens_find(const struct oct_web_tokens *tokens,
                                                const char *token, bool is_link, uint64_t now_s)
{
    char sum[OCT_WEB_TOKEN_BYTES];
    if (!is_hex(token, OCT_WEB_TOKEN_BYTES - 1))
        return NULL;
    for (unsigned i = 0; i < tokens->n; i++) {
        const struct oct_web_token *t = &tokens->token[i];
        sum_of(t->salt, token, sum);
        if (t->is_link == is_link && t->until_s > now_s && strcmp(sum, t->sum) == 0)
            return t;
    }
    return NULL;
}

/* The file's owner stays: octctl may be root's, octweb another's. */
static void keep_owner(int file, const char *path)
{
    struct stat was;
    char *folder = oct_folder_of(path);
    if (geteuid() == 0 && (stat(path, &was) == 0 || (folder && stat(folder, &was) == 0)) &&
        fchown(file, was.st_uid, was.st_gid) != 0)
        errno = 0; /* then it is root's, whom octweb will complain about */
    free(folder);
}

static enum oct_err write_all(const struct oct_web_tokens *tokens, const char *path,
                              struct oct_error *err)
{
    char work[PATH_MAX];
    const uint64_t now_s = (uint64_t)time(NULL);
    if (snprintf(work, sizeof(work), "%s.new", path) >= PATH_MAX)
        return oct_fail(err, OCT_E_ARG, "web.tokens: the path is too long");
    unlink(work);
    const int fd = open(work, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) {
        const int why = errno;
        if (fd >= 0)
            close(fd);
        return oct_fail_errno(err, OCT_E_IO, why, "%s", work);
    }
    keep_owner(fd, path);
    for (unsigned i = 0; i < tokens->n; i++) {
        const struct oct_web_token *t = &tokens->token[i];
        if (t->until_s > now_s)
            fprintf(file, "%s %s %s %s %s %" PRIu64 "\n", t->name, oct_web_role_names[t->role],
                    t->is_link ? "link" : "session", t->salt, t->sum, t->until_s);
    }
    bool good = fflush(file) == 0 && fsync(fd) == 0;
    good = fclose(file) == 0 && good;
    if (!good || rename(work, path) != 0) {
        const int why = errno;
        unlink(work);
        return oct_fail_errno(err, OCT_E_IO, why, "%s", path);
    }
    return oct_folder_sync_parent(path, err);
}

/* ---- changing it ---- */

/* Opens the file under its lock, which closing *lock gives back. */
static enum oct_err begin(struct oct_web_tokens *tokens, const char *path, int *lock,
                          struct oct_error *err)
{
    char name[PATH_MAX];
    *lock = -1;
    if (!path[0])
        return oct_fail(err, OCT_E_CONFIG, "web.tokens: no file of tokens");
    if (snprintf(name, sizeof(name), "%s.lock", path) >= PATH_MAX)
        return oct_fail(err, OCT_E_ARG, "web.tokens: the path is too long");
    *lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*lock < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", name);
    keep_owner(*lock, path);
    if (flock(*lock, LOCK_EX) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s", name);
    return oct_web_tokens_read(tokens, path, err);
}

static enum oct_err fill(struct oct_web_token *t, bool is_link, char token[OCT_WEB_TOKEN_BYTES],
                         struct oct_error *err)
{
    enum oct_err code = draw_digits(t->salt, sizeof(t->salt) - 1, err);
    if (code || (code = draw_digits(token, OCT_WEB_TOKEN_BYTES - 1, err)))
        return code;
    t->is_link = is_link;
    t->until_s = (uint64_t)time(NULL) + (is_link ? OCT_WEB_LINK_S : OCT_WEB_SESSION_S);
    sum_of(t->salt, token, t->sum);
    return OCT_OK;
}

enum oct_err oct_web_link_add(const char *path, const char *name, enum oct_web_role role,
                              char link[OCT_WEB_TOKEN_BYTES], struct oct_error *err)
{
    struct oct_web_tokens tokens;
    struct oct_web_token made = {.role = role};
    const uint64_t now_s = (uint64_t)time(NULL);
    unsigned n = 0;
    int lock;
    if (!oct_web_name_is(name))
        return oct_fail(err, OCT_E_ARG,
                        "'%.80s' is no name: 1 to %u letters, digits, dots, dashes and underscores",
                        name, OCT_WEB_NAME_BYTES - 1);
    snprintf(made.name, sizeof(made.name), "%s", name);
    enum oct_err code = begin(&tokens, path, &lock, err);
    /* Who gets another role has that one alone. */
    for (unsigned i = 0; !code && i < tokens.n; i++)
        if (tokens.token[i].until_s > now_s &&
            (tokens.token[i].role == role || strcmp(tokens.token[i].name, name) != 0))
            tokens.token[n++] = tokens.token[i];
    if (!code && n == OCT_WEB_MOST_TOKENS)
        code = oct_fail(err, OCT_E_STATE, "%s: it has %u links and sessions, as many as it takes",
                        path, OCT_WEB_MOST_TOKENS);
    if (!code && !(code = fill(&made, true, link, err))) {
        tokens.token[n] = made;
        tokens.n = n + 1;
        code = write_all(&tokens, path, err);
    }
    if (lock >= 0)
        close(lock);
    return code;
}

enum oct_err oct_web_link_use(const char *path, const char *link, char session[OCT_WEB_TOKEN_BYTES],
                              struct oct_error *err)
{
    struct oct_web_tokens tokens;
    int lock;
    enum oct_err code = begin(&tokens, path, &lock, err);
    if (!code) {
        const struct oct_web_token *found =
            oct_web_tokens_find(&tokens, link, true, (uint64_t)time(NULL));
        if (!found)
            code = oct_fail(err, OCT_E_STATE, "this link was used, is over or was never made");
        else if (!(code = fill(&tokens.token[found - tokens.token], false, session, err)))
            code = write_all(&tokens, path, err);
    }
    if (lock >= 0)
        close(lock);
    return code;
}

enum oct_err oct_web_name_remove(const char *path, const char *name, struct oct_error *err)
{
    struct oct_web_tokens tokens;
    unsigned n = 0;
    int lock;
    enum oct_err code = begin(&tokens, path, &lock, err);
    for (unsigned i = 0; !code && i < tokens.n; i++)
        if (strcmp(tokens.token[i].name, name) != 0)
            tokens.token[n++] = tokens.token[i];
    if (!code && n == tokens.n)
        code = oct_fail(err, OCT_E_STATE, "%s: nobody of the name %.80s is let in", path, name);
    if (!code) {
        tokens.n = n;
        code = write_all(&tokens, path, err);
    }
    if (lock >= 0)
        close(lock);
    return code;
}
