/* The publisher: a thread that sends images on a ZeroMQ XPUB socket (contract section 5, "B-scans
 * out"), three parts each: topic, JSON header, values. Its topics:
 *
 *     bscan       every picture of the image ring (wire.h). Always first: whatever else there is
 *                 delays a picture by one message at most
 *     spectrum    a few times a second the middle A-line of the newest B-scan as the camera saw it,
 *                 with how many samples of that B-scan reached the camera's limit (spectrum.h)
 *     complex     the complex values of B-scans, [M][D][2], where a pipeline is given: asked for
 *                 while somebody subscribes, so that they are made for nobody else
 *     any source  the images of a ring, under the name of their form (image_header.h), as soon as
 *                 they are there; dropped where nobody subscribes to them
 *
 * It is a lossy reader of all rings: when it falls behind by half a ring it goes on at the newest
 * image; what it skipped is counted. A slow subscriber loses messages in its own queue of
 * `queue_bscans` and sees that in frame_num; nothing waits for it: each image is copied out of its
 * slot before ZeroMQ, which obeys subscriptions meanwhile, is asked to send. What a subscriber may
 * send us, and have, is bounded (connections.h, subscriptions.h); one with more is cut off. */
#ifndef OCT_PIPELINE_PUBLISH_PUBLISHER_H
#define OCT_PIPELINE_PUBLISH_PUBLISHER_H

#include "pipeline/base/latency.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/ring.h"
#include "pipeline/flow/slots.h"
#include "pipeline/net/door.h"
#include "pipeline/plan/geometry.h"

#include <stdbool.h>

struct oct_publisher;

/* Rings, forms and door outlive the publisher; the rest is copied. */
struct oct_publisher_options {
    void *zmq_context;
    const char *endpoint;
    unsigned queue_bscans; /* messages that wait for a subscriber */
    const struct oct_geometry *geometry;
    struct oct_ring *images;
    const char *session; /* starts every acquisition_id ("<session>-<acquisition>"), so that ids of
                              two runs differ */
    struct oct_door *door;                  /* a subscriber whose key goes is cut off; NULL: none */
    struct oct_ring *raw;                   /* of the spectra; NULL: none are sent */
    uint32_t limit;                         /* of the spectra: the largest sample there can be */
    struct oct_pipeline *pipeline;          /* of the images: `complex`; NULL: there is none */
    const struct oct_image_source *sources; /* [n_sources] */
    unsigned n_sources;
};

/* Binds and starts the thread. It sends what comes until the image ring and those of all sources
 * are closed and read. OCT_E_ARG: the form of a source cannot be published, or has the name of
 * another topic; OCT_E_NO_MEMORY; as oct_zsocket_bind. */
enum oct_err oct_publisher_create(struct oct_publisher **publisher,
                                  const struct oct_publisher_options *options,
                                  struct oct_error *err);

/* The image ring must be closed. Sources may still be open: what their rings hold is sent. NULL is
 * fine. */
void oct_publisher_destroy(struct oct_publisher *publisher);

struct oct_publisher_topic {
    const char *name; /* NULL: there are not so many topics */
    uint64_t published;
    uint64_t skipped;  /* not read because the publisher fell behind, or impossible to send */
    uint64_t unwanted; /* read, and dropped because nobody subscribed */
    /* Of a source: somebody subscribes now. True within 100 ms of the subscription, false again
     * half a second after its end. */
    bool wanted;
};

/* The counts of topic i: 0 is `bscan`, then `spectrum` where there is one, then the sources in
 * their order, then `complex`. Any thread. */
struct oct_publisher_topic oct_publisher_topic(const struct oct_publisher *publisher, unsigned i);

/* Any thread. Status of the pictures. Latency: from the arrival of a B-scan's last line to its
 * publication, of whole B-scans since the acquisition began. */
uint64_t oct_publisher_published(const struct oct_publisher *publisher);
uint64_t oct_publisher_skipped(const struct oct_publisher *publisher);
struct oct_latency_summary oct_publisher_latency(const struct oct_publisher *publisher);
const char *oct_publisher_endpoint(const struct oct_publisher *publisher);

/* What the topic `scan` says from now on: JSON text, copied, sent at once and to everyone who
 * subscribes later, with an empty third part. Any thread. False: out of memory. */
bool oct_publisher_announce_scan(struct oct_publisher *publisher, const char *json);

#endif
