/* The state of a camera driver's client (octd/client.h), and what both ways out of it, the socket
 * and shared memory, do to its numbers, flags and counters (client.c). One thread at a time, as for
 * the client. Included by pipeline/client alone. */
#ifndef OCT_PIPELINE_CLIENT_STATE_H
#define OCT_PIPELINE_CLIENT_STATE_H

#include "octd/client.h"
#include "pipeline/base/err.h"
#include "pipeline/client/shm_driver.h"
#include "pipeline/net/curve.h"
#include "pipeline/wire/wire.h"

#include <stdatomic.h>
#include <sys/types.h>

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
    pid_t process; /* that connected; a fork of it must not use the socket */
    void *context, *socket, *monitor;
    bool connected;                             /* a handshake was seen on the monitor */
    char endpoint[1024];                        /* of the socket */
    int queue_messages;                         /* its high-water mark */
    char client_key[1024], server_public[1024]; /* paths; "": plain */
    struct oct_shm_driver *shm;                 /* NULL: lines travel through the socket */
    uint32_t n_samples;
    uint16_t format; /* enum oct_lines_format */
    size_t line_bytes;
    uint32_t linger_ms;
    int wait_ms; /* -1: for ever */
    bool drop_when_full, crc;
    uint32_t epoch;
    uint64_t sequence, next_line;
    uint64_t n_lost; /* messages in shared memory that their daemon had not taken when it ended */
    uint16_t flags;  /* of the next message */
    bool follows;    /* the epoch is one that octd gave */
    struct oct_client_borrowed borrowed;
    struct oct_client_queue queued;
    struct oct_client_counters counters;
    struct oct_error error;
};

/* Returns OCT_CLIENT_REFUSED; client->error says why. */
enum oct_client_result oct_client_refuse(struct oct_client *client, const char *why);

/* The wire header of the client's next block. */
void oct_client_encode_header(const struct oct_client *client, const void *lines, uint32_t n_lines,
                              uint64_t time_ns, uint16_t flags,
                              uint8_t bytes[OCT_LINES_HEADER_BYTES]);

/* Counts a message that was sent. */
void oct_client_book_sent(struct oct_client *client, uint32_t n_lines);

/* Counts a block that found no room with drop_when_full: the line numbers advance, which makes the
 * gap; the flags stay for the next block. */
enum oct_client_result oct_client_book_dropped(struct oct_client *client, uint32_t n_lines);

#endif
