/* Access control: the daemon's secret key, a folder of allowed public keys, the open connections,
 * and the count of what was refused.
 *
 * ZeroMQ asks about a key only when a connection is made. So that a key loses access as soon as it
 * is taken out of the folder,
 *   - every message is asked about (oct_access_admits), and refused if its key has gone;
 *   - every connection is remembered from the moment it stands, and shut down when its key goes.
 *     ZeroMQ tells whose it is only with its first message (a subscriber's is its subscription);
 *     one that has said nothing yet may be anybody's and is shut down when any key goes. If its own
 *     key is still allowed its program makes a new one by itself; it has lost nothing but a first
 *     message that was on its way at that moment. Connections of other keys that have spoken are
 *     not disturbed.
 * ZeroMQ delivers a message when its connection may be closed already and the descriptor reused. So
 * a connection gets a pass at its handshake. The pass comes with each of its messages and
 * distinguishes it from earlier and later connections over the same descriptor. A thread watches
 * the folder, by inotify and once a second besides, for file systems without inotify. Only a file
 * that was seen to hold a key allows it: key_folder.h has the rules for files, and for a folder,
 * that cannot be read. There are at most OCT_MOST_KEY_FILES. With more the daemon does not start;
 * if there are more later, the known keys stay allowed as long as their files exist, and no new one
 * is allowed.
 *
 * Thread-safe. Functions hold a mutex for microseconds; none waits for the network. */
#ifndef OCT_PIPELINE_NET_ACCESS_H
#define OCT_PIPELINE_NET_ACCESS_H

#include "pipeline/net/curve.h"

#include <stddef.h>
#include <stdint.h>

struct oct_access;

enum oct_refusal {
    OCT_REFUSED_PLAIN,       /* speaks no CURVE at all */
    OCT_REFUSED_UNKNOWN_KEY, /* not in the folder */
    OCT_REFUSED_REVOKED_KEY, /* was in the folder at some time since the start, and is not now */
    OCT_REFUSED_PROTOCOL,    /* wrong server key, or bytes that are no handshake */
    OCT_REFUSED_BROKEN_OFF,  /* disconnected during the handshake, as a plain client may that
                                notices first */
    OCT_N_REFUSALS,
};
extern const char *const oct_refusal_names[OCT_N_REFUSALS];

struct oct_access_counts {
    uint64_t n_allowed;               /* keys in the folder now */
    uint64_t n_unreadable;            /* files that cannot be read now, and so allow no key */
    bool is_incomplete;               /* it cannot be listed, is gone or holds too many files */
    uint64_t refused[OCT_N_REFUSALS]; /* handshakes */
    uint64_t messages_refused;        /* of connections whose key has gone meanwhile */
    uint64_t connections_cut;         /* for the same reason, and those whose key was not known
                                         yet */
};

#define OCT_PASS_BYTES (OCT_CURVE_KEY_BYTES + 24)

/* Reads the keys and starts the watch. server_key: path of a secret key file; allowed: path of the
 * folder. OCT_E_CONFIG names key and file, or says that the folder holds too many. A file of the
 * folder that cannot be read is logged and allows no key. */
enum oct_err oct_access_create(struct oct_access **access, const char *server_key,
                               const char *allowed, struct oct_error *err);

/* All doors must have been destroyed. NULL is fine. */
void oct_access_destroy(struct oct_access *access);

/* The daemon's secret key as Z85; valid until destroy. */
const char *oct_access_secret(const struct oct_access *access);

/* Reports a new connection over this descriptor, before its handshake is decided. */
void oct_access_note_accepted(struct oct_access *access, int fd);

/* A handshake: returns whether the key (Z85) is allowed. If so, `pass` receives what the
 * connection's messages carry; if not, it is empty, and the refusal is counted and logged. peer:
 * the address, for the log. */
bool oct_access_greets(struct oct_access *access, const char *key, const char *peer,
                       char pass[OCT_PASS_BYTES]);

/* A handshake that failed before a key was seen: counted and logged. */
void oct_access_note_refusal(struct oct_access *access, enum oct_refusal why, const char *peer);

/* Returns whether a message may be processed that came with `pass` (NULL: none) over the descriptor
 * `fd` (-1: unknown). If not, its connection is shut down if it is still open. */
bool oct_access_admits(struct oct_access *access, const char *pass, int fd);

void oct_access_get_counts(struct oct_access *access, struct oct_access_counts *counts);

#endif
