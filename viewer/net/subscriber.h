/* The subscription: a thread that owns a zmq SUB socket, checks every message and keeps the newest
 * of each topic in a mailbox of its own, never a backlog. The topics are B-scans, spectra,
 * quality and those of the overlays (viewer/model/overlay.h).
 *
 *     create -> { wait | take ... } -> destroy
 *
 * Everything that arrives is untrusted: the thread counts and drops what is no message of a wanted
 * topic. It connects again by itself for ever. Its memory is flat: three buffers a topic that are
 * swapped (filling, ready, the caller's) and a receive queue of a few messages. One thread calls
 * take, wait and destroy. */
#ifndef OCT_VIEWER_NET_SUBSCRIBER_H
#define OCT_VIEWER_NET_SUBSCRIBER_H

#include "pipeline/net/curve.h"
#include "viewer/model/archive.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_subscriber;

struct oct_subscriber_report {
    struct oct_view_tally tally;
    bool connected;            /* a publisher answers at the endpoint */
    struct oct_error last_bad; /* why the newest refused message was refused */
};

/* Connects (which succeeds with nobody there yet) and starts the thread. keys: NULL or of a daemon
 * that asks for them; read here. archive: NULL, or where the thread puts every picture and what the
 * topics keep (borrowed; it outlives the subscriber). The thread calls `notify` (NULL: none) when a
 * message becomes ready in a mailbox that was empty; it must not block. OCT_E_CONFIG: ZeroMQ does
 * not understand the endpoint. */
enum oct_err oct_subscriber_create(struct oct_subscriber **subscriber, const char *endpoint,
                                   const struct oct_curve_files *keys,
                                   struct oct_view_archive *archive, void (*notify)(void *context),
                                   void *context, struct oct_error *err);

/* Subscribes to a topic that is subscribed to on demand alone, or ends that, within a tenth of a
 * second. Cheap to call again. */
void oct_subscriber_want(struct oct_subscriber *subscriber, const char *topic, bool wanted);

/* If an image of that topic came since the last time, swaps the newest into *image and returns
 * true. Of topics that octview does not subscribe to, and of bscan and spectrum, there are none. */
bool oct_subscriber_take_image(struct oct_subscriber *subscriber, const char *topic,
                               struct oct_view_image *image);

/* If a spectrum came since the last time, swaps it into *spectrum and returns true. */
bool oct_subscriber_take_spectrum(struct oct_subscriber *subscriber,
                                  struct oct_view_spectrum *spectrum);

/* Fills the report; if a picture came since the last take, swaps it into *picture and returns
 * true. Never waits for the network. */
bool oct_subscriber_take(struct oct_subscriber *subscriber, struct oct_view_picture *picture,
                         struct oct_subscriber_report *report);

/* Waits until n pictures have been received in all, or the time runs out; true if they have. */
bool oct_subscriber_wait(struct oct_subscriber *subscriber, uint64_t n_received,
                         uint64_t timeout_ns);

/* Stops the thread at once and frees everything. NULL is fine. */
void oct_subscriber_destroy(struct oct_subscriber *subscriber);

#endif
