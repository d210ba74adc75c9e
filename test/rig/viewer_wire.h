/* The viewer's subscription and a real publisher that the test plays: for the tests of the
 * subscriber. All of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_VIEWER_WIRE_H
#define OCT_TEST_RIG_VIEWER_WIRE_H

#include "viewer/net/subscriber.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of good pictures: A-lines, depth. */
#define M 6u
#define D 8u

struct wire {
    void *context, *publisher;
    const char *endpoint;
    struct oct_subscriber *subscriber;
    struct oct_view_archive *archive;
    struct oct_view_picture picture;
    struct oct_subscriber_report report;
    uint64_t n_sent; /* good pictures */
};

/* A setup and a teardown of cmocka: *state is a wire whose subscriptions have reached the
 * publisher. */
int open_wire(void **state);
int close_wire(void **state);

/* Again, where it was closed. */
void open_publisher(struct wire *w);

void pause_ms(long ms);

/* The header of a B-scan of m x d values; the caller frees it. */
char *header_json(uint64_t frame_num, const char *dtype, const char *m, const char *d,
                  double dsize);

void send_part(struct wire *w, const void *bytes, size_t n_bytes, bool more);
void send_three(struct wire *w, const char *topic, const char *json, size_t json_bytes,
                const void *image, size_t image_bytes);

/* A good picture: every pixel is its frame number. */
void send_good(struct wire *w, uint64_t frame_num);

/* The header of an image: number, dtype, bytes, topic, shape, lo, more members. */
#define WIRE_IMAGE_JSON                                                                            \
    "{\"frame_num\":%llu,\"acquisition_id\":\"t\",\"dtype\":\"%s\",\"dsize\":%zu,"                 \
    "\"dataset\":\"analysis/%s\",\"compression\":\"none\",\"shape\":[%s],\"time_ns\":5,"           \
    "\"missing_lines\":0,\"lo\":%s,\"hi\":60,\"volume\":2,\"bscan\":1%s}"

/* An image of 10 .. 60; `more` members of the header begin with a comma. */
void send_image(struct wire *w, const char *topic, uint64_t number, const char *dtype,
                const char *shape, const char *more, const void *values, size_t n_bytes);

/* A row of three numbers with these labels, the last the row's number. */
extern const char wire_quality_labels[];
void send_quality(struct wire *w, uint64_t number, bool motion);

/* The newest picture, if one has come since, and the report. */
bool take_picture(struct wire *w);

/* Waits until so many messages were counted as bad; returns how many were. */
uint64_t expect_bad(struct wire *w, uint64_t n_bad);

#endif
