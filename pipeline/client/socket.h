/* The client's lines through a ZeroMQ socket. One thread at a time, as for the client; ZeroMQ's own
 * thread ends the loans. Included by pipeline/client alone. */
#ifndef OCT_PIPELINE_CLIENT_SOCKET_H
#define OCT_PIPELINE_CLIENT_SOCKET_H

#include "pipeline/client/state.h"

/* One block under way: the callback that gets the lines back, and the counter for it. malloc'd. */
struct oct_client_loan {
    struct oct_client_queue *queued;
    uint32_t n_lines;
    void (*release)(void *lines, void *hint);
    void *hint;
};

/* Returns OCT_CLIENT_FAILED; client->error says what failed, and why by errno. */
enum oct_client_result oct_client_failed(struct oct_client *client, const char *what);

enum oct_err oct_client_open_socket(struct oct_client *client);
void oct_client_close_socket(struct oct_client *client);

/* Waits for a handshake. */
enum oct_client_result oct_client_wait_socket(struct oct_client *client, uint64_t end_ns);

/* Sends header and payload, waiting for room or not at all. The loan ends when ZeroMQ has released
 * the lines; if nothing was sent it ends here, and the lines are not given back. */
enum oct_client_result oct_client_send_parts(struct oct_client *client, const uint8_t *header,
                                             void *lines, size_t n_bytes,
                                             struct oct_client_loan *loan, bool wait);

#endif
