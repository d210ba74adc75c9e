/* The camera driver's side of the wire: numbers, flags, counters. How lines travel is in
 * client/socket.c and client/shm.c, chosen by the endpoint's scheme. */
#define _DEFAULT_SOURCE /* getentropy */

#include "pipeline/base/clock.h"
#include "pipeline/base/crc32c.h"
#include "pipeline/client/shm.h"
#include "pipeline/client/socket.h"

#include <errno.h>
#include <limits.h>
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
#define LEAST_LINGER_MS 1000

enum oct_client_result oct_client_refuse(struct oct_client *client, const char *why)
{
    oct_fail(&client->error, OCT_E_ARG, "%s", why);
    return OCT_CLIENT_REFUSED;
}

/* In a process forked from the client's, sockets would wait for threads that only the parent has,
 * and slots of shared memory are the parent's. */
static enum oct_client_result check_process(struct oct_client *client)
{
    if (client->process == getpid())
        return OCT_CLIENT_OK;
    oct_fail(&client->error, OCT_E_STATE,
             "the connection to '%s' belongs to process %ld: a forked process makes its own",
             client->endpoint, (long)client->process);
    return OCT_CLIENT_REFUSED;
}

/* ---- waiting ---- */

enum oct_client_result oct_client_wait_connected(struct oct_client *client, uint32_t timeout_ms)
{
    if (check_process(client) != OCT_CLIENT_OK)
        return OCT_CLIENT_REFUSED;
    uint64_t end_ns = oct_clock_ns() + timeout_ms * UINT64_C(1000000);
    enum oct_client_result result = OCT_CLIENT_OK;
    if (client->shm)
        result = oct_client_wait_shared(client, end_ns);
    return result == OCT_CLIENT_OK ? oct_client_wait_socket(client, end_ns) : result;
}

/* Messages sent that the daemon (shm://) or the network has not taken over yet. */
static uint64_t n_under_way(const struct oct_client *client, uint64_t *n_lines)
{
    uint64_t n = atomic_load(&client->queued.messages), in_slots = 0;
    *n_lines = atomic_load(&client->queued.lines);
    if (client->shm)
        n += oct_shm_driver_pending(client->shm, &in_slots);
    *n_lines += in_slots;
    return n;
}

enum oct_client_result oct_client_flush(struct oct_client *client, uint32_t timeout_ms)
{
    uint64_t end_ns = oct_clock_ns() + timeout_ms * UINT64_C(1000000), n_lines;
    const struct timespec pause = {.tv_nsec = 1000000};
    if (check_process(client) != OCT_CLIENT_OK)
        return OCT_CLIENT_REFUSED;
    while (n_under_way(client, &n_lines) > 0) {
        if (oct_clock_ns() >= end_ns)
            return OCT_CLIENT_TIMEOUT;
        if (nanosleep(&pause, NULL) && errno == EINTR)
            return OCT_CLIENT_INTERRUPTED;
        if (client->shm)
            oct_client_look_for_daemon(client);
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

static enum oct_err choose_transport(struct oct_client *client, const char *endpoint)
{
    struct oct_error *err = &client->error;
    if (oct_shm_is_endpoint(endpoint)) {
        const char *name = endpoint + strlen(OCT_SHM_SCHEME);
        enum oct_err e = oct_shm_driver_create(&client->shm, name, err);
        if (e)
            return e;
        client->queue_messages = 0; /* no bound of its own: the slots bound it */
        oct_shm_socket_of(name, client->endpoint);
        oct_shm_driver_attach(client->shm, NULL); /* if a daemon runs already */
        return OCT_OK;
    }
    if (strncmp(endpoint, "tcp://", 6) != 0 && strncmp(endpoint, "ipc://", 6) != 0)
        return oct_fail(err, OCT_E_ARG,
                        "endpoint '%s': must start with tcp://, ipc:// or shm://, as in "
                        "tcp://127.0.0.1:5701",
                        endpoint);
    if (strlen(endpoint) >= sizeof(client->endpoint))
        return oct_fail(err, OCT_E_ARG, "the endpoint is too long");
    memcpy(client->endpoint, endpoint, strlen(endpoint) + 1);
    return OCT_OK;
}

/* Keeps the socket's settings: it is opened again when the daemon returns. */
static enum oct_err keep_keys(struct oct_client *client, const struct oct_client_options *options)
{
    const char *key = options->client_key ? options->client_key : "";
    const char *public = options->server_public ? options->server_public : "";
    if (strlen(key) >= sizeof(client->client_key) ||
        strlen(public) >= sizeof(client->server_public))
        return oct_fail(&client->error, OCT_E_ARG, "the path of a key is too long");
    snprintf(client->client_key, sizeof(client->client_key), "%s", key);
    snprintf(client->server_public, sizeof(client->server_public), "%s", public);
    return OCT_OK;
}

static void destroy(struct oct_client *client)
{
    if (!client)
        return;
    oct_client_close_socket(client);
    oct_shm_driver_destroy(client->shm);
    free(client);
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
    const uint16_t format = options->format ? (uint16_t)options->format : OCT_LINES_U16;
    if (format > OCT_LINES_12P || !oct_samples_fit(format, n_samples)) {
        code = oct_fail(&err, OCT_E_ARG,
                        "format is %u: it must be 1 (u8), 2 (u16) or, with an even n_samples, 3 "
                        "(12 bits packed)",
                        (unsigned)options->format);
        goto fail;
    }
    made = calloc(1, sizeof(*made));
    if (!made) {
        code = oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        goto fail;
    }
    made->process = getpid();
    made->n_samples = n_samples;
    made->format = format;
    made->line_bytes = (size_t)oct_samples_bytes(format, n_samples);
    made->linger_ms = options->linger_ms ? options->linger_ms : DEFAULT_LINGER_MS;
    made->drop_when_full = options->drop_when_full;
    made->crc = options->crc;
    made->epoch = choose_epoch();
    made->flags = OCT_LINES_STARTS; /* so that a driver may leave out oct_client_start */
    made->wait_ms = options->wait_ms ? to_int(options->wait_ms, 0) : -1;
    made->queue_messages = to_int(options->queue_messages, DEFAULT_QUEUE_MESSAGES);
    code = keep_keys(made, options);
    if (!code)
        code = choose_transport(made, endpoint);
    if (!code)
        code = oct_client_open_socket(made);
    if (code) {
        err = made->error;
        goto fail;
    }
    *client = made;
    return OCT_CLIENT_OK;
fail:
    if (error && error_bytes > 0)
        snprintf(error, error_bytes, "%s", err.text);
    destroy(made);
    return code == OCT_E_ARG || code == OCT_E_CONFIG ? OCT_CLIENT_REFUSED : OCT_CLIENT_FAILED;
}

void oct_client_give_up(struct oct_client *client)
{
    client->linger_ms = 0;
}

static uint32_t ms_until(uint64_t end_ns)
{
    uint64_t now_ns = oct_clock_ns();
    return end_ns > now_ns ? (uint32_t)((end_ns - now_ns) / 1000000) : 0;
}

uint64_t oct_client_close(struct oct_client *client)
{
    if (!client || client->process != getpid())
        return 0;
    uint64_t end_ns = oct_clock_ns() + client->linger_ms * UINT64_C(1000000);
    enum oct_client_result result = OCT_CLIENT_INTERRUPTED;
    while (result == OCT_CLIENT_INTERRUPTED)
        result = oct_client_flush(client, ms_until(end_ns));
    oct_client_return(client);
    uint64_t n_lines, n_given_up = n_under_way(client, &n_lines) + client->n_lost;
    /* Bytes that count as taken by the network may still lie in ZeroMQ's batch of small
     * messages. */
    uint32_t left_ms = ms_until(end_ns);
    int linger_ms =
        n_given_up ? 0 : to_int(left_ms > LEAST_LINGER_MS ? left_ms : 0, LEAST_LINGER_MS);
    zmq_setsockopt(client->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    destroy(client);
    return n_given_up;
}

/* ---- blocks ---- */

void oct_client_book_sent(struct oct_client *client, uint32_t n_lines)
{
    client->sequence++;
    client->next_line += n_lines;
    client->flags = 0;
    client->counters.messages_sent++;
    client->counters.lines_sent += n_lines;
}

enum oct_client_result oct_client_book_dropped(struct oct_client *client, uint32_t n_lines)
{
    client->next_line += n_lines;
    client->counters.messages_dropped++;
    client->counters.lines_dropped += n_lines;
    return OCT_CLIENT_DROPPED;
}

static bool numbers_fit(const struct oct_client *client, uint32_t n_lines)
{
    return client->next_line <= UINT64_MAX - n_lines;
}

void oct_client_encode_header(const struct oct_client *client, const void *lines, uint32_t n_lines,
                              uint64_t time_ns, uint16_t flags,
                              uint8_t bytes[OCT_LINES_HEADER_BYTES])
{
    size_t n_bytes = n_lines * client->line_bytes;
    struct oct_lines_header header = {
        .sequence = client->sequence,
        .time_ns = time_ns,
        .first_line = client->next_line,
        .n_lines = n_lines,
        .n_samples = client->n_samples,
        .format = client->format,
        .flags = (uint16_t)(flags | (client->follows ? OCT_LINES_FOLLOWS : 0)),
        .epoch = client->epoch,
        .crc32c = client->crc && n_lines ? oct_crc32c(lines, n_bytes) : 0,
    };
    oct_lines_encode(&header, bytes);
}

/* `loan` was malloc'd; it is freed or handed on in every case. */
static enum oct_client_result send_block(struct oct_client *client, void *lines, uint32_t n_lines,
                                         uint64_t time_ns, uint16_t flags,
                                         struct oct_client_loan *loan, bool wait)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    oct_client_encode_header(client, lines, n_lines, time_ns, flags, header);
    loan->queued = &client->queued;
    loan->n_lines = n_lines;
    atomic_fetch_add(&client->queued.messages, 1);
    atomic_fetch_add(&client->queued.lines, n_lines);
    size_t n_bytes = n_lines * client->line_bytes;
    enum oct_client_result result =
        oct_client_send_parts(client, header, lines, n_bytes, loan, wait);
    if (result == OCT_CLIENT_OK)
        oct_client_book_sent(client, n_lines);
    return result;
}

/* Checks the arguments of a block; the client records the reason of a refusal. */
static enum oct_client_result check_block(struct oct_client *client, const void *lines,
                                          uint32_t n_lines)
{
    if (!lines || n_lines == 0)
        return oct_client_refuse(client, "a block needs at least one line");
    if (!numbers_fit(client, n_lines))
        return oct_client_refuse(client, "line numbers beyond 2^64");
    if (client->borrowed.lines)
        return oct_client_refuse(client, "borrowed lines come first: send or return them");
    return check_process(client);
}

static enum oct_client_result send_loan(struct oct_client *client, void *lines, uint32_t n_lines,
                                        uint64_t time_ns, void (*release)(void *lines, void *hint),
                                        void *hint)
{
    struct oct_client_loan *loan = malloc(sizeof(*loan));
    if (!loan) {
        oct_fail(&client->error, OCT_E_NO_MEMORY, "out of memory");
        return OCT_CLIENT_FAILED;
    }
    *loan = (struct oct_client_loan){.release = release, .hint = hint};
    enum oct_client_result result =
        send_block(client, lines, n_lines, time_ns, client->flags, loan, !client->drop_when_full);
    if (result == OCT_CLIENT_TIMEOUT && client->drop_when_full)
        return oct_client_book_dropped(client, n_lines);
    return result;
}

enum oct_client_result oct_client_send_owned(struct oct_client *client, void *lines,
                                             uint32_t n_lines, uint64_t time_ns,
                                             void (*release)(void *lines, void *hint), void *hint)
{
    enum oct_client_result result = check_block(client, lines, n_lines);
    if (result != OCT_CLIENT_OK)
        return result;
    if (!client->shm)
        return send_loan(client, lines, n_lines, time_ns, release, hint);
    result = oct_client_send_shared(client, lines, n_lines, time_ns);
    if (result == OCT_CLIENT_OK && release)
        release(lines, hint);
    return result;
}

static void release_copy(void *lines, void *hint)
{
    (void)hint;
    free(lines);
}

static uint16_t *allocate_lines(struct oct_client *client, uint32_t n_lines)
{
    size_t n_bytes = n_lines * client->line_bytes;
    uint16_t *lines = malloc(n_bytes);
    if (!lines)
        oct_fail(&client->error, OCT_E_NO_MEMORY, "out of memory for a block of %zu bytes",
                 n_bytes);
    return lines;
}

enum oct_client_result oct_client_send(struct oct_client *client, const void *lines,
                                       uint32_t n_lines, uint64_t time_ns)
{
    enum oct_client_result result = check_block(client, lines, n_lines);
    if (result != OCT_CLIENT_OK)
        return result;
    if (client->shm)
        return oct_client_send_shared(client, lines, n_lines, time_ns);
    uint16_t *copy = allocate_lines(client, n_lines);
    if (!copy)
        return OCT_CLIENT_FAILED;
    memcpy(copy, lines, n_lines * client->line_bytes);
    result = send_loan(client, copy, n_lines, time_ns, release_copy, NULL);
    if (result != OCT_CLIENT_OK)
        free(copy);
    return result;
}

/* ---- borrowed blocks ---- */

enum oct_client_result oct_client_borrow(struct oct_client *client, uint32_t n_lines,
                                         uint16_t **lines)
{
    *lines = NULL;
    enum oct_client_result result = check_block(client, &(uint16_t){0}, n_lines);
    if (result == OCT_CLIENT_OK && client->shm) {
        result = oct_client_borrow_shared(client, n_lines);
    } else if (result == OCT_CLIENT_OK) {
        client->borrowed = (struct oct_client_borrowed){.lines = allocate_lines(client, n_lines),
                                                        .most_lines = n_lines};
        result = client->borrowed.lines ? OCT_CLIENT_OK : OCT_CLIENT_FAILED;
    }
    *lines = client->borrowed.lines;
    return result;
}

enum oct_client_result oct_client_send_borrowed(struct oct_client *client, uint32_t n_lines,
                                                uint64_t time_ns)
{
    struct oct_client_borrowed b = client->borrowed;
    if (!b.lines)
        return oct_client_refuse(client, "nothing is borrowed");
    if (n_lines == 0 || n_lines > b.most_lines)
        return oct_client_refuse(client, "more lines than were borrowed, or none");
    if (check_process(client) != OCT_CLIENT_OK)
        return OCT_CLIENT_REFUSED;
    if (client->shm)
        return oct_client_send_borrowed_shared(client, n_lines, time_ns);
    enum oct_client_result result =
        send_loan(client, b.lines, n_lines, time_ns, release_copy, NULL);
    if (result == OCT_CLIENT_DROPPED || result == OCT_CLIENT_FAILED)
        free(b.lines);
    if (result != OCT_CLIENT_TIMEOUT && result != OCT_CLIENT_INTERRUPTED)
        client->borrowed.lines = NULL; /* else the lines stay borrowed, to be sent again or
                                          returned */
    return result;
}

void oct_client_return(struct oct_client *client)
{
    if (client->process != getpid())
        return;
    if (client->borrowed.lines && client->shm)
        oct_shm_driver_unclaim(client->shm, client->borrowed.slot);
    else
        free(client->borrowed.lines);
    client->borrowed.lines = NULL;
}

enum oct_client_result oct_client_end(struct oct_client *client)
{
    uint64_t end_ns = oct_clock_ns() + client->linger_ms * UINT64_C(1000000);
    const struct timespec pause = {.tv_nsec = 1000000};
    if (check_process(client) != OCT_CLIENT_OK)
        return OCT_CLIENT_REFUSED;
    for (;;) {
        struct oct_client_loan *loan = calloc(1, sizeof(*loan));
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

void oct_client_follow(struct oct_client *client, uint32_t first_epoch, uint32_t last_epoch)
{
    const uint32_t n = last_epoch - first_epoch;
    const uint32_t before = client->follows ? client->epoch : last_epoch + 1;
    do
        client->epoch = first_epoch + (n == UINT32_MAX ? choose_epoch() : choose_epoch() % (n + 1));
    while (client->epoch == before && n > 0);
    client->follows = true;
    client->sequence = 0;
    oct_client_start(client);
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
    counters->messages_queued = n_under_way(client, &counters->lines_queued);
}

const char *oct_client_error(const struct oct_client *client)
{
    return client->error.text;
}
