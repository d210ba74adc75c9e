/* CURVE keys (RFC 26/ZMTP-CURVE): reading and making key files, and giving keys to a socket that
 * connects. Keys are handled as Z85 text: 40 characters and a NUL.
 *
 * A key file is what czmq and pyzmq write (a "certificate"): a line `public-key = "..."` and, in a
 * secret file, another `secret-key = "..."`; or nothing but the 40 characters. Names end in .key
 * (public) and .key_secret. Thread-safe: there is no state. */
#ifndef OCT_PIPELINE_NET_CURVE_H
#define OCT_PIPELINE_NET_CURVE_H

#include "pipeline/base/err.h"

#include <stdbool.h>

struct stat;

#define OCT_CURVE_KEY_BYTES 41

/* OCT_E_CONFIG: this machine's libzmq was built without CURVE; says what to install. */
enum oct_err oct_curve_available(struct oct_error *err);

/* Whether text is a key: 40 characters of Z85. */
bool oct_curve_is_key(const char *text);

/* Reads the public or the secret key out of a file. OCT_E_CONFIG, beginning with the path: it
 * cannot be read, holds no such key, or (a secret) may be read by everyone. */
enum oct_err oct_curve_read_public(const char *path, char key[OCT_CURVE_KEY_BYTES],
                                   struct oct_error *err);
enum oct_err oct_curve_read_secret(const char *path, char key[OCT_CURVE_KEY_BYTES],
                                   struct oct_error *err);

/* As oct_curve_read_public, for a path relative to an open folder (or AT_FDCWD); `about` receives
 * the stat of what was read. Distinguishes a file that was read and holds no key (OCT_E_FORMAT)
 * from one that could not be read (OCT_E_CONFIG; errno says why). */
enum oct_err oct_curve_read_public_at(int folder, const char *path, char key[OCT_CURVE_KEY_BYTES],
                                      struct stat *about, struct oct_error *err);

/* Writes a new key file, synced, never over an existing one (OCT_E_IO). secret: NULL for a public
 * file (mode 0644); with it the mode is 0600. */
enum oct_err oct_curve_write(const char *path, const char *public_key, const char *secret_key,
                             struct oct_error *err);

/* What a client needs, as paths: its own secret key and the daemon's public one. Both "" or NULL: a
 * plain connection. */
struct oct_curve_files {
    const char *client_key, *server_public;
};

/* Makes `socket` a CURVE client; call it before connecting. Does nothing without files (NULL too).
 * OCT_E_CONFIG, naming the file. */
enum oct_err oct_curve_set_client(void *socket, const struct oct_curve_files *files,
                                  struct oct_error *err);

#endif
