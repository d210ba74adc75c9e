/* A change of the scan while octd runs: the session is drained, and another is built for the new
 * scan; a recording under way goes on in it with its next file. Then the scan is announced
 * (oct_publisher_announce_scan), and lines of drivers that follow it are heard, and of these alone:
 * lines of the scan before may still be on their way.
 *
 *     wish --> end --> drain --> build --> record again --> announce
 *               |        |         | refused: build what was before
 *               +--------+---------+--> given up: stop, shutdown, a failure
 *
 * First the scan that runs is announced to end: a driver that follows ends its acquisition, so that
 * no line of it is on its way when the gate closes. One that does not is waited for a moment: two
 * B-scans, as a driver looks between its messages, but no longer than for a drain.
 *
 * Main thread only. */
#ifndef OCT_DAEMON_RESCAN_H
#define OCT_DAEMON_RESCAN_H

#include "config/scan_choices.h"
#include "pipeline/ingest/assembler.h"

struct cJSON;
struct oct_daemon;

/* Which scan is asked for. */
struct oct_scan_wish {
    const char *to;     /* a name of scan.choices, "": as configured; NULL: the scan that runs */
    const void *keys;   /* cJSON object of keys of [scan] and their values; NULL: none */
    uint32_t n_volumes; /* after which the driver ends the acquisition; 0: it goes on */
};

enum oct_rescan_step {
    OCT_RESCAN_NONE,
    OCT_RESCAN_ENDS,
    OCT_RESCAN_DRAINS,
    OCT_RESCAN_BUILDS,
    OCT_RESCAN_BUILDS_BEFORE, /* the scan before: the new one was refused */
    OCT_RESCAN_RECORDS,
};

struct oct_rescan {
    enum oct_rescan_step step;
    uint32_t number;           /* of the scan: another for each session */
    uint32_t salt;             /* of this run: its epochs are not those of the run before */
    uint32_t announced;        /* the number that was; 0: none */
    uint64_t ends_by_ns;       /* ENDS: the deadline */
    bool only_followers;       /* of the session that is built next */
    uint32_t n_volumes;        /* oct_scan_wish */
    uint32_t n_volumes_before; /* to return to when the new one is refused */
    char configured_choice[OCT_SCAN_CHOICE_BYTES]; /* that is the same scan; "": none */
    struct oct_config configured;                  /* its [scan] is what "" returns to */
    struct oct_config before;                      /* likewise */
    char choice[OCT_SCAN_CHOICE_BYTES], choice_before[OCT_SCAN_CHOICE_BYTES]; /* "": configured */
    bool is_by_keys, was_by_keys;                                             /* no choice */
    bool must_record;         /* a recording was under way */
    uint32_t record_volumes;  /* what it has still to hold; 0: no end */
    struct oct_error failure; /* of the recording under way, while it ended */
    struct oct_error refusal; /* of the new scan, once the one before runs again */
};

/* Takes the configuration of octd's start; checks scan.choices. */
enum oct_err oct_rescan_init(struct oct_daemon *daemon, struct oct_error *err);

/* Begins the change, or while octd is stopped or in error notes it for its next start. Refused as
 * other commands are, and for a scan that cannot be. */
enum oct_err oct_daemon_rescan(struct oct_daemon *daemon, const struct oct_scan_wish *wish,
                               struct oct_error *err);

/* Whether the scan that was asked for does not run yet. */
bool oct_rescan_is_under_way(const struct oct_daemon *daemon);

/* Before the next job is begun: goes on to the next step, or announces what runs. */
void oct_rescan_tick(struct oct_daemon *daemon);

/* A client's stop: no change goes on, and after the next start lines of any driver are heard. */
void oct_rescan_give_up(struct oct_daemon *daemon);

/* A key of section [scan] was set, while octd is stopped: what the list's scans differ from. */
void oct_rescan_note_set(struct oct_daemon *daemon, const char *key, const char *value);

/* A session is about to be built: what is heard then. */
struct oct_epochs oct_rescan_next_epochs(struct oct_daemon *daemon);

/* The scan of the session: number, epochs, pattern, lines, ...; of the reply and of the topic. */
void oct_rescan_describe(const struct oct_daemon *daemon, struct cJSON *reply);

/* Adds number, choice, choices and the last refusal to the object scan of the status. */
void oct_rescan_describe_choices(const struct oct_daemon *daemon, struct cJSON *scan);

#endif
