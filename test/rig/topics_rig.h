/* A publisher between rings that the test fills, and its subscribers: for the tests of topics. All
 * of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_TOPICS_RIG_H
#define OCT_TEST_RIG_TOPICS_RIG_H

#include "pipeline/publish/publisher.h"
#include "pipeline/wire/image_header.h"

#include <stdbool.h>
#include <stdint.h>

#define N_SLOTS 8u
#define MAP_BYTES (256 * 1024) /* a few fill what the kernel keeps of a connection */

/* A table of up to 4 rows of 3; pictures of MAP_BYTES. */
extern const struct oct_image_form rows_form, map_form;

struct rig {
    struct oct_geometry g;
    struct oct_ring *images, *rows, *map;
    struct oct_publisher *publisher;
    void *context;
    uint64_t number; /* of the next image */
};

void sleep_ms(unsigned ms);

/* A publisher of B-scans and both forms; options_of leaves out the forms. */
struct oct_publisher_options options_of(struct rig *rig);
void open_topics(struct rig *rig);
void close_topics(struct rig *rig);

/* The next image, to be filled and published in its ring. */
struct oct_image_frame *begin_image(struct rig *rig, struct oct_ring *ring,
                                    const struct oct_image_form *form);
void publish_rows(struct rig *rig, uint32_t n);
void publish_map(struct rig *rig, bool whole);
void publish_bscan(struct rig *rig);

void *subscribe(struct rig *rig, const char *topic);
bool is_wanted(const struct rig *rig, const char *name);
void wait_until_wanted(const struct rig *rig, const char *topic, bool wanted);
void wait_until_published(const struct rig *rig, unsigned topic, uint64_t n);

struct message {
    char topic[64], json[OCT_IMAGE_HEADER_BYTES];
    int n_json, n_values;
    unsigned char values[4096];
};

/* Whole messages of three parts. */
void receive(void *socket, struct message *m);
void receive_image(void *socket, struct message *m, struct oct_image_header *header);
void receive_nothing(void *socket);

#endif
