/* What the camera driver does wrong, judged several times a second from what the ingest thread saw
 * of its messages (pipeline/ingest/driver_watch.h): one reason, how many messages, what came, and
 * what to do. Told to the log and kept for the status. Main thread only.
 *
 * Messages of the last 1.5 seconds count. A healthy stream may show these, which are not reported:
 * - a malformed message among right ones, until there are three; - refused for their epoch or slot,
 * until they go on through that time: what was left of a sender
 *   comes in a burst;
 * - connections that come to nothing, while right messages come; - numbers that contradict each
 * other, unless there are more of them than right ones: a message
 *   may come twice, or be overtaken. Samples of another kind are judged as such numbers are.
 *
 * Of a slow driver too few messages fall into that time. So of messages whose numbers contradict
 * each other the last four count as well, over at most half a minute: three of the same kind are
 * reported. */
#ifndef OCT_DAEMON_DRIVER_H
#define OCT_DAEMON_DRIVER_H

#include "config/config.h"
#include "pipeline/ingest/driver_watch.h"

enum { OCT_DRIVER_SLICES = 10 }; /* of 150 ms */
enum { OCT_DRIVER_LAST = 4 };    /* looks that found messages */

/* How many messages came in one slice of time. */
struct oct_driver_slice {
    uint32_t n[OCT_N_DRIVER_FAULTS];
};

/* The majority of the messages of one look: a fault of numbers, or OCT_DRIVER_RIGHT. */
struct oct_driver_last {
    uint64_t time_ns; /* 0: none */
    unsigned fault;
};

struct oct_driver {
    unsigned fault;            /* OCT_DRIVER_RIGHT: none */
    uint64_t n_messages;       /* since it was found, and those that showed it */
    char what[160], cure[192]; /* "1000 samples a line come, camera.samples is 1024" */
    char plain[128];           /* the same for whoever sits at the window (driver_plain.h) */

    const struct oct_driver_watch *watch; /* of which session */
    struct oct_driver_slice slices[OCT_DRIVER_SLICES];
    unsigned newest;                              /* of the slices */
    struct oct_driver_last last[OCT_DRIVER_LAST]; /* the newest first */
    uint64_t slice_ns, seen[OCT_N_DRIVER_FAULTS];
    uint64_t hold_until_ns, told_knocks_ns;
    uint64_t told_ns, quiet_ns; /* when it was logged, and how long it is not logged again */
    unsigned told;
};

/* Looks, and logs a new or changed fault at once, then again after 1, 2, 4, ... at most 64 seconds;
 * never twice within a second. */
void oct_driver_look(struct oct_driver *driver, struct oct_driver_watch *watch,
                     const struct oct_config *config, uint64_t now_ns);

/* "40 messages refused: 1000 samples a line come, camera.samples is 1024"; "" if nothing is. */
void oct_driver_text(const struct oct_driver *driver, char *text, size_t n_bytes);

/* Words for a fault: what is wrong with such a message, and what to do about it. */
void oct_driver_explain(struct oct_driver *driver, unsigned fault,
                        const struct oct_driver_message *message, const struct oct_config *config);

#endif
