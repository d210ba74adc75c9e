/* The ingest's gate: closing it takes about two seconds at most, whatever lies waiting. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/ingest.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { N = 16, M = 4, RING = 4, MESSAGES = 14 };

/* MESSAGES B-scans are sent, and nobody reads the ring: each message but the first few waits a
 * second for room. */
struct rig {
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    void *context, *socket;
    struct oct_ingest *ingest;
    uint64_t sequence;
};

static void send_bscan(struct rig *r)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    uint16_t lines[M * N] = {0};
    const struct oct_lines_header h = {.sequence = r->sequence,
                                       .first_line = r->sequence * M,
                                       .n_lines = M,
                                       .n_samples = N,
                                       .format = OCT_LINES_U16,
                                       .flags = r->sequence ? 0 : OCT_LINES_STARTS,
                                       .epoch = 3};
    oct_lines_encode(&h, header);
    r->sequence++;
    assert_int_equal(zmq_send(r->socket, header, sizeof(header), ZMQ_SNDMORE), sizeof(header));
    assert_int_equal(zmq_send(r->socket, lines, sizeof(lines), 0), sizeof(lines));
}

static void wait_for(const atomic_uint_fast64_t *count, uint64_t least)
{
    uint64_t until = oct_clock_ns() + 10000000000u;
    while (atomic_load(count) < least) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
}

static void open_rig(struct rig *r)
{
    const struct oct_ingest_options options = {.endpoint = "tcp://127.0.0.1:*",
                                               .queue_messages = 64,
                                               .max_message_bytes = 1 << 20,
                                               .open = true};
    int none = 0;
    *r = (struct rig){.ingest = NULL};
    assert_int_equal(oct_geometry_init(&r->geometry, N, M, 4, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    r->ring = open_ring(RING, oct_raw_slot_bytes(&r->geometry));
    r->reader = add_reader(r->ring, true, 0);
    r->context = zmq_ctx_new();
    must(oct_ingest_create(&r->ingest, r->context, &r->geometry, r->ring, &options, &failure));
    r->socket = zmq_socket(r->context, ZMQ_PUSH);
    zmq_setsockopt(r->socket, ZMQ_LINGER, &none, sizeof(none));
    assert_int_equal(zmq_connect(r->socket, oct_ingest_endpoint(r->ingest)), 0);
    for (int k = 0; k < MESSAGES; k++)
        send_bscan(r);
    wait_for(&oct_ingest_counts(r->ingest)->bscans_dropped, 1); /* the next one waits now */
}

static void close_rig(struct rig *r)
{
    oct_ingest_destroy(r->ingest);
    zmq_close(r->socket);
    zmq_ctx_term(r->context);
    oct_ring_destroy(r->ring);
}

TEST(the_gate_closes_within_two_seconds_though_the_ring_is_full)
{
    struct rig r;
    open_rig(&r);
    const struct oct_ingest_counts *c = oct_ingest_counts(r.ingest);
    uint64_t begin = oct_clock_ns(), slot;
    oct_ingest_set_gate(r.ingest, false);
    assert_true(oct_clock_ns() - begin < UINT64_C(2500) * 1000000);
    assert_int_equal(c->bscans_delivered, RING);
    assert_int_equal(c->bscans_begun, c->bscans_delivered + c->bscans_dropped);

    /* Opened again it has its patience back: a B-scan that has to wait a while is not lost. */
    uint64_t dropped = c->bscans_dropped, begun = c->bscans_begun;
    sleep_us(200000); /* what still lay there is thrown away */
    oct_ingest_set_gate(r.ingest, true);
    send_bscan(&r);
    wait_for(&c->bscans_begun, begun + 1);
    sleep_us(300000);
    assert_int_equal(oct_ring_read(r.reader, 0, &slot), OCT_OK);
    oct_ring_release(r.reader);
    wait_for(&c->bscans_delivered, RING + 1);
    assert_int_equal(c->bscans_dropped, dropped);
    close_rig(&r);
}

TEST(the_thread_ends_within_two_seconds_though_the_ring_is_full)
{
    struct rig r;
    open_rig(&r);
    uint64_t begin = oct_clock_ns();
    oct_ingest_destroy(r.ingest);
    assert_true(oct_clock_ns() - begin < UINT64_C(2500) * 1000000);
    r.ingest = NULL;
    close_rig(&r);
}
