/* The publisher: a thread that sends every picture of the image ring on a ZeroMQ XPUB socket
 * (contract section 5, "B-scans out"): topic, JSON header, image.
 *
 * A few times a second it also sends a spectrum (spectrum.h): the middle A-line of the newest
 * B-scan as the camera saw it, with how many samples of that B-scan reached the camera's limit.
 *
 * It is a lossy reader: when it falls behind by half the ring it goes on at the newest picture;
 * what it skipped is counted. A slow subscriber loses pictures in its own queue of
 * `queue_bscans` and sees that in frame_num; nothing waits for it: each picture is copied out of
 * its slot before ZeroMQ, which obeys subscriptions meanwhile, is asked to send. What a subscriber
 * may send us, and have, is bounded (intake.h, subscriptions.h); one with more is cut off. */
#ifndef OCT_PIPELINE_PUBLISH_PUBLISHER_H
#define OCT_PIPELINE_PUBLISH_PUBLISHER_H

#include "pipeline/base/latency.h"
#include "pipeline/flow/ring.h"
#include "pipeline/net/door.h"
#include "pipeline/plan/geometry.h"

struct oct_publisher;

/* The socket is an XPUB, which tells who subscribes. Behind a door (borrowed; NULL: none) a
 * subscriber whose key goes is cut off, the others notice nothing.
 *
 * Binds and starts the thread; it ends when the ring is closed and read. `session` starts every
 * acquisition_id ("<session>-<acquisition>"), so that ids of two runs differ. */
enum oct_err oct_publisher_create(struct oct_publisher **publisher, void *zmq_context,
                                  const char *endpoint, unsigned queue_bscans,
                                  const struct oct_geometry *geometry, struct oct_ring *images,
                                  const char *session, struct oct_door *door,
                                  struct oct_error *err);

/* Spectra are sent from now on, read from the raw ring (another lossy reader, which lets go of a
 * slot before it sends). limit: the largest sample there can be. Called before pictures flow; the
 * raw ring outlives the publisher. OCT_E_NO_MEMORY. */
enum oct_err oct_publisher_add_spectra(struct oct_publisher *publisher, struct oct_ring *raw,
                                       uint32_t limit, struct oct_error *err);

/* The image ring must be closed. NULL is fine. */
void oct_publisher_destroy(struct oct_publisher *publisher);

/* Any thread. Latency: from the arrival of a B-scan's last line to its publication, of whole
 * B-scans since the acquisition began. */
uint64_t oct_publisher_published(const struct oct_publisher *publisher);
uint64_t oct_publisher_skipped(const struct oct_publisher *publisher);
struct oct_latency_summary oct_publisher_latency(const struct oct_publisher *publisher);
const char *oct_publisher_endpoint(const struct oct_publisher *publisher);

#endif
