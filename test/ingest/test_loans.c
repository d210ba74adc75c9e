/* B-scans that stay where they came: messages and shared slots as places of the raw ring, through
 * the real client and ingest thread. */
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/ingest.h"
#include "pipeline/wire/shm_layout.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zmq.h>

enum { N = 512, M = 64, V = 4, RING = 6, QUEUE = 4, LINES = M * N };

struct rig {
    char endpoint[64], object[OCT_SHM_PATH_BYTES];
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    void *context;
    struct oct_ingest *ingest;
    struct oct_client *client;
    uint16_t *lines;
    unsigned slot_bscans;
    const struct oct_memory_ops *memory;
};

/* slot_bscans and memory are the caller's. */
static void open_rig_with(struct rig *r, bool shared, bool lend)
{
    static unsigned n_made;
    char name[40], error[256];
    snprintf(name, sizeof(name), "loans-%d-%u", (int)getpid(), n_made++);
    oct_shm_object_of(name, r->object);
    if (shared)
        snprintf(r->endpoint, sizeof(r->endpoint), "shm://%s", name);
    else
        snprintf(r->endpoint, sizeof(r->endpoint), "tcp://127.0.0.1:*");
    assert_int_equal(oct_geometry_init(&r->geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    r->ring = open_ring(RING, oct_raw_slot_bytes(&r->geometry));
    r->reader = add_reader(r->ring, true, 0);
    r->context = zmq_ctx_new();
    const struct oct_ingest_options options = {.endpoint = r->endpoint,
                                               .queue_messages = QUEUE,
                                               .max_message_bytes = 1 << 20,
                                               .slot_bscans = r->slot_bscans,
                                               .lend = lend,
                                               .memory = r->memory,
                                               .open = true};
    must(oct_ingest_create(&r->ingest, r->context, &r->geometry, r->ring, &options, &failure));
    const struct oct_client_options patient = {.wait_ms = 10000, .linger_ms = 10000};
    if (oct_client_connect(&r->client, oct_ingest_endpoint(r->ingest), N, &patient, error,
                           sizeof(error)))
        fail_msg("%s", error);
    r->lines = malloc(LINES * sizeof(uint16_t));
    assert_non_null(r->lines);
}

static void open_rig(struct rig *r, bool shared, bool lend)
{
    memset(r, 0, sizeof(*r));
    open_rig_with(r, shared, lend);
}

static void close_rig(struct rig *r)
{
    if (r->client)
        assert_int_equal(oct_client_close(r->client), 0);
    oct_ingest_destroy(r->ingest);
    zmq_ctx_term(r->context);
    oct_ring_destroy(r->ring);
    free(r->lines);
    assert_int_equal(shm_open(r->object, O_RDWR, 0), -1); /* nothing is left */
}

static uint16_t sample_at(uint64_t bscan, size_t i)
{
    return (uint16_t)(bscan * 7919 + i * 31 + 1);
}

static void send_bscan(struct rig *r, uint64_t b)
{
    for (size_t i = 0; i < LINES; i++)
        r->lines[i] = sample_at(b, i);
    assert_int_equal(oct_client_send(r->client, r->lines, M, b), OCT_CLIENT_OK);
}

/* The reader's next B-scan, checked; *borrowed: it does not lie in the ring. Not released. */
static const uint16_t *read_bscan(struct rig *r, uint64_t b, bool *borrowed)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(r->reader, 10000000, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(r->ring, slot, &r->geometry);
    assert_int_equal(frame->info.missing_lines, 0);
    for (size_t i = 0; i < LINES; i++)
        assert_int_equal(frame->spectra[i], sample_at(b, i));
    for (uint32_t j = 0; j < M; j++)
        assert_int_equal(frame->line_valid[j], 1);
    *borrowed = frame->spectra != oct_raw_slot_spectra(r->ring, slot, &r->geometry);
    return frame->spectra;
}

/* ---- the shared memory as a stranger sees it ---- */

struct memory {
    int fd;
    unsigned char *at;
    struct oct_shm_header header;
};

static void look_into(struct memory *m, const struct rig *r)
{
    uint64_t until = oct_clock_ns() + 10000000000u;
    for (;;) { /* it may be being made just now */
        m->fd = shm_open(r->object, O_RDWR, 0);
        if (m->fd >= 0 && pread(m->fd, &m->header, sizeof(m->header), 0) == sizeof(m->header) &&
            memcmp(m->header.magic, OCT_SHM_MAGIC, sizeof(m->header.magic)) == 0)
            break;
        close(m->fd);
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
    m->at = mmap(NULL, OCT_SHM_PAGE * 2, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    assert_ptr_not_equal(m->at, MAP_FAILED);
}

static void look_away(struct memory *m)
{
    munmap(m->at, OCT_SHM_PAGE * 2);
    close(m->fd);
}

static _Atomic(uint64_t) *words_of(const struct memory *m)
{
    return (_Atomic(uint64_t) *)(void *)(m->at + OCT_SHM_PAGE);
}

static unsigned count_words(const struct memory *m, uint64_t word)
{
    unsigned n = 0;
    for (uint32_t k = 0; k < m->header.n_slots; k++)
        n += atomic_load(words_of(m) + k) == word;
    return n;
}

static void wait_for_words(const struct memory *m, uint64_t word, unsigned n)
{
    uint64_t until = oct_clock_ns() + 10000000000u;
    while (count_words(m, word) != n) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
}

/* ---- cases ---- */

/* Many times round the ring; the reader holds several while others come. */
TEST(bscans_are_lent_and_given_back)
{
    for (int shared = 0; shared < 2; shared++) {
        struct rig r;
        bool borrowed[2];
        open_rig(&r, shared, true);
        for (uint64_t b = 0; b < 10 * RING; b += 2) {
            send_bscan(&r, b);
            send_bscan(&r, b + 1);
            const uint16_t *first = read_bscan(&r, b, &borrowed[0]);
            read_bscan(&r, b + 1, &borrowed[1]);
            assert_true(borrowed[0] && borrowed[1]);
            assert_int_equal(first[LINES - 1], sample_at(b, LINES - 1)); /* still there */
            oct_ring_release(r.reader);
            oct_ring_release(r.reader);
        }
        close_rig(&r);
    }
}

TEST(without_leave_to_lend_all_lines_are_copied)
{
    for (int shared = 0; shared < 2; shared++) {
        struct rig r;
        bool borrowed;
        open_rig(&r, shared, false);
        for (uint64_t b = 0; b < 2 * RING; b++) {
            send_bscan(&r, b);
            read_bscan(&r, b, &borrowed);
            assert_false(borrowed);
            oct_ring_release(r.reader);
        }
        close_rig(&r);
    }
}

/* A slot that borrowed is filled by copies when it comes round, and the other way about. */
TEST(blocks_that_are_not_one_bscan_are_copied)
{
    for (int shared = 0; shared < 2; shared++) {
        struct rig r;
        bool borrowed;
        open_rig(&r, shared, true);
        for (uint64_t b = 0; b < 10 * RING; b++) {
            bool split = b % 5 == 2 || b % 7 == 3;
            for (size_t i = 0; i < LINES; i++)
                r.lines[i] = sample_at(b, i);
            uint32_t n = split ? M / 3 : M;
            assert_int_equal(oct_client_send(r.client, r.lines, n, b), OCT_CLIENT_OK);
            if (split)
                assert_int_equal(oct_client_send(r.client, r.lines + (size_t)n * N, M - n, b),
                                 OCT_CLIENT_OK);
            read_bscan(&r, b, &borrowed);
            assert_int_equal(borrowed, !split);
            oct_ring_release(r.reader);
        }
        close_rig(&r);
    }
}

/* A block of more B-scans than the ring has slots: the first are given back while the last wait for
 * one, and its memory stays until all have been read. In place, where memory is shared. */
TEST(each_whole_bscan_of_a_block_is_lent)
{
    enum { BLOCK = 2 * RING + 1, BLOCKS = 20 };
    for (int shared = 0; shared < 2; shared++) {
        struct rig r = {.slot_bscans = BLOCK};
        bool borrowed;
        open_rig_with(&r, shared, true);
        for (uint64_t block = 0, b = 0; block < BLOCKS; block++) {
            uint16_t *lines;
            assert_int_equal(oct_client_borrow(r.client, BLOCK * M, &lines), OCT_CLIENT_OK);
            for (size_t i = 0; i < BLOCK * LINES; i++)
                lines[i] = sample_at(b + i / LINES, i % LINES);
            assert_int_equal(oct_client_send_borrowed(r.client, BLOCK * M, 1), OCT_CLIENT_OK);
            for (int k = 0; k < BLOCK; k++, b++) {
                read_bscan(&r, b, &borrowed);
                assert_true(borrowed);
                oct_ring_release(r.reader);
            }
        }
        assert_int_equal(oct_ingest_counts(r.ingest)->bscans_dropped, 0);
        close_rig(&r);
    }
}

/* A block that begins and ends within B-scans: those in between are lent, the torn ones put
 * together. */
TEST(torn_bscans_of_a_block_are_copied)
{
    enum { BLOCK = 3 };
    for (int shared = 0; shared < 2; shared++) {
        struct rig r = {.slot_bscans = BLOCK};
        uint16_t *lines = malloc(BLOCK * LINES * sizeof(uint16_t));
        bool borrowed;
        assert_non_null(lines);
        open_rig_with(&r, shared, true);
        assert_int_equal(oct_client_send(r.client, memset(lines, 0, LINES), M / 2, 0), 0);
        for (uint64_t b = 0; b < 10 * BLOCK; b += BLOCK) {
            for (size_t i = 0; i < BLOCK * LINES; i++) {
                const size_t at = i + LINES / 2;
                lines[i] = sample_at(b + at / LINES, at % LINES);
            }
            assert_int_equal(oct_client_send(r.client, lines, BLOCK * M, b), OCT_CLIENT_OK);
            for (uint64_t k = 0; k < BLOCK; k++) {
                uint64_t slot;
                if (b + k > 0) { /* the first half of the first one is none of ours */
                    read_bscan(&r, b + k, &borrowed);
                    assert_int_equal(borrowed, k > 0);
                } else {
                    assert_int_equal(oct_ring_read(r.reader, 10000000, &slot), OCT_OK);
                }
                oct_ring_release(r.reader);
            }
        }
        free(lines);
        close_rig(&r);
    }
}

/* ---- memory that a device must have adopted ---- */

static struct {
    unsigned n_adopted, n_released;
    bool refuses;
    void *memory;
    size_t bytes;
} device;

static bool adopt(void *memory, size_t bytes)
{
    device.n_adopted += !device.refuses;
    device.memory = memory;
    device.bytes = bytes;
    return !device.refuses;
}

static void release(void *memory, size_t bytes)
{
    assert_ptr_equal(memory, device.memory);
    assert_int_equal(bytes, device.bytes);
    assert_int_equal(munmap(memory, bytes), 0);
    device.n_released++;
}

static const struct oct_memory_ops adopting = {.adopt = adopt, .release = release};

TEST(for_a_device_lines_are_lent_where_it_has_adopted_them)
{
    for (int way = 0; way < 3; way++) { /* a socket, shared memory, the same refused */
        struct rig r = {.memory = &adopting};
        bool borrowed;
        memset(&device, 0, sizeof(device));
        device.refuses = way == 2;
        open_rig_with(&r, way > 0, true);
        for (uint64_t b = 0; b < 2 * RING; b++) {
            send_bscan(&r, b);
            const uint16_t *lines = read_bscan(&r, b, &borrowed);
            assert_int_equal(borrowed, way == 1);
            assert_true(way != 1 || ((const char *)lines > (char *)device.memory &&
                                     (const char *)lines < (char *)device.memory + device.bytes));
            oct_ring_release(r.reader);
        }
        close_rig(&r);
        assert_int_equal(device.n_adopted, way == 1);
        assert_int_equal(device.n_released, way == 1);
    }
}

/* The ring stays full: what is lent is not given back under its reader, and the driver goes on with
 * the slots of the queue until they are full, too. */
TEST(a_full_ring_keeps_what_it_borrowed)
{
    struct rig r;
    struct memory m;
    bool borrowed;
    open_rig(&r, true, true);
    look_into(&m, &r);
    assert_int_equal(m.header.n_slots, RING + QUEUE);
    for (uint64_t b = 0; b < RING; b++)
        send_bscan(&r, b);
    wait_for_words(&m, OCT_SHM_KEPT, RING);
    assert_int_equal(count_words(&m, 0), QUEUE);
    struct oct_client_counters c;
    oct_client_get_counters(r.client, &c);
    assert_int_equal(c.messages_queued, 0); /* those that are kept were taken */
    for (uint64_t b = 0; b < RING; b++)
        read_bscan(&r, b, &borrowed);
    wait_for_words(&m, OCT_SHM_KEPT, RING); /* read, not released */
    for (uint64_t b = 0; b < RING; b++)
        oct_ring_release(r.reader);
    wait_for_words(&m, OCT_SHM_KEPT, 0); /* with no other message to move them */
    assert_int_equal(count_words(&m, 0), RING + QUEUE);
    look_away(&m);
    close_rig(&r);
}

/* A stranger frees a slot under the ring and offers it again: it is not lent twice. */
TEST(a_slot_that_is_lent_is_not_taken_again)
{
    struct rig r;
    struct memory m;
    bool borrowed;
    uint32_t kept = 0;
    uint8_t header[OCT_LINES_HEADER_BYTES], descriptor[OCT_SHM_DESCRIPTOR_BYTES];
    char socket_name[OCT_SHM_PATH_BYTES];
    open_rig(&r, true, true);
    look_into(&m, &r);
    send_bscan(&r, 0);
    wait_for_words(&m, OCT_SHM_KEPT, 1);
    while (atomic_load(words_of(&m) + kept) != OCT_SHM_KEPT)
        kept++;
    const struct oct_lines_header h = {.n_lines = M,
                                       .n_samples = N,
                                       .format = OCT_LINES_U16,
                                       .epoch = 3,
                                       .flags = OCT_LINES_STARTS};
    const struct oct_shm_descriptor where = {.instance = m.header.instance, .slot = kept};
    oct_lines_encode(&h, header);
    oct_shm_descriptor_encode(&where, descriptor);
    atomic_store(words_of(&m) + kept, oct_shm_tag(3, 0));
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
    oct_shm_socket_of(r.endpoint + strlen(OCT_SHM_SCHEME), socket_name);
    assert_int_equal(zmq_connect(socket, socket_name), 0);
    assert_int_equal(zmq_send(socket, header, sizeof(header), ZMQ_SNDMORE), sizeof(header));
    assert_int_equal(zmq_send(socket, descriptor, sizeof(descriptor), 0), sizeof(descriptor));
    uint64_t until = oct_clock_ns() + 10000000000u;
    while (oct_ingest_counts(r.ingest)->messages_bad[OCT_BAD_SLOT] == 0) {
        assert_true(oct_clock_ns() < until);
        sleep_us(1000);
    }
    read_bscan(&r, 0, &borrowed);
    oct_ring_release(r.reader);
    wait_for_words(&m, 0, m.header.n_slots); /* given back, whatever the word had become */
    zmq_close(socket);
    zmq_ctx_term(context);
    look_away(&m);
    close_rig(&r);
}

/* The reader, not the ingest thread, runs into the hole: zeros, and another memory is made, while
 * the old one is still lent. */
TEST(a_file_cut_short_under_a_reader_costs_its_lines_alone)
{
    struct rig r;
    struct memory old, now;
    uint64_t slot, until = oct_clock_ns() + 20000000000u;
    bool borrowed;
    open_rig(&r, true, true);
    look_into(&old, &r);
    for (uint64_t b = 0; b < 3; b++)
        send_bscan(&r, b);
    wait_for_words(&old, OCT_SHM_KEPT, 3);
    assert_int_equal(oct_client_close(r.client), 0); /* its own memory would be gone as well */
    r.client = NULL;
    assert_int_equal(ftruncate(old.fd, 2 * OCT_SHM_PAGE), 0);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(oct_ring_read(r.reader, 10000000, &slot), OCT_OK);
        const struct oct_raw_frame *frame = oct_raw_slot(r.ring, slot, &r.geometry);
        for (size_t i = 0; i < LINES; i++)
            assert_int_equal(frame->spectra[i], 0);
    }
    for (;; look_away(&now)) {
        assert_true(oct_clock_ns() < until);
        look_into(&now, &r);
        if (now.header.instance != old.header.instance)
            break;
        sleep_us(1000);
    }
    char error[256];
    const struct oct_client_options patient = {.wait_ms = 10000, .linger_ms = 10000};
    assert_int_equal(oct_client_connect(&r.client, r.endpoint, N, &patient, error, sizeof(error)),
                     0);
    send_bscan(&r, 0); /* a client of its own: a new acquisition, from line 0 */
    for (int b = 0; b < 3; b++)
        oct_ring_release(r.reader);
    read_bscan(&r, 0, &borrowed);
    assert_true(borrowed);
    oct_ring_release(r.reader);
    look_away(&now);
    look_away(&old);
    close_rig(&r);
}

static bool count_lent(void *owner, uint64_t slot)
{
    (void)slot;
    ++*(unsigned *)owner;
    return true;
}

static void give_back_nothing(void *owner, uint64_t slot)
{
    (void)owner;
    (void)slot;
}

/* One whole B-scan from `payload`; how many times it was lent. */
static unsigned take_one(uint32_t n_lines, uint16_t format, const unsigned char *payload)
{
    struct oct_geometry g;
    struct oct_assembler *assembler;
    unsigned n_lent = 0;
    uint64_t slot;
    uint8_t header[OCT_LINES_HEADER_BYTES];
    assert_int_equal(oct_geometry_init(&g, N, n_lines, V, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    struct oct_ring *ring = open_ring(RING, oct_raw_slot_bytes(&g));
    struct oct_ring_reader *reader = add_reader(ring, true, 0);
    assert_int_equal(oct_assembler_create(&assembler, &g, ring, 0, NULL), OCT_OK);
    oct_assembler_set_lender(assembler,
                             &(struct oct_lender){&n_lent, count_lent, give_back_nothing});
    const struct oct_lines_header h = {
        .n_lines = n_lines, .n_samples = N, .format = format, .flags = OCT_LINES_STARTS};
    oct_lines_encode(&h, header);
    size_t bytes = n_lines * (size_t)oct_samples_bytes(format, N);
    assert_int_equal(oct_assembler_take(assembler, header, sizeof(header), payload, bytes, 1), 0);
    assert_int_equal(oct_ring_read(reader, 0, &slot), OCT_OK);
    const struct oct_raw_frame *frame = oct_raw_slot(ring, slot, &g);
    assert_int_equal(frame->format, format);
    assert_true(format != OCT_LINES_U16 || (uintptr_t)frame->spectra % 2 == 0);
    assert_memory_equal(frame->spectra, payload, bytes);
    oct_assembler_destroy(assembler);
    oct_ring_destroy(ring);
    return n_lent;
}

TEST(lines_that_cannot_be_read_in_place_or_are_few_are_copied)
{
    unsigned char *bytes = malloc(2 * LINES + 2);
    assert_non_null(bytes);
    for (size_t i = 0; i < 2 * LINES + 2; i++)
        bytes[i] = (unsigned char)(i * 37 + i / 256);
    assert_int_equal(take_one(M, OCT_LINES_U16, bytes), 1);
    assert_int_equal(take_one(M, OCT_LINES_U16, bytes + 1), 0);
    assert_int_equal(take_one(M, OCT_LINES_U8, bytes + 1), 1);
    assert_int_equal(take_one(M, OCT_LINES_12P, bytes + 1), 1);
    assert_int_equal(take_one(OCT_LEND_BYTES / (2 * N), OCT_LINES_U16, bytes), 1);
    assert_int_equal(take_one(OCT_LEND_BYTES / (2 * N) - 1, OCT_LINES_U16, bytes), 0);
    free(bytes);
}
