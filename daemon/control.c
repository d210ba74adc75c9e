#include "daemon/control.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/net/zsocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define AT_ONCE 64                /* requests served before signals and timers get their turn, */
#define TURN_NS UINT64_C(5000000) /* or as many as are answered within this */
#define PATIENCE_NS UINT64_C(30000000) /* of the 100 ms that a reply may take */
#define MESSAGE_BYTES 65536            /* a part that is larger closes the connection */

/* A request has two or three parts. Further parts are dropped, PARTS_AT_ONCE of them in the turn of
 * one request. */
enum { MOST_FRAMES = 8, MOST_WAITING = 64, PARTS_AT_ONCE = 1024 };

/* A client whose command is under way. */
struct waiting {
    zmq_msg_t frames[MOST_FRAMES]; /* frames to be sent before the reply */
    int n;
    enum oct_under_way what;
    uint64_t until_ns;
};

struct oct_control {
    struct oct_daemon *daemon;
    void *socket;
    uv_poll_t poll;
    struct waiting waiting[MOST_WAITING];
    int n_waiting;
    bool in_rest; /* dropping the rest of a message with too many parts */
};

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    oct_control_serve(poll->data);
}

enum oct_err oct_control_create(struct oct_control **out, uv_loop_t *loop,
                                struct oct_daemon *daemon, struct oct_error *err)
{
    char bound[OCT_ENDPOINT_BYTES];
    struct oct_control *control = calloc(1, sizeof(*control));
    *out = NULL;
    if (!control)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the control socket");
    control->daemon = daemon;
    control->socket =
        oct_zsocket_bind(daemon->zmq_context, ZMQ_ROUTER, daemon->config.control.endpoint,
                         "control.endpoint", 64, MESSAGE_BYTES, daemon->door, bound, err);
    if (!control->socket) {
        free(control);
        return err ? err->code : OCT_E_IO;
    }
    int fd;
    size_t fd_bytes = sizeof(fd);
    zmq_getsockopt(control->socket, ZMQ_FD, &fd, &fd_bytes);
    uv_poll_init(loop, &control->poll, fd);
    control->poll.data = control;
    uv_poll_start(&control->poll, UV_READABLE, on_readable);
    oct_log(OCT_LOG_INFO, "control on %s", bound);
    *out = control;
    return OCT_OK;
}

/* Sends n frames, which are empty afterwards, and the reply, which is freed. */
static void send_reply(struct oct_control *control, zmq_msg_t *frames, int n, char *reply)
{
    for (int i = 0; i < n; i++) {
        if (reply)
            zmq_msg_send(&frames[i], control->socket, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_msg_close(&frames[i]);
    }
    if (reply)
        zmq_send(control->socket, reply, strlen(reply), ZMQ_DONTWAIT);
    free(reply);
}

/* A zmq_msg_t may not be copied as bytes. */
static void move_frames(struct waiting *to, zmq_msg_t *frames, int n)
{
    for (int i = 0; i < n; i++) {
        zmq_msg_init(&to->frames[i]);
        zmq_msg_move(&to->frames[i], &frames[i]);
        zmq_msg_close(&frames[i]);
    }
    to->n = n;
}

static void keep_waiting(struct oct_control *control, zmq_msg_t *frames, int n,
                         enum oct_under_way what)
{
    struct waiting *w = &control->waiting[control->n_waiting++];
    move_frames(w, frames, n);
    w->what = what;
    w->until_ns = oct_clock_ns() + PATIENCE_NS;
}

static void answer_waiting(struct oct_control *control)
{
    uint64_t now_ns = oct_clock_ns();
    int n_left = 0;

    for (int k = 0; k < control->n_waiting; k++) {
        struct waiting *w = &control->waiting[k], *to = &control->waiting[n_left];
        if (now_ns >= w->until_ns || oct_control_is_done(control->daemon, w->what)) {
            send_reply(control, w->frames, w->n, oct_control_outcome(control->daemon, w->what));
            continue;
        }
        if (to != w) {
            to->until_ns = w->until_ns;
            to->what = w->what;
            move_frames(to, w->frames, w->n);
        }
        n_left++;
    }
    control->n_waiting = n_left;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void oct_control_destroy(struct oct_control *control)
{
    if (!control)
        return;
    uv_poll_stop(&control->poll);
    for (int k = 0; k < control->n_waiting; k++)
        send_reply(control, control->waiting[k].frames, control->waiting[k].n,
                   oct_control_outcome(control->daemon, control->waiting[k].what));
    control->n_waiting = 0;
    int linger_ms = 200; /* so that the reply to shutdown is still sent */
    zmq_setsockopt(control->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    zmq_close(control->socket);
    uv_close((uv_handle_t *)&control->poll, on_closed);
}

/* False: nothing has arrived. */
static bool receive(struct oct_control *control, zmq_msg_t *frame)
{
    int status;
    zmq_msg_init(frame);
    do
        status = zmq_msg_recv(frame, control->socket, ZMQ_DONTWAIT);
    while (status < 0 && errno == EINTR);
    if (status < 0)
        zmq_msg_close(frame);
    return status >= 0;
}

static void drop_rest(struct oct_control *control)
{
    zmq_msg_t frame;
    for (int n = 0; control->in_rest && n < PARTS_AT_ONCE; n++) {
        control->in_rest = receive(control, &frame);
        if (!control->in_rest)
            return;
        control->in_rest = zmq_msg_more(&frame);
        zmq_msg_close(&frame);
    }
}

static void reply_to(struct oct_control *control, zmq_msg_t *frames, int n)
{
    char *reply = NULL;
    enum oct_under_way under_way = OCT_UNDER_WAY_NOTHING;
    if (n >= 2 && oct_door_admits(control->daemon->door, &frames[n - 1]))
        reply = oct_control_answer(control->daemon, zmq_msg_data(&frames[n - 1]),
                                   zmq_msg_size(&frames[n - 1]), &under_way);
    zmq_msg_close(&frames[n - 1]);
    if (under_way && control->n_waiting < MOST_WAITING) {
        keep_waiting(control, frames, n - 1, under_way);
        free(reply);
    } else {
        send_reply(control, frames, n - 1, reply);
    }
}

/* ROUTER with REQ at the other end: identity, empty delimiter, request. Other shapes (a DEALER
 * without delimiter) are answered with the frames they came with; one of too many parts is not. */
static bool serve_one(struct oct_control *control)
{
    zmq_msg_t frames[MOST_FRAMES];
    int n = 0;

    if (control->in_rest) {
        drop_rest(control);
        return true;
    }
    while (n < MOST_FRAMES && receive(control, &frames[n]) && zmq_msg_more(&frames[n++]))
        ;
    if (n == 0)
        return false;
    control->in_rest = zmq_msg_more(&frames[n - 1]);
    if (!control->in_rest) {
        reply_to(control, frames, n);
        return true;
    }
    while (n > 0)
        zmq_msg_close(&frames[--n]);
    return true;
}

static bool has_requests(struct oct_control *control)
{
    int events = 0;
    size_t bytes = sizeof(events);
    return zmq_getsockopt(control->socket, ZMQ_EVENTS, &events, &bytes) == 0 &&
           (events & ZMQ_POLLIN);
}

void oct_control_serve(struct oct_control *control)
{
    /* Receives until nothing is left, because the descriptor signals a message only once. Asks for
     * ZMQ_EVENTS before each message, because only that resets the descriptor, and because ZeroMQ
     * then takes one message of each client in turn, so that a new client is served while others
     * flood. What clients that never pause send beyond one turn waits for the timer. */
    uint64_t until_ns = oct_clock_ns() + TURN_NS;
    answer_waiting(control);
    for (int n = 0; n < AT_ONCE && oct_clock_ns() < until_ns && has_requests(control); n++)
        serve_one(control);
}
