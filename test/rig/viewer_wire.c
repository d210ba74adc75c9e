#include "test/rig/viewer_wire.h"

#include "pipeline/base/clock.h"
#include "test/rig/tap.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Written here from the contract, so that the encoder of pipeline/ is not its own judge. */
char *header_json(uint64_t frame_num, const char *dtype, const char *m, const char *d, double dsize)
{
    const char *shape[] = {m, d};
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "frame_num", (double)frame_num);
    cJSON_AddStringToObject(o, "acquisition_id", "test");
    cJSON_AddStringToObject(o, "dtype", dtype);
    cJSON_AddNumberToObject(o, "dsize", dsize);
    cJSON_AddStringToObject(o, "dataset", "bscans");
    cJSON_AddStringToObject(o, "compression", "none");
    cJSON_AddItemToObject(o, "shape", cJSON_CreateStringArray(shape, 2));
    cJSON_AddNumberToObject(o, "time_ns", 5);
    cJSON_AddNumberToObject(o, "missing_lines", 1);
    cJSON_AddNumberToObject(o, "lo", 10);
    cJSON_AddNumberToObject(o, "hi", 60);
    cJSON_AddNumberToObject(o, "volume", 2);
    cJSON_AddNumberToObject(o, "bscan", 3);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    assert_non_null(text);
    return text;
}

void send_part(struct wire *w, const void *bytes, size_t n_bytes, bool more)
{
    assert_int_equal(zmq_send(w->publisher, bytes, n_bytes, more ? ZMQ_SNDMORE : 0), n_bytes);
}

void send_three(struct wire *w, const char *topic, const char *json, size_t json_bytes,
                const void *image, size_t image_bytes)
{
    send_part(w, topic, strlen(topic), true);
    send_part(w, json, json_bytes, true);
    send_part(w, image, image_bytes, false);
}

/* A good picture: every pixel is its frame number. */
void send_good(struct wire *w, uint64_t frame_num)
{
    uint8_t image[M * D];
    char *json = header_json(frame_num, "uint8", "6", "8", M * D);
    memset(image, (int)(frame_num & 255), sizeof(image));
    send_three(w, "bscan", json, strlen(json), image, sizeof(image));
    w->n_sent++;
    free(json);
}

void send_image(struct wire *w, const char *topic, uint64_t number, const char *dtype,
                const char *shape, const char *more, const void *values, size_t n_bytes)
{
    char json[1024];
    snprintf(json, sizeof(json), WIRE_IMAGE_JSON, (unsigned long long)number, dtype, n_bytes, topic,
             shape, "10", more);
    send_three(w, topic, json, strlen(json), values, n_bytes);
}

const char wire_quality_labels[] = ",\"labels\":[\"snr_db\",\"motion\",\"motions\"]";

void send_quality(struct wire *w, uint64_t number, bool motion)
{
    const float row[] = {(float)number, motion, (float)number};
    send_image(w, "quality", number, "float", "\"3\"", wire_quality_labels, row, sizeof(row));
}

bool take_picture(struct wire *w)
{
    return oct_subscriber_take(w->subscriber, &w->picture, &w->report);
}

#define LAST_OF_MEETING 999

/* Publishes until the subscriptions, of which that of the quality is the last, have reached the
 * publisher (PUB drops what nobody wants yet), then until all of that has arrived. */
static void meet(struct wire *w)
{
    struct oct_view_image row = {0};
    bool met = false;
    for (int i = 0;
         i < TEST_PATIENCE_MS / 10 && !oct_subscriber_wait(w->subscriber, 1, 10 * OCT_NS_PER_MS);
         i++)
        send_good(w, LAST_OF_MEETING - 1);
    assert_true(oct_subscriber_wait(w->subscriber, 1, 0));
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && !met; i++) {
        send_quality(w, 0, false);
        pause_ms(10);
        met = oct_subscriber_take_image(w->subscriber, "quality", &row);
    }
    assert_true(met);
    send_good(w, LAST_OF_MEETING);
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && w->picture.header.frame_num != LAST_OF_MEETING;
         i++) {
        take_picture(w);
        pause_ms(10);
    }
    assert_int_equal(w->picture.header.frame_num, LAST_OF_MEETING);
    oct_subscriber_take_image(w->subscriber, "quality", &row);
    oct_view_image_finish(&row);
    w->n_sent = w->report.tally.n_received;
    assert_true(w->report.connected);
}

void open_publisher(struct wire *w)
{
    int linger = 0, queue = 0;
    w->publisher = zmq_socket(w->context, ZMQ_PUB);
    zmq_setsockopt(w->publisher, ZMQ_LINGER, &linger, sizeof(linger));
    zmq_setsockopt(w->publisher, ZMQ_SNDHWM, &queue, sizeof(queue));
    assert_int_equal(zmq_bind(w->publisher, w->endpoint), 0);
}

int open_wire(void **state)
{
    struct wire *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->context = zmq_ctx_new();
    w->endpoint = "ipc://pictures";
    open_publisher(w);
    w->archive = oct_view_archive_create(1 << 20);
    assert_non_null(w->archive);
    assert_int_equal(
        oct_subscriber_create(&w->subscriber, w->endpoint, NULL, w->archive, NULL, NULL, NULL),
        OCT_OK);
    meet(w);
    *state = w;
    return 0;
}

int close_wire(void **state)
{
    struct wire *w = *state;
    oct_subscriber_destroy(w->subscriber);
    oct_view_picture_finish(&w->picture);
    oct_view_archive_destroy(w->archive);
    if (w->publisher)
        zmq_close(w->publisher);
    zmq_ctx_term(w->context);
    free(w);
    return 0;
}

uint64_t expect_bad(struct wire *w, uint64_t n_bad)
{
    /* ThreadSanitizer looks at every byte that ZeroMQ sends, which takes it seconds here. */
    for (int i = 0; i < 4000 && w->report.tally.n_bad < n_bad; i++) {
        take_picture(w);
        pause_ms(10);
    }
    return w->report.tally.n_bad;
}
