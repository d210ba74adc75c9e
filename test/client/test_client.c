/* The camera driver's client against a PULL socket in the same program, and the line store that
 * feeds it in `octctl replay`. */
#include "octd/client.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/wire/wire.h"
#include "test/rig/tap.h"
#include "tools/files/line_store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { N = 16 };

struct receiver {
    void *context, *socket;
    char endpoint[512];
};

static void open_receiver(struct receiver *r, int queue)
{
    static unsigned n_opened;
    int no_linger = 0, timeout_ms = TEST_PATIENCE_MS;
    snprintf(r->endpoint, sizeof(r->endpoint), "ipc://lines-%u", n_opened++);
    r->context = zmq_ctx_new();
    r->socket = zmq_socket(r->context, ZMQ_PULL);
    assert_int_equal(zmq_setsockopt(r->socket, ZMQ_RCVHWM, &queue, sizeof(queue)), 0);
    assert_int_equal(zmq_setsockopt(r->socket, ZMQ_LINGER, &no_linger, sizeof(int)), 0);
    assert_int_equal(zmq_setsockopt(r->socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof(int)), 0);
    assert_int_equal(zmq_bind(r->socket, r->endpoint), 0);
}

static void close_receiver(struct receiver *r)
{
    zmq_close(r->socket);
    zmq_ctx_term(r->context);
}

/* Receives one message into header and payload (of room samples); returns the payload's bytes. */
static size_t receive(struct receiver *r, struct oct_lines_header *header, uint16_t *payload,
                      size_t room)
{
    uint8_t bytes[128];
    int more = 0;
    size_t more_bytes = sizeof(more);
    int n = zmq_recv(r->socket, bytes, sizeof(bytes), 0);
    assert_true(n >= 0);
    assert_int_equal(oct_lines_decode(header, bytes, (size_t)n), OCT_BAD_NONE);
    zmq_getsockopt(r->socket, ZMQ_RCVMORE, &more, &more_bytes);
    assert_true(more);
    n = zmq_recv(r->socket, payload, room * sizeof(uint16_t), 0);
    assert_true(n >= 0 && (size_t)n <= room * sizeof(uint16_t));
    zmq_getsockopt(r->socket, ZMQ_RCVMORE, &more, &more_bytes);
    assert_false(more);
    assert_int_equal(oct_lines_payload_bytes(header), n);
    return (size_t)n;
}

static struct oct_client *connect_to(struct receiver *r, const struct oct_client_options *options)
{
    struct oct_client *client;
    char error[256];
    if (oct_client_connect(&client, r->endpoint, N, options, error, sizeof(error)))
        fail_msg("%s", error);
    return client;
}

TEST(blocks_arrive_numbered_with_flags_and_check_sum)
{
    struct receiver r;
    open_receiver(&r, 100);
    struct oct_client *client = connect_to(&r, &(struct oct_client_options){.crc = true});
    uint16_t lines[6][N], got[6 * N];
    for (unsigned i = 0; i < 6 * N; i++)
        lines[i / N][i % N] = (uint16_t)(i * 977);
    assert_int_equal(oct_client_wait_connected(client, TEST_PATIENCE_MS), OCT_CLIENT_OK);
    oct_client_start(client);
    assert_int_equal(oct_client_send(client, lines[0], 6, 11), OCT_CLIENT_OK);
    oct_client_skip(client, 4);
    assert_int_equal(oct_client_next_line(client), 10);
    assert_int_equal(oct_client_send(client, lines[1], 2, 22), OCT_CLIENT_OK);
    assert_int_equal(oct_client_end(client), OCT_CLIENT_OK);
    oct_client_start(client);
    oct_client_end_with_next(client);
    assert_int_equal(oct_client_send(client, lines[2], 1, 33), OCT_CLIENT_OK);

    const struct oct_lines_header expected[] = {
        {.sequence = 0, .time_ns = 11, .first_line = 0, .n_lines = 6, .flags = 1},
        {.sequence = 1, .time_ns = 22, .first_line = 10, .n_lines = 2, .flags = 0},
        {.sequence = 2, .time_ns = 0, .first_line = 12, .n_lines = 0, .flags = 2},
        {.sequence = 3, .time_ns = 33, .first_line = 0, .n_lines = 1, .flags = 3},
    };
    const uint16_t *payloads[] = {lines[0], lines[1], NULL, lines[2]};
    uint32_t epoch = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct oct_lines_header h;
        size_t n_bytes = receive(&r, &h, got, 6 * N);
        epoch = i == 0 ? h.epoch : epoch;
        assert_int_equal(h.sequence, expected[i].sequence);
        assert_int_equal(h.time_ns, expected[i].time_ns);
        assert_int_equal(h.first_line, expected[i].first_line);
        assert_int_equal(h.n_lines, expected[i].n_lines);
        assert_int_equal(h.n_samples, N);
        assert_int_equal(h.flags, expected[i].flags);
        assert_int_equal(h.format, OCT_LINES_U16);
        assert_int_equal(h.epoch, epoch);
        assert_int_equal(h.crc32c, n_bytes ? oct_crc32c(got, n_bytes) : 0);
        if (n_bytes)
            assert_memory_equal(got, payloads[i], n_bytes);
    }
    struct oct_client_counters c;
    assert_int_equal(oct_client_flush(client, TEST_PATIENCE_MS), OCT_CLIENT_OK);
    oct_client_get_counters(client, &c);
    assert_int_equal(c.messages_sent, 4);
    assert_int_equal(c.lines_sent, 9);
    assert_int_equal(c.lines_skipped, 4);
    assert_int_equal(c.messages_queued, 0);
    assert_int_equal(oct_client_close(client), 0);
    close_receiver(&r);
}

TEST(a_driver_that_follows_begins_anew_in_an_epoch_that_was_given)
{
    static const uint16_t line[N] = {7};
    const uint32_t given[][2] = {{500, 507}, {500, 507}, {9, 9}, {9, 9}, {0, UINT32_MAX}};
    uint32_t before = 0;
    uint16_t got[N];
    struct receiver r;
    open_receiver(&r, 100);
    struct oct_client *client = connect_to(&r, NULL);
    struct oct_lines_header h;
    assert_int_equal(oct_client_send(client, line, 1, 1), OCT_CLIENT_OK);
    receive(&r, &h, got, N);
    assert_int_equal(h.flags, OCT_LINES_STARTS);
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        oct_client_follow(client, given[i][0], given[i][1]);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(oct_client_send(client, line, 1, 1), OCT_CLIENT_OK);
            receive(&r, &h, got, N);
            assert_int_equal(h.flags, OCT_LINES_FOLLOWS | (k ? 0 : OCT_LINES_STARTS));
            assert_int_equal(h.sequence, k);
            assert_int_equal(h.first_line, k);
            assert_true(h.epoch >= given[i][0] && h.epoch <= given[i][1]);
            assert_true(k ? h.epoch == before : h.epoch != before || i == 3);
            before = h.epoch;
        }
        assert_int_equal(oct_client_end(client), OCT_CLIENT_OK);
        receive(&r, &h, got, N);
        assert_int_equal(h.flags, OCT_LINES_FOLLOWS | OCT_LINES_ENDS);
    }
    assert_int_equal(oct_client_close(client), 0);
    close_receiver(&r);
}

TEST(packed_lines_travel_as_they_are)
{
    static const uint8_t lines[2][N / 2 * 3] = {{1, 2, 3, 4}, {5, 6}};
    uint16_t got[2 * N];
    struct receiver r;
    open_receiver(&r, 100);
    struct oct_client *client =
        connect_to(&r, &(struct oct_client_options){.format = OCT_CLIENT_12P, .crc = true});
    struct oct_lines_header h;
    uint16_t *borrowed;
    assert_int_equal(oct_client_send(client, lines, 2, 1), OCT_CLIENT_OK);
    assert_int_equal(receive(&r, &h, got, 2 * N), sizeof(lines));
    assert_int_equal(h.format, OCT_LINES_12P);
    assert_int_equal(h.n_samples, N);
    assert_int_equal(h.crc32c, oct_crc32c(lines, sizeof(lines)));
    assert_memory_equal(got, lines, sizeof(lines));
    assert_int_equal(oct_client_borrow(client, 2, &borrowed), OCT_CLIENT_OK);
    memcpy(borrowed, lines, sizeof(lines));
    assert_int_equal(oct_client_send_borrowed(client, 2, 1), OCT_CLIENT_OK);
    assert_int_equal(receive(&r, &h, got, 2 * N), sizeof(lines));
    assert_memory_equal(got, lines, sizeof(lines));
    assert_int_equal(oct_client_close(client), 0);
    assert_int_equal(oct_client_connect(&client, r.endpoint, 7,
                                        &(struct oct_client_options){.format = OCT_CLIENT_12P},
                                        NULL, 0),
                     OCT_CLIENT_REFUSED);
    close_receiver(&r);
}

static void count_release(void *lines, void *hint)
{
    atomic_fetch_add((atomic_int *)hint, 1);
    free(lines);
}

static uint16_t *new_lines(uint32_t n_lines)
{
    uint16_t *lines = calloc((size_t)n_lines * N, sizeof(uint16_t));
    assert_non_null(lines);
    return lines;
}

TEST(owned_lines_are_released_once_even_when_never_delivered)
{
    struct receiver nobody = {.endpoint = ""};
    snprintf(nobody.endpoint, sizeof(nobody.endpoint), "ipc:///nowhere/octd-%d", (int)getpid());
    const struct oct_client_options options = {.queue_messages = 3, .wait_ms = 20, .linger_ms = 20};
    struct oct_client *client = connect_to(&nobody, &options);
    atomic_int n_released = 0;
    assert_int_equal(oct_client_wait_connected(client, 20), OCT_CLIENT_TIMEOUT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            oct_client_send_owned(client, new_lines(5), 5, 0, count_release, &n_released),
            OCT_CLIENT_OK);
    uint16_t *lines = new_lines(5);
    assert_int_equal(oct_client_send_owned(client, lines, 5, 0, count_release, &n_released),
                     OCT_CLIENT_TIMEOUT);
    free(lines); /* stayed ours */
    assert_int_equal(oct_client_next_line(client), 15);
    assert_int_equal(atomic_load(&n_released), 0);
    struct oct_client_counters c;
    oct_client_get_counters(client, &c);
    assert_int_equal(c.messages_queued, 3);
    assert_int_equal(c.lines_queued, 15);
    assert_int_equal(oct_client_end(client), OCT_CLIENT_TIMEOUT);
    assert_int_equal(oct_client_close(client), 3);
    assert_int_equal(atomic_load(&n_released), 3);
}

TEST(a_full_queue_drops_blocks_and_leaves_a_gap)
{
    struct receiver nobody = {.endpoint = ""};
    snprintf(nobody.endpoint, sizeof(nobody.endpoint), "ipc:///nowhere/octd-%d", (int)getpid());
    const struct oct_client_options options = {
        .queue_messages = 2, .drop_when_full = true, .linger_ms = 1};
    struct oct_client *client = connect_to(&nobody, &options);
    uint16_t lines[3 * N] = {0};
    assert_int_equal(oct_client_send(client, lines, 3, 0), OCT_CLIENT_OK);
    assert_int_equal(oct_client_send(client, lines, 3, 0), OCT_CLIENT_OK);
    assert_int_equal(oct_client_send(client, lines, 3, 0), OCT_CLIENT_DROPPED);
    assert_int_equal(oct_client_next_line(client), 9);
    struct oct_client_counters c;
    oct_client_get_counters(client, &c);
    assert_int_equal(c.messages_dropped, 1);
    assert_int_equal(c.lines_dropped, 3);
    assert_int_equal(c.lines_sent, 6);
    assert_int_equal(oct_client_send(client, lines, 0, 0), OCT_CLIENT_REFUSED);
    assert_int_equal(oct_client_send(client, NULL, 1, 0), OCT_CLIENT_REFUSED);
    assert_string_not_equal(oct_client_error(client), "");
    oct_client_skip(client, UINT64_MAX);
    assert_int_equal(oct_client_send(client, lines, 1, 0), OCT_CLIENT_REFUSED);
    assert_int_equal(oct_client_close(client), 2);
}

/* ---- the line store ---- */

enum { M = 6, B = 7 };

static struct oct_recording *open_recording(void)
{
    FILE *file = fopen("store.raw", "wb");
    assert_non_null(file);
    for (unsigned i = 0; i < B * M * N; i++) {
        uint16_t sample = (uint16_t)i;
        assert_int_equal(fwrite(&sample, sizeof(sample), 1, file), 1);
    }
    fclose(file);
    struct oct_config *config = calloc(1, sizeof(*config));
    assert_non_null(config);
    oct_config_init(config);
    config->camera.samples = N;
    config->scan.lines = M;
    struct oct_recording *recording;
    must(oct_recording_open(&recording, "store.raw", config, &failure));
    free(config);
    return recording;
}

static void walk_store(uint64_t whole_bytes, uint32_t window, bool loop)
{
    struct oct_line_store *store;
    struct oct_recording *recording = open_recording();
    must(oct_line_store_create(&store, recording, NULL, window, loop, whole_bytes, 1, &failure));
    assert_int_equal(oct_line_store_is_whole(store), whole_bytes > 0);
    for (uint64_t line = 0; line < (loop ? 5u : 1u) * B * M;) {
        uint64_t left = B * M - line % (B * M);
        uint32_t n = left < window ? (uint32_t)left : window;
        uint16_t *samples;
        const uint8_t *valid;
        must(oct_line_store_window(store, line, n, &samples, &valid, &failure));
        for (uint32_t i = 0; i < n * N; i++)
            assert_int_equal(samples[i], (uint16_t)(line % (B * M) * N + i));
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(valid[j], 1);
        line += n;
    }
    oct_line_store_destroy(store);
    oct_recording_close(recording);
}

TEST(lines_come_in_order_whether_held_whole_or_read_ahead)
{
    const uint32_t windows[] = {1, 4, M, 2 * M + 1, B * M};
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        walk_store(1 << 20, windows[i], true);
        walk_store(0, windows[i], true);
        walk_store(0, windows[i], false);
    }
}

TEST(a_recording_cut_while_being_read_is_an_error)
{
    struct oct_error err = {0};
    struct oct_line_store *store;
    struct oct_recording *recording = open_recording();
    assert_int_equal(oct_line_store_create(&store, recording, NULL, M, false, 0, 1, &err), OCT_OK);
    assert_int_equal(truncate("store.raw", 4 * M * N * 2 + 10), 0);
    enum oct_err code = OCT_OK;
    uint64_t line = 0;
    uint16_t *samples;
    const uint8_t *valid;
    for (; line < B * M && !code; line += M)
        code = oct_line_store_window(store, line, M, &samples, &valid, &err);
    assert_int_equal(code, OCT_E_FORMAT);
    assert_int_equal(line, 5 * M);
    assert_non_null(strstr(err.text, "B-scan 4"));
    oct_line_store_destroy(store);
    assert_int_equal(oct_line_store_create(&store, recording, NULL, M, false, 1 << 20, 1, &err),
                     OCT_E_FORMAT);
    assert_null(store);
    oct_recording_close(recording);
}
