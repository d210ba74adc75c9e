/* What the daemon last said about itself, from the bytes of a status reply. Everything in there is
 * outside bytes: what is missing, of the wrong kind or out of range is unknown (0, NaN, ""). */
#ifndef OCT_VIEWER_MODEL_DAEMON_STATE_H
#define OCT_VIEWER_MODEL_DAEMON_STATE_H

#include "pipeline/base/err.h"
#include "viewer/model/enface_wishes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VIEW_LABEL_BYTES 128
#define OCT_VIEW_MOST_TROUBLES 8u
#define OCT_VIEW_MOST_ANALYSES 16u

/* A row of the analyses. */
struct oct_view_analysis {
    char name[24];
    double late_share, bscan_ms; /* lately: of the B-scans skipped, work at each; NaN: not told */
    bool at_rest, failing, late; /* late: it does not follow */
    char error[128];             /* the last; "": none */
};

struct oct_view_daemon {
    bool known;         /* a status came at least once; without it the rest means nothing */
    bool reachable;     /* the newest question was answered in time */
    uint64_t answer_ns; /* when the newest answer came */
    bool pending;       /* octd granted something and has not done it yet */
    bool disk_slow;     /* the disk holds up the recording */
    unsigned n_troubles;
    char trouble[OCT_VIEW_MOST_TROUBLES][32]; /* words of `degraded` that stand nowhere else here */
    bool analyses_told;
    unsigned n_analyses;
    struct oct_view_analysis analysis[OCT_VIEW_MOST_ANALYSES];
    struct { /* what the camera driver does wrong, and the cure; "": nothing */
        char text[256], cure[256];
        char plain[128]; /* what, without names of fields and keys; "": octd has no such words */
    } driver;
    char state[16]; /* idle | running | recording | error */
    char last_error[256];
    double pid; /* of octd: another one, another octd; 0: not known */
    double uptime_s, acquisitions;
    double lines_received, lines_missing; /* since octd's start, as those below; without
                                             those that the operator's stop and start cut off */
    double bscans_dropped, bscans_done, bscans_published;
    double latency_p50_us, latency_p99_us;
    double axial_um, lateral_um, slow_um; /* of a pixel, an A-line, a B-scan; NaN: not known */
    double set_line_rate_hz;              /* as configured; 0: nobody did, or not known */
    double lines;                         /* of a B-scan; 0: not known */
    bool pixels_told, log;                /* whether octd said what pixels are; they are dB */
    bool has_enface;                      /* octd computes an en face picture */
    bool enface_told;                     /* and said how: */
    struct oct_view_enface_settings enface;
    double average_bscans; /* of octd's live average; 1 or 0: it makes none */
    double saturation;     /* the largest sample; 0: not known */
    struct {               /* what octd computes beside the stream on request */
        double number;     /* since octd's start; 0: none */
        bool pending;
        char why[256]; /* it came to nothing; "": it did not, or is under way */
    } errand;
    double disk_bytes_free; /* NaN: not known */
    struct {
        bool active, stopping, waiting_for_volume;
        bool failed; /* the last recording failed */
        double elapsed_s, bscans_in_file, bscans_waiting, bytes_per_bscan;
        double volumes_written, volumes_incomplete, bytes_written;
        double volumes;     /* after which octd ends one; 0: it does not; NaN: not told */
        double disk_left_s; /* how long the disk lasts, as octd says; NaN: not known */
        /* How many B-scans of this recording, or the last one, are not in its files; the reason of
         * most of them as record_account names it (""); all of them, in an operator's words:
         * "7 disk too slow, 2 not sent by the camera" */
        double n_lost;
        char lost_why[24], lost_text[160];
        char path[1024]; /* of the newest file, its final name; "": none */
        char file[256];  /* the last part of it */
        char eye[8], pseudonym[OCT_VIEW_LABEL_BYTES];
    } record;
    struct {                        /* the seconds that octd keeps in memory (record last) */
        double bscans_most, bscans; /* as many at most, now; 0: it keeps none */
        double length_s;            /* how long those of now lasted */
        bool saving;
        double n_saved, n_lost, n_files; /* B-scans in the file, missing from it; files so far */
        char path[1024], file[256];      /* its name, and the last part of it; "": none yet */
        char error[256];                 /* of the last one; "": none */
    } last;
};

/* The row of that name; NULL: there is none. */
const struct oct_view_analysis *oct_view_daemon_analysis(const struct oct_view_daemon *daemon,
                                                         const char *name);

/* Reads a status reply and sets known; the caller sets reachable and answer_ns. OCT_E_FORMAT: it is
 * no status reply, and *daemon is as it was. */
enum oct_err oct_view_daemon_read(struct oct_view_daemon *daemon, const char *json, size_t n_bytes,
                                  struct oct_error *err);

#endif
