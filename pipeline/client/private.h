/* The inside of the camera driver's client: client.c (numbers, flags, counters), client/socket.c
 * (ZeroMQ) and client/shm.c (shared memory). Included by these files only. */
#ifndef OCT_PIPELINE_CLIENT_PRIVATE_H
#define OCT_PIPELINE_CLIENT_PRIVATE_H

#include "octd/client.h"
#include "pipeline/base/err.h"
#include "pipeline/client/shm_driver.h"
#include "pipeline/net/curve.h"
#include "pipeline/wire/wire.h"

#include <stdatomic.h>

/* Blocks that ZeroMQ has not released yet. Its thread counts them down. */
struct oct_client_queue {
    atomic_uint_fast64_t messages, lines;
};

/* Memory that the caller fills (oct_client_borrow). */
struct oct_client_borrowed {
    uint16_t *lines;     /* NULL: nothing is borrowed */
    uint32_t most_lines; /* that fit */
    uint32_t slot;       /* of shared memory */
};

struct oct_client {
    void *context, *socket, *monitor;
    bool connected;                             /* a handshake was seen on the monitor */
    char endpoint[1024];                        /* of the socket */
    int queue_messages;                         /* its high-water mark */
    char client_key[1024], server_public[1024]; /* paths; "": plain */
    struct oct_shm_driver *shm;                 /* NULL: lines travel through the socket */
    uint32_t n_samples;
    uint32_t linger_ms;
    int wait_ms; /* -1: for ever */
    bool drop_when_full, crc;
    uint32_t epoch;
    uint64_t sequence, next_line;
    uint64_t n_lost; /* messages in shared memory that their daemon had not taken when it ended */
    uint16_t flags;  /* of the next message */
    struct oct_client_borrowed borrowed;
    struct oct_client_queue queued;
    struct oct_client_counters counters;
    struct oct_error error;
};

/* One block under way: the callback that gets the lines back, and the counter for it. malloc'd. */
struct oct_client_loan {
    struct oct_client_queue *queued;
    uint32_t n_lines;
    void (*release)(void *lines, void *hint);
    void *hint;
};

enum oct_client_result oct_client_refuse(struct oct_client *client, const char *why);
enum oct_client_result oct_client_failed(struct oct_client *client, const char *what);

/* The wire header of the client's next block. */
void oct_client_encode_header(const struct oct_client *client, const uint16_t *lines,
                              uint32_t n_lines, uint64_t time_ns, uint16_t flags,
                              uint8_t bytes[OCT_LINES_HEADER_BYTES]);

/* Counts a message that was sent. */
void oct_client_book_sent(struct oct_client *client, uint32_t n_lines);

/* Counts a block that found no room with drop_when_full: the line numbers advance, which makes the
 * gap; the flags stay for the next block. */
enum oct_client_result oct_client_book_dropped(struct oct_client *client, uint32_t n_lines);

/* ---- client/socket.c ---- */

enum oct_err oct_client_open_socket(struct oct_client *client);
void oct_client_close_socket(struct oct_client *client);

/* Waits for a handshake. */
enum oct_client_result oct_client_wait_socket(struct oct_client *client, uint64_t end_ns);

/* Sends header and payload, waiting for room or not at all. The loan ends when ZeroMQ has released
 * the lines; if nothing was sent it ends here, and the lines are not given back. */
enum oct_client_result oct_client_send_parts(struct oct_client *client, const uint8_t *header,
                                             void *lines, size_t n_bytes,
                                             struct oct_client_loan *loan, bool wait);

/* ---- client/shm.c ---- */

/* Attaches to the daemon's memory, now or at end_ns at the latest. */
enum oct_client_result oct_client_wait_shared(struct oct_client *client, uint64_t end_ns);

/* Counts the blocks that an ended daemon did not take, and looks for its successor. */
void oct_client_look_for_daemon(struct oct_client *client);

enum oct_client_result oct_client_send_shared(struct oct_client *client, const uint16_t *lines,
                                              uint32_t n_lines, uint64_t time_ns);
enum oct_client_result oct_client_borrow_shared(struct oct_client *client, uint32_t n_lines);
enum oct_client_result oct_client_send_borrowed_shared(struct oct_client *client, uint32_t n_lines,
                                                       uint64_t time_ns);

#endif
