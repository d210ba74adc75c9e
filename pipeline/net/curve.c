#define _DEFAULT_SOURCE /* explicit_bzero */
#include "pipeline/net/curve.h"

#include "pipeline/base/folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#define MOST_FILE_BYTES 4096 /* a key file has some 300 */
#define KEY_CHARACTERS (OCT_CURVE_KEY_BYTES - 1)

enum oct_err oct_curve_available(struct oct_error *err)
{
    if (zmq_has("curve"))
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG,
                    "security: this libzmq was built without CURVE: install one with libsodium "
                    "(Debian's libzmq5 has it) or leave the security keys empty");
}

bool oct_curve_is_key(const char *text)
{
    uint8_t raw[32];
    if (strlen(text) != KEY_CHARACTERS)
        return false;
    for (const char *c = text; *c; c++) /* libzmq's decoder does not check characters outside its
                                           table */
        if (*c <= ' ' || *c > '~' || strchr("\"'\\,;_`|~", *c))
            return false;
    bool is_key = zmq_z85_decode(raw, text) != NULL;
    explicit_bzero(raw, sizeof(raw));
    return is_key;
}

/* Takes 40 characters, with or without quotes, up to the end of the line. */
static bool take_key(const char *text, char key[OCT_CURVE_KEY_BYTES])
{
    size_t n = strcspn(text, "\r\n");
    while (n > 0 && isspace((unsigned char)*text))
        text++, n--;
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    if (n >= 2 && (*text == '"' || *text == '\'') && text[n - 1] == *text)
        text++, n -= 2;
    if (n != KEY_CHARACTERS)
        return false;
    memcpy(key, text, n);
    key[n] = '\0';
    return oct_curve_is_key(key);
}

/* The value of `field = ...` on a line of its own, or the whole text if it is nothing but a key. */
static bool find_key(const char *text, const char *field, char key[OCT_CURVE_KEY_BYTES])
{
    size_t n_field = strlen(field);
    const char *first = text + strspn(text, " \t\r\n");
    const char *end = first + strcspn(first, "\r\n");
    for (const char *line = text; *line;) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, field, n_field) == 0) {
            at += n_field;
            at += strspn(at, " \t");
            if (*at == '=')
                return take_key(at + 1, key);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return !end[strspn(end, " \t\r\n")] && take_key(first, key);
}

/* OCT_E_CONFIG: it cannot be read, and errno says why. OCT_E_FORMAT: it is no key file. */
static enum oct_err read_text(int folder, const char *path, char text[MOST_FILE_BYTES + 1],
                              struct stat *about, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    ssize_t n = 0;
    int fd, why = 0;
    do /* opening a FIFO of that name must not block */
        fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fstat(fd, about) != 0) {
        why = errno;
        code = oct_fail_errno(err, OCT_E_CONFIG, why, "%s: cannot read the key", path);
    } else if (!S_ISREG(about->st_mode) || about->st_size > MOST_FILE_BYTES) {
        code = oct_fail(err, OCT_E_FORMAT, "%s: is no key file", path);
    } else {
        do
            n = read(fd, text, MOST_FILE_BYTES);
        while (n < 0 && errno == EINTR);
        why = errno;
        if (n < 0)
            code = oct_fail_errno(err, OCT_E_CONFIG, why, "%s: cannot read the key", path);
    }
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    errno = why;
    return code;
}

static enum oct_err read_key(int folder, const char *path, bool secret,
                             char key[OCT_CURVE_KEY_BYTES], struct stat *about,
                             struct oct_error *err)
{
    char text[MOST_FILE_BYTES + 1];
    const char *field = secret ? "secret-key" : "public-key";
    enum oct_err code = read_text(folder, path, text, about, err);
    int why = errno;
    if (!code && !find_key(text, field, key))
        code = oct_fail(err, OCT_E_FORMAT, "%s: holds no %s (make one with octctl keygen)", path,
                        field);
    else if (!code && secret && (about->st_mode & (S_IRWXO | S_IWGRP)))
        /* The group may read: a service manager hands a secret to its service that way. */
        code = oct_fail(err, OCT_E_FORMAT,
                        "%s: a secret key that others may read is none: chmod 600 it, or better "
                        "make a new one",
                        path);
    explicit_bzero(text, sizeof(text));
    errno = why;
    return code;
}

/* For a key named in a configuration every failure is a wrong configuration. */
static enum oct_err read_named(const char *path, bool secret, char key[OCT_CURVE_KEY_BYTES],
                               struct oct_error *err)
{
    struct stat about;
    if (!read_key(AT_FDCWD, path, secret, key, &about, err))
        return OCT_OK;
    if (err)
        err->code = OCT_E_CONFIG;
    return OCT_E_CONFIG;
}

enum oct_err oct_curve_read_public_at(int folder, const char *path, char key[OCT_CURVE_KEY_BYTES],
                                      struct stat *about, struct oct_error *err)
{
    return read_key(folder, path, false, key, about, err);
}

enum oct_err oct_curve_read_public(const char *path, char key[OCT_CURVE_KEY_BYTES],
                                   struct oct_error *err)
{
    return read_named(path, false, key, err);
}

enum oct_err oct_curve_read_secret(const char *path, char key[OCT_CURVE_KEY_BYTES],
                                   struct oct_error *err)
{
    return read_named(path, true, key, err);
}

enum oct_err oct_curve_write(const char *path, const char *public_key, const char *secret_key,
                             struct oct_error *err)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "#   octd: CURVE %s\n"
                     "metadata\n"
                     "curve\n"
                     "    public-key = \"%s\"\n",
                     secret_key ? "secret key. Whoever has it comes in: show it to nobody"
                                : "public key",
                     public_key);
    if (secret_key)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "    secret-key = \"%s\"\n", secret_key);
    int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, secret_key ? 0600 : 0644);
    if (fd < 0 && errno == EEXIST)
        return oct_fail(err, OCT_E_IO, "%s: exists and is left alone: choose another name", path);
    if (fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    /* Independent of the umask: octd may run as another user than the one who allows a key. */
    bool written = fchmod(fd, secret_key ? 0600 : 0644) == 0 && write(fd, text, (size_t)n) == n &&
                   fsync(fd) == 0;
    int why = errno;
    explicit_bzero(text, sizeof(text));
    if (close(fd) == 0 && written)
        return oct_folder_sync_parent(path, err);
    unlink(path);
    return oct_fail_errno(err, OCT_E_IO, why, "%s: cannot be written", path);
}

enum oct_err oct_curve_set_client(void *socket, const struct oct_curve_files *files,
                                  struct oct_error *err)
{
    const char *client_key = files ? files->client_key : NULL;
    const char *server_public = files ? files->server_public : NULL;
    char secret[OCT_CURVE_KEY_BYTES], public[OCT_CURVE_KEY_BYTES], server[OCT_CURVE_KEY_BYTES];
    bool has_key = client_key && client_key[0], has_server = server_public && server_public[0];
    if (!has_key && !has_server)
        return OCT_OK;
    if (has_key != has_server)
        return oct_fail_key(err, OCT_E_CONFIG, "security.client_key security.server_public",
                            "security.client_key and security.server_public belong together: give "
                            "both");
    enum oct_err code = oct_curve_available(err);
    if (!code)
        code = oct_curve_read_public(server_public, server, err);
    if (!code)
        code = oct_curve_read_secret(client_key, secret, err);
    if (!code && (zmq_curve_public(public, secret) != 0 ||
                  zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, sizeof(server)) != 0 ||
                  zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, sizeof(public)) != 0 ||
                  zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)) != 0))
        code = oct_fail(err, OCT_E_CONFIG, "%s: cannot be used as a key: %s", client_key,
                        zmq_strerror(zmq_errno()));
    explicit_bzero(secret, sizeof(secret));
    return code;
}
