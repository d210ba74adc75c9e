/* Lines through shared memory: the camera driver's client and hostile drivers against the real
 * ingest thread and raw ring. */
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/client/shm_driver.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/ingest.h"
#include "pipeline/ingest/shm_store.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { N = 832, M = 100, V = 4, RING = 64, SLOTS = 8 };

/* The daemon's end. */
struct rig {
    char name[40], endpoint[64], object[OCT_SHM_PATH_BYTES];
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    void *context;
    struct oct_ingest *ingest;
};

static void open_ingest(struct rig *r)
{
    const struct oct_ingest_options options = {
        .endpoint = r->endpoint, .queue_messages = SLOTS, .max_message_bytes = 1, .open = true};
    r->context = zmq_ctx_new();
    must(oct_ingest_create(&r->ingest, r->context, &r->geometry, r->ring, &options, &failure));
}

static void close_ingest(struct rig *r)
{
    oct_ingest_destroy(r->ingest);
    zmq_ctx_term(r->context);
    r->ingest = NULL;
}

static void name_rig(struct rig *r)
{
    static unsigned n_made;
    snprintf(r->name, sizeof(r->name), "test-%d-%u", (int)getpid(), n_made++);
    snprintf(r->endpoint, sizeof(r->endpoint), "shm://%s", r->name);
    oct_shm_object_of(r->name, r->object);
}

static void open_rig(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    name_rig(r);
    assert_int_equal(oct_geometry_init(&r->geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    r->ring = open_ring(RING, oct_raw_slot_bytes(&r->geometry));
    r->reader = add_reader(r->ring, true, 0);
    open_ingest(r);
}

static void close_rig(struct rig *r)
{
    if (r->ingest)
        close_ingest(r);
    oct_ring_destroy(r->ring);
    assert_int_equal(shm_open(r->object, O_RDWR, 0), -1); /* nothing is left */
}

static struct oct_client *connect_to(const struct rig *r, const struct oct_client_options *options)
{
    struct oct_client *client;
    char error[256];
    if (oct_client_connect(&client, r->endpoint, N, options, error, sizeof(error)))
        fail_msg("%s", error);
    return client;
}

static uint16_t sample_at(uint64_t line, uint32_t i)
{
    return (uint16_t)(line * 7919 + i * 31 + 1);
}

static void fill(uint16_t *lines, uint64_t first, uint32_t n_lines)
{
    for (uint32_t j = 0; j < n_lines; j++)
        for (uint32_t i = 0; i < N; i++)
            lines[(size_t)j * N + i] = sample_at(first + j, i);
}

/* The next B-scan must hold lines first .. first + M - 1, all of them. */
static void expect_bscan(struct rig *r, uint64_t first)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(r->reader, TEST_PATIENCE_US, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(r->ring, slot, &r->geometry);
    assert_int_equal(frame->info.missing_lines, 0);
    for (uint32_t j = 0; j < M; j++)
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(frame->spectra[(size_t)j * N + i], sample_at(first + j, i));
    oct_ring_release(r->reader);
}

static uint64_t bad_of(const struct rig *r, enum oct_bad reason)
{
    return oct_ingest_counts(r->ingest)->messages_bad[reason];
}

static void wait_for(const atomic_uint_fast64_t *count, uint64_t least)
{
    uint64_t until = oct_clock_ns() + TEST_PATIENCE_NS;
    while (atomic_load(count) < least) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
}

/* ---- cases ---- */

/* Blocks of every length, longer than a slot (157 lines) and than all of them together (1256). */
TEST(lines_arrive_whole_whatever_the_block)
{
    static const uint32_t blocks[] = {1, 33, 100, 157, 158, 250, 315, 1000, 1256, 1257, 3000};
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        struct rig r;
        open_rig(&r);
        const struct oct_client_options options = {.crc = b % 2};
        struct oct_client *client = connect_to(&r, &options);
        uint16_t *lines = malloc((size_t)blocks[b] * N * sizeof(uint16_t));
        assert_non_null(lines);
        uint32_t n_lines = 3000;
        oct_client_start(client);
        for (uint32_t first = 0; first < n_lines; first += blocks[b]) {
            uint32_t n = n_lines - first < blocks[b] ? n_lines - first : blocks[b];
            fill(lines, first, n);
            assert_int_equal(oct_client_send(client, lines, n, first), OCT_CLIENT_OK);
        }
        assert_int_equal(oct_client_end(client), OCT_CLIENT_OK);
        for (uint32_t first = 0; first < n_lines; first += M)
            expect_bscan(&r, first);
        assert_int_equal(oct_client_close(client), 0);
        const struct oct_ingest_counts *counts = oct_ingest_counts(r.ingest);
        assert_int_equal(counts->lines_received, n_lines);
        assert_int_equal(counts->acquisitions, 1);
        wait_for(&counts->ended_at, 1); /* a message of its own */
        free(lines);
        close_rig(&r);
    }
}

#define RIG_TEST(name) TEST_ON(name, struct rig, r, open_rig(r), close_rig(r))

RIG_TEST(a_borrowed_slot_is_sent_without_a_copy_and_can_be_returned)
{
    uint16_t *lines, *again;
    struct oct_client *client = connect_to(r, NULL);
    assert_int_equal(oct_client_send_borrowed(client, 1, 0), OCT_CLIENT_REFUSED);
    assert_int_equal(oct_client_borrow(client, 100000, &lines), OCT_CLIENT_REFUSED);
    assert_null(lines);
    assert_int_equal(oct_client_borrow(client, M, &lines), OCT_CLIENT_OK);
    assert_int_equal(oct_client_borrow(client, M, &again), OCT_CLIENT_REFUSED);
    assert_int_equal(oct_client_send(client, (uint16_t[N]){0}, 1, 0), OCT_CLIENT_REFUSED);
    oct_client_return(client);
    for (uint64_t b = 0; b < 3 * SLOTS; b++) {
        assert_int_equal(oct_client_borrow(client, M + 7, &lines), OCT_CLIENT_OK);
        fill(lines, b * M, M);
        assert_int_equal(oct_client_send_borrowed(client, M, 0), OCT_CLIENT_OK);
    }
    for (uint64_t b = 0; b < 3 * SLOTS; b++)
        expect_bscan(r, b * M);
    assert_int_equal(oct_client_close(client), 0);
}

TEST(what_finds_no_slot_waits_or_is_dropped_with_a_gap)
{
    struct rig r = {.ingest = NULL};
    struct oct_shm_store *store;
    uint16_t line[N] = {0};
    name_rig(&r);
    const struct oct_shm_options shm = {
        .name = r.name, .group = "", .n_slots = SLOTS, .n_samples = N, .slot_bytes = 4096};
    assert_int_equal(oct_shm_store_create(&store, &shm, NULL), OCT_OK); /* and nobody takes */
    const struct oct_client_options patient = {.wait_ms = 30, .linger_ms = 30};
    const struct oct_client_options hasty = {.drop_when_full = true, .linger_ms = 30};
    struct oct_client *a = connect_to(&r, &patient), *b = connect_to(&r, &hasty);
    struct oct_client_counters c;
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(oct_client_send(a, line, 1, 0), OCT_CLIENT_OK);
    assert_int_equal(oct_client_send(a, line, 1, 0), OCT_CLIENT_TIMEOUT);
    assert_int_equal(oct_client_next_line(a), SLOTS);
    assert_int_equal(oct_client_send(b, line, 1, 0), OCT_CLIENT_DROPPED);
    uint16_t *lines = line;
    assert_int_equal(oct_client_borrow(b, 2, &lines), OCT_CLIENT_DROPPED);
    assert_null(lines);
    assert_int_equal(oct_client_next_line(b), 3);
    oct_client_get_counters(b, &c);
    assert_int_equal(c.lines_dropped, 3);
    oct_client_get_counters(a, &c);
    assert_int_equal(c.messages_queued, SLOTS);
    assert_int_equal(c.lines_queued, SLOTS);
    assert_int_equal(oct_client_close(a), SLOTS); /* given up */
    oct_client_close(b);
    oct_shm_store_destroy(store);
}

RIG_TEST(a_driver_outlives_the_daemon_and_finds_the_next)
{
    uint16_t *lines = malloc((size_t)M * N * sizeof(uint16_t)), *borrowed;
    struct oct_client_counters c;
    assert_non_null(lines);
    const struct oct_client_options options = {.wait_ms = 20};
    struct oct_client *client = connect_to(r, &options);
    assert_int_equal(oct_client_wait_connected(client, TEST_PATIENCE_MS), OCT_CLIENT_OK);
    fill(lines, 0, M);
    assert_int_equal(oct_client_send(client, lines, M, 0), OCT_CLIENT_OK);
    expect_bscan(r, 0);
    assert_int_equal(oct_client_borrow(client, M, &borrowed), OCT_CLIENT_OK);
    close_ingest(r);
    fill(borrowed, 0, M); /* still memory, though nobody's */
    assert_int_equal(oct_client_send_borrowed(client, M, 0), OCT_CLIENT_DROPPED);
    assert_int_equal(oct_client_send(client, lines, M, 0), OCT_CLIENT_TIMEOUT);
    open_ingest(r);
    assert_int_equal(oct_client_wait_connected(client, TEST_PATIENCE_MS), OCT_CLIENT_OK);
    fill(lines, 2 * M, M);
    assert_int_equal(oct_client_send(client, lines, M, 0), OCT_CLIENT_OK);
    expect_bscan(r, 2 * M);
    oct_client_get_counters(client, &c);
    assert_int_equal(c.lines_dropped, M);
    assert_int_equal(oct_client_close(client), 0);
    free(lines);
}

/* ---- hostile drivers ---- */

struct intruder {
    void *context, *socket;
    struct oct_shm_driver *driver;
    int fd;
    unsigned char *memory;
    struct oct_shm_header header;
};

static void open_intruder(struct intruder *x, const struct rig *r)
{
    char endpoint[OCT_SHM_PATH_BYTES];
    oct_shm_socket_of(r->name, endpoint);
    x->context = zmq_ctx_new();
    x->socket = zmq_socket(x->context, ZMQ_PUSH);
    assert_int_equal(zmq_connect(x->socket, endpoint), 0);
    x->fd = shm_open(r->object, O_RDWR, 0);
    assert_true(x->fd >= 0);
    x->memory = mmap(NULL, oct_shm_file_bytes(SLOTS, (uint64_t)256 << 10), PROT_READ | PROT_WRITE,
                     MAP_SHARED, x->fd, 0);
    assert_true(x->memory != MAP_FAILED);
    memcpy(&x->header, x->memory, sizeof(x->header));
    assert_int_equal(x->header.n_slots, SLOTS);
    assert_int_equal(x->header.slot_bytes, (uint64_t)256 << 10);
}

static void close_intruder(struct intruder *x)
{
    munmap(x->memory, oct_shm_file_bytes(SLOTS, (uint64_t)256 << 10));
    close(x->fd);
    zmq_close(x->socket);
    zmq_ctx_term(x->context);
}

static void set_word(struct intruder *x, uint32_t slot, uint64_t word)
{
    atomic_store((_Atomic(uint64_t) *)(void *)(x->memory + OCT_SHM_PAGE) + slot, word);
}

static uint64_t get_word(struct intruder *x, uint32_t slot)
{
    return atomic_load((_Atomic(uint64_t) *)(void *)(x->memory + OCT_SHM_PAGE) + slot);
}

/* A message is counted before its slot is given back. */
static void wait_free(struct intruder *x, uint32_t slot)
{
    uint64_t until = oct_clock_ns() + TEST_PATIENCE_NS;
    while (get_word(x, slot) != 0) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
}

static void push(struct intruder *x, const struct oct_lines_header *h, const void *second,
                 size_t bytes)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    oct_lines_encode(h, header);
    assert_int_equal(zmq_send(x->socket, header, sizeof(header), ZMQ_SNDMORE), sizeof(header));
    assert_int_equal(zmq_send(x->socket, second, bytes, 0), (int)bytes);
}

RIG_TEST(descriptors_are_believed_only_where_the_slot_agrees)
{
    struct intruder x;
    uint8_t d[OCT_SHM_DESCRIPTOR_BYTES + 1] = {0};
    open_intruder(&x, r);
    struct oct_lines_header h = {
        .n_lines = 1, .n_samples = N, .format = OCT_LINES_U16, .epoch = 7, .flags = 1};
    uint64_t tag = oct_shm_tag(7, 0);
    struct oct_shm_descriptor where = {.instance = x.header.instance, .slot = 3};
    const atomic_uint_fast64_t *slot_bad =
        &oct_ingest_counts(r->ingest)->messages_bad[OCT_BAD_SLOT];

    oct_shm_descriptor_encode(&where, d);
    push(&x, &h, d, 16); /* the slot holds nothing */
    wait_for(slot_bad, 1);
    set_word(&x, 3, tag);
    push(&x, &h, d, 15);
    push(&x, &h, d, 17);
    push(&x, &h, d, 0);
    d[12] = 1;
    push(&x, &h, d, 16);
    where.instance++;
    oct_shm_descriptor_encode(&where, d);
    push(&x, &h, d, 16);
    where.instance--;
    static const uint32_t beyond[] = {SLOTS, SLOTS + 1, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        where.slot = beyond[i];
        oct_shm_descriptor_encode(&where, d);
        push(&x, &h, d, 16);
    }
    where.slot = 3;
    oct_shm_descriptor_encode(&where, d);
    h.epoch = 8; /* another driver's slot */
    push(&x, &h, d, 16);
    h.epoch = 7, h.sequence = 1; /* another message's */
    push(&x, &h, d, 16);
    wait_for(slot_bad, 12);
    assert_int_equal(get_word(&x, 3), tag); /* nobody took it */

    h.sequence = 0;
    const struct oct_lines_header right = h;
    h.n_lines = 400; /* more than a slot holds */
    push(&x, &h, d, 16);
    wait_for(&oct_ingest_counts(r->ingest)->messages_bad[OCT_BAD_PAYLOAD_SIZE], 1);
    wait_free(&x, 3); /* refused, and yet given back */
    set_word(&x, 3, tag);
    h.n_lines = UINT32_MAX, h.n_samples = OCT_MAX_SAMPLES;
    push(&x, &h, d, 16);
    wait_for(&oct_ingest_counts(r->ingest)->messages_bad[OCT_BAD_PAYLOAD_SIZE], 2);
    wait_free(&x, 3);
    set_word(&x, 3, tag);
    h.n_lines = 1, h.n_samples = N + 1;
    push(&x, &h, d, 16);
    wait_for(&oct_ingest_counts(r->ingest)->messages_bad[OCT_BAD_SAMPLES], 1);
    wait_free(&x, 3);
    h = right, h.n_lines = 0, h.sequence = 5;
    push(&x, &h, d, 16); /* no lines, but a descriptor */
    wait_for(&oct_ingest_counts(r->ingest)->messages_bad[OCT_BAD_PAYLOAD_SIZE], 3);
    assert_int_equal(oct_ingest_counts(r->ingest)->messages, 0);

    set_word(&x, 3, tag);
    push(&x, &right, d, 16);
    wait_for(&oct_ingest_counts(r->ingest)->messages, 1);
    push(&x, &right, d, 16); /* once more: the slot is free now */
    wait_for(slot_bad, 13);
    assert_int_equal(oct_ingest_counts(r->ingest)->lines_received, 1);
    close_intruder(&x);
}

/* Well-formed or not. */
static uint64_t n_taken(const struct rig *r)
{
    const struct oct_ingest_counts *c = oct_ingest_counts(r->ingest);
    uint64_t n = c->messages;
    for (int reason = 0; reason < OCT_N_BAD; reason++)
        n += c->messages_bad[reason];
    return n;
}

/* Any header, any descriptor, words and header page overwritten all the time. */
RIG_TEST(garbage_of_every_kind_is_survived)
{
    struct intruder x;
    struct dice dice = {1};
    open_intruder(&x, r);
    for (int i = 0; i < 20000; i++) {
        struct oct_lines_header h = {
            .sequence = dice_below(&dice, 4),
            .first_line = dice_below(&dice, 3 * M),
            .n_lines = dice_below(&dice, 400),
            .n_samples = dice_below(&dice, 8) ? N : dice_below(&dice, 2000),
            .format = (uint16_t)dice_below(&dice, 4),
            .flags = (uint16_t)dice_below(&dice, 4),
            .epoch = dice_below(&dice, 3),
            .crc32c = dice_below(&dice, 8) ? 0 : 5,
        };
        struct oct_shm_descriptor where = {
            .instance = x.header.instance + (dice_below(&dice, 16) == 0),
            .slot = dice_below(&dice, SLOTS + 1),
        };
        uint8_t d[OCT_SHM_DESCRIPTOR_BYTES];
        oct_shm_descriptor_encode(&where, d);
        if (dice_below(&dice, 4) && where.slot < SLOTS)
            set_word(&x, where.slot, oct_shm_tag(h.epoch, h.sequence));
        x.memory[dice_below(&dice, 8192)] = (unsigned char)dice_roll(&dice);
        push(&x, &h, d, dice_below(&dice, 16) ? 16 : 9);
        uint64_t slot;
        while (oct_ring_read(r->reader, 0, &slot) == OCT_OK)
            oct_ring_release(r->reader);
        /* Not far ahead: words that are overwritten before anybody looks make nothing but junk. */
        uint64_t until = oct_clock_ns() + 60000000000u;
        while (n_taken(r) + 4 < (uint64_t)i) {
            assert_true(oct_clock_ns() < until);
            while (oct_ring_read(r->reader, 1000, &slot) == OCT_OK)
                oct_ring_release(r->reader);
        }
    }
    close_intruder(&x);
    /* The memory's header is ruined: the daemon must be able to end all the same. */
    uint64_t slot;
    while (oct_ring_read(r->reader, 200000, &slot) == OCT_OK)
        oct_ring_release(r->reader);
    assert_true(oct_ingest_counts(r->ingest)->messages > 100);
    assert_true(bad_of(r, OCT_BAD_SLOT) > 100);
}

/* Of the file that has the name now; 0: none has. */
static off_t file_bytes(const struct rig *r)
{
    struct stat st = {.st_size = 0};
    int fd = shm_open(r->object, O_RDWR, 0);
    if (fd < 0)
        return 0;
    assert_int_equal(fstat(fd, &st), 0);
    close(fd);
    return st.st_size;
}

/* A driver that shortens the file takes the pages away under the daemon's hands. */
RIG_TEST(a_file_cut_short_costs_that_file_and_not_the_daemon)
{
    struct intruder x;
    uint16_t *lines = malloc((size_t)M * N * sizeof(uint16_t));
    assert_non_null(lines);
    open_intruder(&x, r);
    const struct oct_client_options options = {.wait_ms = TEST_PATIENCE_MS};
    struct oct_client *client = connect_to(r, &options);
    fill(lines, 0, M);
    assert_int_equal(oct_client_send(client, lines, M, 0), OCT_CLIENT_OK);
    expect_bscan(r, 0);
    /* It ends at once, so that the first may go on. */
    const struct oct_lines_header h = {.n_lines = 1,
                                       .n_samples = N,
                                       .format = OCT_LINES_U16,
                                       .flags = OCT_LINES_STARTS | OCT_LINES_ENDS,
                                       .epoch = 7,
                                       .sequence = 9};
    const struct oct_shm_descriptor where = {.instance = x.header.instance, .slot = 2};
    uint8_t d[OCT_SHM_DESCRIPTOR_BYTES];
    oct_shm_descriptor_encode(&where, d);
    set_word(&x, 2, oct_shm_tag(7, 9));
    assert_int_equal(ftruncate(x.fd, 2 * OCT_SHM_PAGE), 0); /* header and words, no lines */
    push(&x, &h, d, 16);
    uint64_t until = oct_clock_ns() + TEST_PATIENCE_NS, messages = 0;
    /* Zeros, taken as they are; or the hole was seen before the message was. */
    while (oct_ingest_counts(r->ingest)->acquisitions < 2 && bad_of(r, OCT_BAD_SLOT) == 0) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
    close_intruder(&x);
    fill(lines, M, M);
    while (file_bytes(r) <= 2 * OCT_SHM_PAGE) /* the client would run into the same hole */
        assert_true(oct_clock_ns() < until);
    /* Its old file is gone: the client finds the new one. */
    while (messages < 3) {
        assert_int_equal(oct_client_send(client, lines, M, 0), OCT_CLIENT_OK);
        sleep_us(20000);
        assert_true(oct_clock_ns() < until);
        messages = oct_ingest_counts(r->ingest)->messages;
    }
    assert_int_equal(oct_client_close(client), 0);
    free(lines);
}

RIG_TEST(slots_of_a_dead_driver_come_back_and_those_of_a_living_one_stay)
{
    struct intruder x;
    struct oct_shm_driver *living, *dead;
    uint32_t slot;
    uint8_t d[OCT_SHM_DESCRIPTOR_BYTES];
    open_intruder(&x, r);
    assert_int_equal(oct_shm_driver_create(&living, r->name, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_create(&dead, r->name, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_attach(living, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_attach(dead, NULL), OCT_OK);
    assert_int_equal(oct_shm_driver_claim(living, &slot), OCT_OK);
    assert_int_equal(slot, 0); /* held, and written into for as long as it likes */
    for (uint32_t k = 1; k < SLOTS; k++) {
        assert_int_equal(oct_shm_driver_claim(dead, &slot), OCT_OK);
        assert_int_equal(slot, k); /* no slot has two owners */
    }
    assert_int_equal(oct_shm_driver_claim(dead, &slot), OCT_E_AGAIN);
    assert_int_equal(oct_shm_driver_claim(living, &slot), OCT_E_AGAIN);
    for (uint32_t k = 4; k < SLOTS; k++)
        oct_shm_driver_post(dead, k, 0x201 + 2 * k, 1, d); /* and the messages never go out */
    oct_shm_driver_destroy(dead); /* what the system does with the locks of a killed process */
    for (uint32_t k = 1; k < 4; k++) {
        assert_int_equal(oct_shm_driver_claim(living, &slot), OCT_OK);
        assert_int_equal(slot, k); /* it died writing: free at once */
    }
    assert_int_equal(oct_shm_driver_claim(living, &slot), OCT_E_AGAIN);
    uint64_t until = oct_clock_ns() + TEST_PATIENCE_NS;
    while (oct_ingest_reclaimed(r->ingest) < SLOTS - 4) {
        assert_true(oct_clock_ns() < until);
        sleep_us(10000);
    }
    assert_int_equal(oct_shm_driver_claim(living, &slot), OCT_OK);
    assert_int_equal(slot, 4);
    assert_int_equal(get_word(&x, 5), 0);
    oct_shm_driver_destroy(living);
    close_intruder(&x);
}
