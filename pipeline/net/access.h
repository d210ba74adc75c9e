/* Who may come in: the daemon's secret key, a folder of allowed public keys, the connections that
 * stand, and what was refused.
 *
 * ZeroMQ asks about a key only when a connection is made. So that a key taken out of the folder is
 * out at once,
 *   - every message is asked about (oct_access_admits), and refused if its key has gone;
 *   - every connection is remembered from the moment it stands, and shut down when its key goes.
 *     ZeroMQ tells whose it is only with its first message (a subscriber's is its subscription);
 *     one that has said nothing yet may be anybody's and is shut down when any key goes. If its own
 *     key is still allowed its program makes a new one by itself, and has lost nothing. Connections
 *     of other keys that have spoken are not disturbed.
 * ZeroMQ hands messages on when their connection may long have gone and its descriptor be
 * another's. So a connection gets a pass at its handshake, which comes with each of its messages
 * and tells it from those that had the same descriptor before and after.
 * The folder is watched by a thread: inotify, and once a second besides, for file systems that tell
 * nothing. A key is allowed by a file that was seen to hold it, and by nothing else: key_folder.h
 * has the rules for files, and for a folder, that cannot be read. There are at most
 * OCT_MOST_KEY_FILES: with more the daemon does not start; while there are more later those that
 * were taken before count as long as their files stand, and no other is taken.
 *
 * Any thread may call. Functions take a mutex for microseconds; none waits for the network. */
#ifndef OCT_PIPELINE_NET_ACCESS_H
#define OCT_PIPELINE_NET_ACCESS_H

#include "pipeline/net/curve.h"

#include <stddef.h>
#include <stdint.h>

struct oct_access;

enum oct_refusal {
    OCT_REFUSED_PLAIN,       /* speaks no CURVE at all */
    OCT_REFUSED_UNKNOWN_KEY, /* not in the folder */
    OCT_REFUSED_REVOKED_KEY, /* was in the folder since the start, and is no more */
    OCT_REFUSED_PROTOCOL,    /* wrong server key, or bytes that are no handshake */
    OCT_REFUSED_BROKEN_OFF,  /* went away in the middle, as a plain client may that sees first */
    OCT_N_REFUSALS,
};
extern const char *const oct_refusal_names[OCT_N_REFUSALS];

struct oct_access_counts {
    uint64_t n_allowed;               /* keys in the folder now */
    uint64_t n_unreadable;            /* its files that cannot be read now and let nobody in */
    bool is_incomplete;               /* it cannot be listed, is gone or holds too many files */
    uint64_t refused[OCT_N_REFUSALS]; /* handshakes */
    uint64_t messages_refused;        /* of connections whose key has gone meanwhile */
    uint64_t connections_cut;         /* for the same reason, and those that had not spoken */
};

#define OCT_PASS_BYTES (OCT_CURVE_KEY_BYTES + 24)

/* Reads the keys and starts the watch. server_key: path of a secret key file; allowed: path of the
 * folder. OCT_E_CONFIG names key and file, or says that the folder holds too many. A file of the
 * folder that cannot be read is told in the log and lets nobody in. */
enum oct_err oct_access_create(struct oct_access **access, const char *server_key,
                               const char *allowed, struct oct_error *err);

/* No door may be left. NULL is fine. */
void oct_access_destroy(struct oct_access *access);

/* The daemon's secret key as Z85; valid until destroy. */
const char *oct_access_secret(const struct oct_access *access);

/* A connection stands, over this descriptor. Told before its handshake is decided. */
void oct_access_note_accepted(struct oct_access *access, int fd);

/* A handshake: whether the key (Z85) may come in. If so, `pass` is what the connection's messages
 * shall carry; if not, it is empty, and the refusal is counted and logged. peer: the address, for
 * the log. */
bool oct_access_greets(struct oct_access *access, const char *key, const char *peer,
                       char pass[OCT_PASS_BYTES]);

/* A handshake that failed before a key was seen: counted and logged. */
void oct_access_note_refusal(struct oct_access *access, enum oct_refusal why, const char *peer);

/* A message that came with `pass` (NULL: with none) over the descriptor `fd` (-1: unknown): whether
 * it counts. If not, its connection, if it still stands, is shut down. */
bool oct_access_admits(struct oct_access *access, const char *pass, int fd);

void oct_access_get_counts(struct oct_access *access, struct oct_access_counts *counts);

#endif
