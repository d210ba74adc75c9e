/* The camera driver's side of the wire. Everything that knows ZeroMQ is in the section "transport";
 * an endpoint of another scheme (shared memory) would bring those functions a second time. */
#define _DEFAULT_SOURCE /* getentropy */

#include "pipeline/client.h"
#include "pipeline/clock.h"
#include "pipeline/curve.h"
#include "pipeline/err.h"
#include "pipeline/wire.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "samples go onto the wire as they lie in memory, which must be little-endian"
#endif

#define DEFAULT_QUEUE_MESSAGES 64
#define DEFAULT_LINGER_MS 2000

/* Blocks that ZeroMQ has not let go of yet. Counted down by its thread. */
struct queue_count {
    atomic_uint_fast64_t messages, lines;
};

struct oct_client {
    void *context, *socket, *monitor;
    bool connected; /* a handshake was seen on the monitor */
    uint32_t n_samples;
    uint32_t linger_ms;
    bool drop_when_full, crc;
    uint32_t epoch;
    uint64_t sequence, next_line;
    uint16_t flags; /* of the next message */
    struct queue_count queued;
    struct oct_client_counters counters;
    struct oct_error error;
};

/* ---- transport ---- */

/* One block on its way: who gets the lines back, and what to count down then. */
struct loan {
    struct queue_count *queued;
    uint32_t n_lines;
    void (*release)(void *lines, void *hint);
    void *hint;
};

static void end_loan(void *lines, void *hint)
{
    struct loan *loan = hint;
    if (loan->release)
        loan->release(lines, loan->hint);
    atomic_fetch_sub(&loan->queued->lines, loan->n_lines);
    atomic_fetch_sub(&loan->queued->messages, 1);
    free(loan);
}

static enum oct_err open_socket(struct oct_client *client, const char *endpoint, int queue_messages,
                                int wait_ms, const struct oct_curve_files *keys)
{
    struct oct_error *err = &client->error;
    int no_linger = 0;
    char address[64];
    if (strncmp(endpoint, "tcp://", 6) != 0 && strncmp(endpoint, "ipc://", 6) != 0)
        return oct_fail(err, OCT_E_ARG,
                        "endpoint '%s': must start with tcp:// or ipc://, as in "
                        "tcp://127.0.0.1:5701",
                        endpoint);
    client->context = zmq_ctx_new();
    client->socket = client->context ? zmq_socket(client->context, ZMQ_PUSH) : NULL;
    client->monitor = client->socket ? zmq_socket(client->context, ZMQ_PAIR) : NULL;
    if (!client->monitor)
        return oct_fail(err, OCT_E_IO, "cannot make a socket: %s", zmq_strerror(errno));
    snprintf(address, sizeof(address), "inproc://monitor-%p", (void *)client);
    if (zmq_setsockopt(client->socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_setsockopt(client->socket, ZMQ_SNDHWM, &queue_messages, sizeof(queue_messages)) ||
        zmq_setsockopt(client->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof(wait_ms)) ||
        zmq_setsockopt(client->monitor, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_socket_monitor(client->socket, address, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) ||
        zmq_connect(client->monitor, address))
        return oct_fail(err, OCT_E_IO, "cannot set up a socket: %s", zmq_strerror(errno));
    enum oct_err code = oct_curve_set_client(client->socket, keys, err);
    if (code)
        return code;
    if (zmq_connect(client->socket, endpoint))
        return oct_fail(err, OCT_E_ARG, "cannot connect to '%s': %s", endpoint,
                        zmq_strerror(errno));
    return OCT_OK;
}

static void close_socket(struct oct_client *client)
{
    if (client->monitor) {
        zmq_socket_monitor(client->socket, NULL, 0);
        zmq_close(client->monitor);
    }
    if (client->socket)
        zmq_close(client->socket);
    if (client->context)
        while (zmq_ctx_term(client->context) && errno == EINTR)
            ;
}

static enum oct_client_result failed(struct oct_client *client, const char *what)
{
    oct_fail(&client->error, OCT_E_IO, "%s: %s", what, zmq_strerror(errno));
    return OCT_CLIENT_FAILED;
}

/* Sends header and payload. The loan ends when ZeroMQ is done with the lines; if nothing was taken
 * it ends here without giving the lines back. */
static enum oct_client_result send_parts(struct oct_client *client, const uint8_t *header,
                                         void *lines, size_t n_bytes, struct loan *loan, int flags)
{
    zmq_msg_t payload;
    if (zmq_msg_init_data(&payload, lines, n_bytes, end_loan, loan)) {
        int why = errno;
        loan->release = NULL;
        end_loan(lines, loan);
        errno = why;
        return failed(client, "cannot make a message");
    }
    if (zmq_send(client->socket, header, OCT_LINES_HEADER_BYTES, flags | ZMQ_SNDMORE) < 0) {
        int why = errno;
        loan->release = NULL;
        zmq_msg_close(&payload);
        errno = why;
        if (why == EAGAIN)
            return OCT_CLIENT_TIMEOUT;
        return why == EINTR ? OCT_CLIENT_INTERRUPTED : failed(client, "cannot send");
    }
    /* Room was made for a whole message: the second part does not wait, but a signal may strike. */
    while (zmq_msg_send(&payload, client->socket, 0) < 0) {
        if (errno == EINTR || errno == EAGAIN)
            continue;
        int why = errno;
        loan->release = NULL;
        zmq_msg_close(&payload);
        errno = why;
        return failed(client, "cannot send the second part");
    }
    return OCT_CLIENT_OK;
}

enum oct_client_result oct_client_wait_connected(struct oct_client *client, uint32_t timeout_ms)
{
    uint64_t end_ns = oct_clock_ns() + timeout_ms * UINT64_C(1000000);
    while (!client->connected) {
        uint64_t now = oct_clock_ns();
        uint64_t left_ms = end_ns > now ? (end_ns - now + 999999) / 1000000 : 0;
        zmq_pollitem_t item = {.socket = client->monitor, .events = ZMQ_POLLIN};
        int n = zmq_poll(&item, 1, (long)left_ms);
        if (n < 0)
            return errno == EINTR ? OCT_CLIENT_INTERRUPTED : failed(client, "cannot wait");
        if (n == 0)
            return OCT_CLIENT_TIMEOUT;
        /* Only handshakes are asked for, so whatever comes is one: event part, address part. */
        char part[256];
        while (zmq_recv(client->monitor, part, sizeof(part), ZMQ_DONTWAIT) >= 0)
            client->connected = true;
    }
    return OCT_CLIENT_OK;
}

enum oct_client_result oct_client_flush(struct oct_client *client, uint32_t timeout_ms)
{
    uint64_t end_ns = oct_clock_ns() + timeout_ms * UINT64_C(1000000);
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&client->queued.messages) > 0) {
        if (oct_clock_ns() >= end_ns)
            return OCT_CLIENT_TIMEOUT;
        if (nanosleep(&pause, NULL) && errno == EINTR)
            return OCT_CLIENT_INTERRUPTED;
    }
    return OCT_CLIENT_OK;
}

/* ---- life ---- */

static uint32_t choose_epoch(void)
{
    uint32_t epoch = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (getentropy(&epoch, sizeof(epoch)))
        epoch = (uint32_t)now.tv_sec * 1000003u ^ (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 16;
    return epoch ? epoch : 1;
}

static int to_int(uint32_t value, uint32_t default_value)
{
    value = value ? value : default_value;
    return value > INT_MAX ? INT_MAX : (int)value;
}

enum oct_client_result oct_client_connect(struct oct_client **client, const char *endpoint,
                                          uint32_t n_samples,
                                          const struct oct_client_options *options, char *error,
                                          size_t error_bytes)
{
    const struct oct_client_options plain = {0};
    struct oct_error err = {0};
    enum oct_err code = OCT_OK;
    struct oct_client *made = NULL;
    *client = NULL;
    options = options ? options : &plain;
    if (n_samples < 1 || n_samples > OCT_MAX_SAMPLES) {
        code = oct_fail(&err, OCT_E_ARG, "n_samples is %u: it must be 1 to %u", n_samples,
                        OCT_MAX_SAMPLES);
        goto fail;
    }
    made = calloc(1, sizeof(*made));
    if (!made) {
        code = oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        goto fail;
    }
    made->n_samples = n_samples;
    made->linger_ms = options->linger_ms ? options->linger_ms : DEFAULT_LINGER_MS;
    made->drop_when_full = options->drop_when_full;
    made->crc = options->crc;
    made->epoch = choose_epoch();
    made->flags = OCT_LINES_STARTS; /* a driver that forgets oct_client_start is understood too */
    int wait_ms = options->wait_ms ? to_int(options->wait_ms, 0) : -1;
    const struct oct_curve_files keys = {options->client_key, options->server_public};
    code = open_socket(made, endpoint, to_int(options->queue_messages, DEFAULT_QUEUE_MESSAGES),
                       wait_ms, &keys);
    if (code) {
        err = made->error;
        goto fail;
    }
    *client = made;
    return OCT_CLIENT_OK;
fail:
    if (error && error_bytes > 0)
        snprintf(error, error_bytes, "%s", err.text);
    if (made)
        close_socket(made);
    free(made);
    return code == OCT_E_ARG || code == OCT_E_CONFIG ? OCT_CLIENT_REFUSED : OCT_CLIENT_FAILED;
}

void oct_client_give_up(struct oct_client *client)
{
    client->linger_ms = 0;
}

uint64_t oct_client_close(struct oct_client *client)
{
    if (!client)
        return 0;
    uint64_t end_ns = oct_clock_ns() + client->linger_ms * UINT64_C(1000000);
    enum oct_client_result result = OCT_CLIENT_INTERRUPTED;
    while (result == OCT_CLIENT_INTERRUPTED) {
        uint64_t now = oct_clock_ns();
        uint64_t left_ms = end_ns > now ? (end_ns - now) / 1000000 : 0;
        result = oct_client_flush(client, (uint32_t)left_ms);
    }
    uint64_t n_given_up = atomic_load(&client->queued.messages);
    /* What the network has "taken" may still lie in ZeroMQ's batch of small messages. */
    int linger_ms = n_given_up ? 0 : 1000;
    zmq_setsockopt(client->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    close_socket(client);
    free(client);
    return n_given_up;
}

/* ---- blocks ---- */

static enum oct_client_result refuse(struct oct_client *client, const char *why)
{
    oct_fail(&client->error, OCT_E_ARG, "%s", why);
    return OCT_CLIENT_REFUSED;
}

static bool numbers_fit(const struct oct_client *client, uint32_t n_lines)
{
    return client->next_line <= UINT64_MAX - n_lines;
}

static void encode_header(const struct oct_client *client, const uint16_t *lines, uint32_t n_lines,
                          uint64_t time_ns, uint16_t flags, uint8_t bytes[OCT_LINES_HEADER_BYTES])
{
    size_t n_bytes = (size_t)n_lines * client->n_samples * sizeof(uint16_t);
    struct oct_lines_header header = {
        .sequence = client->sequence,
        .time_ns = time_ns,
        .first_line = client->next_line,
        .n_lines = n_lines,
        .n_samples = client->n_samples,
        .format = OCT_LINES_U16,
        .flags = flags,
        .epoch = client->epoch,
        .crc32c = client->crc && n_lines ? oct_crc32c(lines, n_bytes) : 0,
    };
    oct_lines_encode(&header, bytes);
}

/* `loan` was malloc'd; it is gone afterwards, whatever happened. */
static enum oct_client_result send_block(struct oct_client *client, uint16_t *lines,
                                         uint32_t n_lines, uint64_t time_ns, uint16_t flags,
                                         struct loan *loan, bool wait)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    encode_header(client, lines, n_lines, time_ns, flags, header);
    loan->queued = &client->queued;
    loan->n_lines = n_lines;
    atomic_fetch_add(&client->queued.messages, 1);
    atomic_fetch_add(&client->queued.lines, n_lines);
    size_t n_bytes = (size_t)n_lines * client->n_samples * sizeof(uint16_t);
    enum oct_client_result result =
        send_parts(client, header, lines, n_bytes, loan, wait ? 0 : ZMQ_DONTWAIT);
    if (result == OCT_CLIENT_OK) {
        client->sequence++;
        client->next_line += n_lines;
        client->flags = 0;
        client->counters.messages_sent++;
        client->counters.lines_sent += n_lines;
    }
    return result;
}

enum oct_client_result oct_client_send_owned(struct oct_client *client, uint16_t *lines,
                                             uint32_t n_lines, uint64_t time_ns,
                                             void (*release)(void *lines, void *hint), void *hint)
{
    if (!lines || n_lines == 0)
        return refuse(client, "a block needs at least one line");
    if (!numbers_fit(client, n_lines))
        return refuse(client, "line numbers beyond 2^64");
    struct loan *loan = malloc(sizeof(*loan));
    if (!loan) {
        oct_fail(&client->error, OCT_E_NO_MEMORY, "out of memory");
        return OCT_CLIENT_FAILED;
    }
    *loan = (struct loan){.release = release, .hint = hint};
    enum oct_client_result result =
        send_block(client, lines, n_lines, time_ns, client->flags, loan, !client->drop_when_full);
    if (result == OCT_CLIENT_TIMEOUT && client->drop_when_full) {
        /* The numbers go on and so leave the gap; flags stay for the next block. */
        client->next_line += n_lines;
        client->counters.messages_dropped++;
        client->counters.lines_dropped += n_lines;
        return OCT_CLIENT_DROPPED;
    }
    return result;
}

static void release_copy(void *lines, void *hint)
{
    (void)hint;
    free(lines);
}

enum oct_client_result oct_client_send(struct oct_client *client, const uint16_t *lines,
                                       uint32_t n_lines, uint64_t time_ns)
{
    if (!lines || n_lines == 0)
        return refuse(client, "a block needs at least one line");
    size_t n_bytes = (size_t)n_lines * client->n_samples * sizeof(uint16_t);
    uint16_t *copy = malloc(n_bytes);
    if (!copy) {
        oct_fail(&client->error, OCT_E_NO_MEMORY, "out of memory for a block of %zu bytes",
                 n_bytes);
        return OCT_CLIENT_FAILED;
    }
    memcpy(copy, lines, n_bytes);
    enum oct_client_result result =
        oct_client_send_owned(client, copy, n_lines, time_ns, release_copy, NULL);
    if (result != OCT_CLIENT_OK)
        free(copy);
    return result;
}

enum oct_client_result oct_client_end(struct oct_client *client)
{
    uint64_t end_ns = oct_clock_ns() + client->linger_ms * UINT64_C(1000000);
    const struct timespec pause = {.tv_nsec = 1000000};
    for (;;) {
        struct loan *loan = calloc(1, sizeof(*loan));
        if (!loan) {
            oct_fail(&client->error, OCT_E_NO_MEMORY, "out of memory");
            return OCT_CLIENT_FAILED;
        }
        uint16_t flags = (uint16_t)(client->flags | OCT_LINES_ENDS);
        enum oct_client_result result = send_block(client, NULL, 0, 0, flags, loan, false);
        if (result != OCT_CLIENT_TIMEOUT || oct_clock_ns() >= end_ns)
            return result;
        nanosleep(&pause, NULL);
    }
}

void oct_client_start(struct oct_client *client)
{
    client->next_line = 0;
    client->flags = OCT_LINES_STARTS;
}

void oct_client_skip(struct oct_client *client, uint64_t n_lines)
{
    uint64_t room = UINT64_MAX - client->next_line;
    n_lines = n_lines < room ? n_lines : room;
    client->next_line += n_lines;
    client->counters.lines_skipped += n_lines;
}

uint64_t oct_client_next_line(const struct oct_client *client)
{
    return client->next_line;
}

void oct_client_end_with_next(struct oct_client *client)
{
    client->flags |= OCT_LINES_ENDS;
}

void oct_client_get_counters(const struct oct_client *client, struct oct_client_counters *counters)
{
    *counters = client->counters;
    counters->messages_queued = atomic_load(&client->queued.messages);
    counters->lines_queued = atomic_load(&client->queued.lines);
}

const char *oct_client_error(const struct oct_client *client)
{
    return client->error.text;
}
