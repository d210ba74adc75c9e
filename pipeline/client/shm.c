/* The camera driver's client over shared memory (shm_layout.h): lines go into slots, ZeroMQ
 * carries descriptors. A block longer than a slot goes as several messages; all their slots are
 * there before the first leaves, so that a block is taken whole or not at all. One that is
 * longer than all slots together goes slot by slot as they come free. */
#define _DEFAULT_SOURCE
#include "pipeline/client/shm.h"
#include "pipeline/client/socket.h"

#include "pipeline/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define PAUSE_NS 100000 /* between two looks for a free slot: a fortieth of a B-scan at 60 kHz */
#define MOST_PIECES 1024u
#define PIECE_PATIENCE_MS 10000 /* the rest of a block waits longer than the caller asked for */

/* ---- the daemon ---- */

/* Opens a new socket too: the old one may still hold descriptors of the former memory. */
static void leave_daemon(struct oct_client *client)
{
    uint64_t n_lines, n_messages = oct_shm_driver_pending(client->shm, &n_lines);
    client->n_lost += n_messages;
    client->counters.messages_dropped += n_messages;
    client->counters.lines_dropped += n_lines;
    oct_shm_driver_detach(client->shm);
    oct_client_close_socket(client);
    oct_client_open_socket(client); /* a failure shows at the next send */
}

void oct_client_look_for_daemon(struct oct_client *client)
{
    if (client->borrowed.lines) /* the caller may be writing there */
        return;
    if (oct_shm_driver_is_attached(client->shm) && !oct_shm_driver_is_served(client->shm))
        leave_daemon(client);
    oct_shm_driver_attach(client->shm, NULL);
}

/* ---- waiting ---- */

static enum oct_client_result pause_until(uint64_t end_ns)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (oct_clock_ns() >= end_ns)
        return OCT_CLIENT_TIMEOUT;
    return nanosleep(&pause, NULL) && errno == EINTR ? OCT_CLIENT_INTERRUPTED : OCT_CLIENT_OK;
}

enum oct_client_result oct_client_wait_shared(struct oct_client *client, uint64_t end_ns)
{
    for (;;) {
        oct_client_look_for_daemon(client);
        if (oct_shm_driver_is_attached(client->shm))
            return OCT_CLIENT_OK;
        enum oct_err e = oct_shm_driver_attach(client->shm, &client->error);
        if (e && e != OCT_E_AGAIN)
            return OCT_CLIENT_FAILED; /* there is a daemon, but this driver may not use it:
                                         waiting does not help */
        enum oct_client_result result = e ? pause_until(end_ns) : OCT_CLIENT_OK;
        if (result != OCT_CLIENT_OK)
            return result;
    }
}

static uint64_t after_ms(uint64_t ms)
{
    return oct_clock_ns() + ms * UINT64_C(1000000);
}

static uint64_t room_deadline(const struct oct_client *client, bool begun)
{
    uint64_t least_ms = begun ? PIECE_PATIENCE_MS : 0;
    if (client->drop_when_full)
        return 0;
    if (client->wait_ms < 0)
        return UINT64_MAX;
    return after_ms((uint64_t)client->wait_ms > least_ms ? (uint64_t)client->wait_ms : least_ms);
}

static uint32_t lines_per_slot(const struct oct_client *client)
{
    uint64_t n = oct_shm_driver_slot_bytes(client->shm) / client->line_bytes;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Room for a block, or for a part of it. */
struct room {
    uint32_t n_wanted; /* lines that are left of the block */
    bool begun;        /* the block's first part is on its way */
    uint32_t n_lines;  /* of the n_wanted, that these slots are for: */
    uint32_t n_slots, slots[MOST_PIECES];
};

static bool claim_all(struct oct_client *client, uint32_t *slots, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (oct_shm_driver_claim(client->shm, &slots[k])) {
            while (k-- > 0)
                oct_shm_driver_unclaim(client->shm, slots[k]);
            return false;
        }
    return true;
}

/* Returns how many lines of a block are sent next: the whole block or, where that exceeds all slots
 * of the attached memory together, as many as one slot holds; 0: not even one line fits. */
static uint32_t lines_next(struct oct_client *client, const struct room *room)
{
    uint32_t most = oct_shm_driver_n_slots(client->shm), per_slot = lines_per_slot(client);
    most = most < MOST_PIECES ? most : MOST_PIECES;
    if (per_slot == 0)
        oct_fail(&client->error, OCT_E_ARG,
                 "a line of %u samples does not fit into a slot of the daemon's memory",
                 client->n_samples);
    if (!room->begun && room->n_wanted <= (uint64_t)most * per_slot)
        return room->n_wanted;
    return room->n_wanted < per_slot ? room->n_wanted : per_slot;
}

/* Waits for slots as the options say. Once a block was begun a signal does not interrupt the wait,
 * but limits it to linger_ms from then on. */
static enum oct_client_result claim_room(struct oct_client *client, struct room *room)
{
    uint64_t end_ns = room_deadline(client, room->begun);
    for (;;) {
        enum oct_client_result result = oct_client_wait_shared(client, end_ns);
        if (result == OCT_CLIENT_OK) {
            room->n_lines = lines_next(client, room);
            if (room->n_lines == 0)
                return OCT_CLIENT_REFUSED;
            uint32_t per_slot = lines_per_slot(client);
            room->n_slots = room->n_lines / per_slot + (room->n_lines % per_slot != 0);
            if (claim_all(client, room->slots, room->n_slots))
                return OCT_CLIENT_OK;
            result = pause_until(end_ns);
        }
        if (result == OCT_CLIENT_INTERRUPTED && room->begun) {
            uint64_t soon_ns = after_ms(client->linger_ms);
            end_ns = soon_ns < end_ns ? soon_ns : end_ns;
        } else if (result != OCT_CLIENT_OK) {
            return result;
        }
    }
}

/* ---- sending ---- */

/* Sends what lies in a slot. */
static enum oct_client_result post(struct oct_client *client, uint32_t slot, uint32_t n_lines,
                                   uint64_t time_ns, uint16_t flags)
{
    uint8_t header[OCT_LINES_HEADER_BYTES], descriptor[OCT_SHM_DESCRIPTOR_BYTES];
    oct_client_encode_header(client, oct_shm_driver_lines(client->shm, slot), n_lines, time_ns,
                             flags, header);
    oct_shm_driver_post(client->shm, slot, oct_shm_tag(client->epoch, client->sequence), n_lines,
                        descriptor);
    /* The socket has no high-water mark: the slots bound the messages under way. */
    int sent;
    do
        sent = zmq_send(client->socket, header, sizeof(header), ZMQ_SNDMORE);
    while (sent < 0 && errno == EINTR);
    while (sent >= 0 && (sent = zmq_send(client->socket, descriptor, sizeof(descriptor), 0)) < 0 &&
           errno == EINTR)
        sent = 0;
    if (sent < 0) {
        oct_shm_driver_unpost(client->shm, slot);
        return oct_client_failed(client, "cannot send");
    }
    oct_client_book_sent(client, n_lines);
    return OCT_CLIENT_OK;
}

/* Fills the slots and sends them; is_end: nothing of the block comes after them. */
static enum oct_client_result send_part(struct oct_client *client, const struct room *room,
                                        const unsigned char *lines, uint64_t time_ns, bool is_end)
{
    enum oct_client_result result = OCT_CLIENT_OK;
    uint32_t per_slot = lines_per_slot(client), n_left = room->n_lines;
    for (uint32_t k = 0; k < room->n_slots; k++) {
        uint32_t n = n_left < per_slot ? n_left : per_slot;
        bool is_last = is_end && k + 1 == room->n_slots;
        /* The start goes with the first piece, the end with the last. */
        uint16_t flags = (uint16_t)(client->flags & ~(is_last ? 0 : OCT_LINES_ENDS));
        uint16_t later = (uint16_t)(client->flags & OCT_LINES_ENDS);
        memcpy(oct_shm_driver_lines(client->shm, room->slots[k]), lines, n * client->line_bytes);
        if (result == OCT_CLIENT_OK)
            result = post(client, room->slots[k], n, time_ns, flags);
        if (result != OCT_CLIENT_OK)
            oct_shm_driver_unclaim(client->shm, room->slots[k]);
        else if (!is_last)
            client->flags = later;
        lines += n * client->line_bytes;
        n_left -= n;
    }
    return result;
}

/* The rest of a block found no room: a gap. */
static enum oct_client_result give_up_rest(struct oct_client *client, uint32_t n_lines,
                                           uint32_t n_left, enum oct_client_result why)
{
    oct_client_book_dropped(client, n_left);
    if (why == OCT_CLIENT_FAILED)
        return why;
    oct_fail(&client->error, OCT_E_AGAIN, "the daemon took only %u of the %u lines of a block",
             n_lines - n_left, n_lines);
    return OCT_CLIENT_DROPPED;
}

enum oct_client_result oct_client_send_shared(struct oct_client *client, const void *lines,
                                              uint32_t n_lines, uint64_t time_ns)
{
    const unsigned char *bytes = lines;
    struct room room = {.n_wanted = n_lines};
    while (room.n_wanted > 0) {
        enum oct_client_result result = claim_room(client, &room);
        if (result != OCT_CLIENT_OK && room.begun)
            return give_up_rest(client, n_lines, room.n_wanted, result);
        if (result == OCT_CLIENT_TIMEOUT && client->drop_when_full)
            return oct_client_book_dropped(client, n_lines);
        if (result == OCT_CLIENT_OK)
            result = send_part(client, &room, bytes, time_ns, room.n_lines == room.n_wanted);
        if (result != OCT_CLIENT_OK)
            return result;
        room.begun = true;
        room.n_wanted -= room.n_lines;
        bytes += room.n_lines * client->line_bytes;
    }
    return OCT_CLIENT_OK;
}

enum oct_client_result oct_client_borrow_shared(struct oct_client *client, uint32_t n_lines)
{
    struct room room = {.n_wanted = n_lines};
    enum oct_client_result result = claim_room(client, &room);
    if (result == OCT_CLIENT_TIMEOUT && client->drop_when_full)
        return oct_client_book_dropped(client, n_lines);
    if (result != OCT_CLIENT_OK)
        return result;
    if (room.n_slots > 1 || room.n_lines < n_lines) {
        for (uint32_t k = 0; k < room.n_slots; k++)
            oct_shm_driver_unclaim(client->shm, room.slots[k]);
        oct_fail(&client->error, OCT_E_ARG,
                 "%u lines are more than one slot of the daemon's memory holds: borrow at most %u",
                 n_lines, lines_per_slot(client));
        return OCT_CLIENT_REFUSED;
    }
    client->borrowed = (struct oct_client_borrowed){
        .lines = oct_shm_driver_lines(client->shm, room.slots[0]),
        .most_lines = n_lines,
        .slot = room.slots[0],
    };
    return OCT_CLIENT_OK;
}

enum oct_client_result oct_client_send_borrowed_shared(struct oct_client *client, uint32_t n_lines,
                                                       uint64_t time_ns)
{
    uint32_t slot = client->borrowed.slot;
    bool served = oct_shm_driver_is_served(client->shm);
    client->borrowed.lines = NULL;
    if (served)
        return post(client, slot, n_lines, time_ns, client->flags);
    oct_shm_driver_unclaim(client->shm, slot);
    oct_client_look_for_daemon(client);
    return oct_client_book_dropped(client, n_lines); /* the lines were written to a memory that
                                                        is no longer served */
}
