/* The camera driver's side of octd: pushes A-lines into a running daemon.
 *
 * Needs nothing but this header, liboctclient.a and libzmq:
 *
 *     cc driver.c -loctclient -lzmq
 *
 * A whole driver:
 *
 *     #include <octd/client.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         enum { N_SAMPLES = 832, N_LINES = 240 };
 *         static uint16_t lines[N_LINES][N_SAMPLES];
 *         struct oct_client *client;
 *         char error[256];
 *         if (oct_client_connect(&client, "tcp://127.0.0.1:5701", N_SAMPLES, NULL, error,
 *                                sizeof(error)) != OCT_CLIENT_OK) {
 *             fprintf(stderr, "%s\n", error);
 *             return 1;
 *         }
 *         oct_client_start(client);
 *         uint64_t time_ns;
 *         while (my_camera_wait_for_lines(lines, N_LINES, &time_ns)) {
 *             oct_client_skip(client, my_camera_lines_lost());
 *             if (oct_client_send(client, lines[0], N_LINES, time_ns) != OCT_CLIENT_OK)
 *                 break;
 *         }
 *         oct_client_end(client);
 *         return oct_client_close(client) == 0 ? 0 : 1;
 *     }
 *
 * Shape: a block is n_lines A-lines of n_samples unsigned 16-bit samples in the machine's own
 * byte order, an A-line contiguous, the lines in the order of exposure; or samples as the camera
 * has them (options.format), which then travel, and are reconstructed, as they are. n_samples is
 * fixed at connect and must equal the daemon's camera.samples. A block may hold any number of lines
 * and end anywhere; the daemon cuts B-scans at multiples of scan.lines, counted from the line that
 * oct_client_start made number 0. Blocks of about one B-scan work well.
 *
 * Numbers: the client numbers the lines, counting from 0 at oct_client_start. Lines that the
 * camera or the driver lost must be told by oct_client_skip: then the daemon delivers the B-scan
 * with a gap at the right place; without it all later lines would slide.
 *
 * Queue: ZeroMQ keeps up to queue_messages blocks while the daemon is away or slow. When that is
 * full, send waits, or with drop_when_full it drops the block, counts it, and the daemon sees a
 * gap. A connection that breaks is made again without help.
 *
 * Shared memory: on the daemon's own machine "shm://NAME" instead of "tcp://..." moves the lines
 * through memory that the daemon has made (its ingest.endpoint says the same). Everything below
 * works alike, and oct_client_borrow writes them where the daemon reads them. What differs: the
 * daemon's slots are the queue (queue_messages means nothing), so while no daemon is there, send
 * waits or drops; blocks that a daemon had not taken when it ended are lost and counted as
 * dropped; and release (oct_client_send_owned) is called by the caller's own thread before the
 * call returns. A block is taken whole or not at all, unless it is larger than all slots
 * together: then it goes in as many messages as slots it fills, as they come free. Once begun it
 * waits for the next slot up to ten seconds (or wait_ms, if that is more; drop_when_full: not at
 * all; after a signal: linger_ms); what then finds no room is dropped and counted, the daemon
 * sees a gap, OCT_CLIENT_DROPPED.
 *
 * Threads: one thread uses a client at a time. Release callbacks (oct_client_send_owned) come
 * from a thread of ZeroMQ. Two clients in one program are independent.
 *
 * fork: a client belongs to the process that connected it. In a process forked from that one every
 * function that would wait or send returns OCT_CLIENT_REFUSED, and return and close do nothing
 * (close returns 0); a client that the forked process connects itself works. */
#ifndef OCT_OCTD_CLIENT_H
#define OCT_OCTD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oct_client;

enum oct_client_result {
    OCT_CLIENT_OK = 0,
    OCT_CLIENT_DROPPED,     /* no room and drop_when_full, or (shm://) no room for the rest of a
                               huge block: counted, the daemon sees a gap */
    OCT_CLIENT_TIMEOUT,     /* the time given ran out; nothing was taken, try again or give up */
    OCT_CLIENT_INTERRUPTED, /* a signal came while waiting; nothing was taken */
    OCT_CLIENT_REFUSED,     /* an argument makes no sense; nothing was taken */
    OCT_CLIENT_FAILED,      /* memory or transport: oct_client_error says what */
};

/* How the samples of a block lie in its bytes. */
enum oct_client_format {
    OCT_CLIENT_U8 = 1,
    OCT_CLIENT_U16 = 2,
    OCT_CLIENT_12P = 3, /* 12 bits packed, GenICam's Mono12p: sample 0 = byte0 | (byte1 & 15) << 8,
                           sample 1 = byte1 >> 4 | byte2 << 4; n_samples is even */
};

/* All zero is a good choice. */
struct oct_client_options {
    uint32_t queue_messages; /* high-water mark in blocks; 0: 64 */
    uint32_t linger_ms;      /* most that close and end wait for delivery; 0: 2000 */
    uint32_t wait_ms;        /* most that send waits for room in the queue; 0: for ever */
    bool drop_when_full;     /* send never waits: a block that finds no room is dropped */
    bool crc;                /* guard every payload by a CRC-32C; the daemon checks it */
    /* CURVE, for a daemon with security.server_key: files made by octctl keygen (read at connect).
     * Both or none. A daemon that does not know the key just never connects. */
    const char *client_key;        /* path of this driver's secret key; NULL: plain */
    const char *server_public;     /* path of the daemon's public key */
    enum oct_client_format format; /* 0: u16 */
};

/* Since connect. */
struct oct_client_counters {
    uint64_t messages_sent, lines_sent;       /* taken by the queue */
    uint64_t messages_dropped, lines_dropped; /* OCT_CLIENT_DROPPED; or the daemon ended */
    uint64_t lines_skipped;                   /* told by oct_client_skip */
    uint64_t messages_queued, lines_queued;   /* of those sent, not yet given to the network */
};

/* Connects to the daemon's ingest.endpoint: "tcp://host:port", "ipc:///path" or "shm://NAME".
 * Returns at once, whether the daemon is there or not (see oct_client_wait_connected). options may
 * be NULL. On anything but OCT_CLIENT_OK *client is NULL and `error` (may be NULL) holds one
 * line. */
enum oct_client_result oct_client_connect(struct oct_client **client, const char *endpoint,
                                          uint32_t n_samples,
                                          const struct oct_client_options *options, char *error,
                                          size_t error_bytes);

/* Waits until a daemon has accepted the connection. OCT_CLIENT_TIMEOUT, OCT_CLIENT_INTERRUPTED. */
enum oct_client_result oct_client_wait_connected(struct oct_client *client, uint32_t timeout_ms);

/* The next line begins a new acquisition: it gets number 0 and its block the start flag. */
void oct_client_start(struct oct_client *client);

/* The same in an epoch between those two, both included, which octd has given for the scan that the
 * lines are of (topic and control command `scan`): its driver follows it. octd then takes the lines
 * as of that scan, or refuses them; never as of another. Before the first line, whenever the scan
 * has another number, and again after oct_client_end. */
void oct_client_follow(struct oct_client *client, uint32_t first_epoch, uint32_t last_epoch);

/* n_lines lines were lost before the next one. */
void oct_client_skip(struct oct_client *client, uint64_t n_lines);

/* The number the next line gets. A driver that knows absolute numbers calls
 * oct_client_skip(client, number - oct_client_next_line(client)). */
uint64_t oct_client_next_line(const struct oct_client *client);

/* Sends a block: n_lines >= 1, lines is [n_lines][n_samples] of uint16_t, or of another format its
 * bytes, copied once; the caller may reuse it
 * on return. time_ns: the camera's clock at the first line, any origin. */
enum oct_client_result oct_client_send(struct oct_client *client, const void *lines,
                                       uint32_t n_lines, uint64_t time_ns);

/* The same without a copy: on OCT_CLIENT_OK the lines belong to the client until it calls
 * release(lines, hint), once, from another thread, at the latest during oct_client_close. On any
 * other result release is never called and the lines stay the caller's. */
enum oct_client_result oct_client_send_owned(struct oct_client *client, void *lines,
                                             uint32_t n_lines, uint64_t time_ns,
                                             void (*release)(void *lines, void *hint), void *hint);

/* Memory for the next block, for the caller to fill, of another format than u16 with its bytes:
 * with shm:// the daemon's own, so that nothing is copied until the daemon does. n_lines >= 1, with
 * shm:// at most a B-scan (what one slot holds). Waits for room as send does. One block is borrowed
 * at a time. OCT_CLIENT_DROPPED: no room and drop_when_full, *lines is NULL and the n_lines are
 * counted as dropped. */
enum oct_client_result oct_client_borrow(struct oct_client *client, uint32_t n_lines,
                                         uint16_t **lines);

/* Sends the first n_lines (>= 1) of what was borrowed, which is the client's again unless the
 * result is OCT_CLIENT_TIMEOUT, OCT_CLIENT_INTERRUPTED or OCT_CLIENT_REFUSED: then it stays
 * borrowed. */
enum oct_client_result oct_client_send_borrowed(struct oct_client *client, uint32_t n_lines,
                                                uint64_t time_ns);

/* What was borrowed is not sent after all. Nothing borrowed is fine. */
void oct_client_return(struct oct_client *client);

/* Ends the acquisition: a message without lines that carries the end flag. Waits for room up to
 * linger_ms, also with drop_when_full. */
enum oct_client_result oct_client_end(struct oct_client *client);

/* Instead of oct_client_end, where the driver knows which block is the last: the next block that
 * is sent carries the end flag. */
void oct_client_end_with_next(struct oct_client *client);

/* Waits until the network has taken everything (messages_queued is 0) or the time is over. */
enum oct_client_result oct_client_flush(struct oct_client *client, uint32_t timeout_ms);

void oct_client_get_counters(const struct oct_client *client, struct oct_client_counters *counters);

/* One line on the last OCT_CLIENT_FAILED or OCT_CLIENT_REFUSED; "" when there was none. */
const char *oct_client_error(const struct oct_client *client);

/* What is still queued is given up: oct_client_close will not wait for it. */
void oct_client_give_up(struct oct_client *client);

/* Waits up to linger_ms for delivery (for the last bytes a second at least), closes and frees.
 * Returns how many messages were given up; 0: the network took all. NULL is fine. */
uint64_t oct_client_close(struct oct_client *client);

#ifdef __cplusplus
}
#endif

#endif
