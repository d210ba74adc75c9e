/* The client's lines through the daemon's shared memory. One thread at a time, as for the client.
 * Included by pipeline/client alone. */
#ifndef OCT_PIPELINE_CLIENT_SHM_H
#define OCT_PIPELINE_CLIENT_SHM_H

#include "pipeline/client/state.h"

/* Attaches to the daemon's memory, now or at end_ns at the latest. */
enum oct_client_result oct_client_wait_shared(struct oct_client *client, uint64_t end_ns);

/* Counts the blocks that an ended daemon did not take, and looks for its successor. */
void oct_client_look_for_daemon(struct oct_client *client);

enum oct_client_result oct_client_send_shared(struct oct_client *client, const void *lines,
                                              uint32_t n_lines, uint64_t time_ns);
enum oct_client_result oct_client_borrow_shared(struct oct_client *client, uint32_t n_lines);
enum oct_client_result oct_client_send_borrowed_shared(struct oct_client *client, uint32_t n_lines,
                                                       uint64_t time_ns);

#endif
