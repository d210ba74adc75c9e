/* A simulated camera whose mirrors follow octd: the scan as octd announces it (topic `scan`), and
 * the eye of a recorded raster, of which it shows the A-line nearest to where the mirrors stand.
 *
 * One thread. */
#ifndef OCT_TOOLS_FOLLOWED_H
#define OCT_TOOLS_FOLLOWED_H

#include "formats/recording.h"
#include "pipeline/net/curve.h"
#include "pipeline/plan/scan.h"

struct oct_followed_scan {
    struct oct_scan scan;
    uint32_t number;                  /* of the scan, of this run of octd */
    uint32_t first_epoch, last_epoch; /* for oct_client_follow */
    uint64_t n_volumes;               /* then the acquisition ends; 0: it goes on */
    bool ends;                        /* now: another scan follows */
};

struct oct_scan_follower;

/* Subscribes to the topic at octd's publish.endpoint; octd need not be there yet. OCT_E_CONFIG. */
enum oct_err oct_scan_follower_create(struct oct_scan_follower **follower, const char *endpoint,
                                      const struct oct_curve_files *keys, struct oct_error *err);
void oct_scan_follower_destroy(struct oct_scan_follower *follower);

/* Waits at most wait_ms for an announcement of another scan than the last, or of its end. False:
 * none came. What is no announcement is ignored, and so is the pattern `file`, whose positions it
 * does not say. */
bool oct_scan_follower_look(struct oct_scan_follower *follower, int wait_ms,
                            struct oct_followed_scan *followed);

struct oct_scanned_eye {
    struct oct_scan scan; /* of the recording: a raster */
    uint32_t n_samples;
    uint16_t *samples; /* [V][M][N] */
};

/* Reads the recording's first volume. OCT_E_CONFIG: it is no raster of a known field, or larger
 * than most_bytes. finish is fine after a failure, and on zeroed memory. */
enum oct_err oct_scanned_eye_read(struct oct_scanned_eye *eye, struct oct_recording *recording,
                                  const struct oct_scan *scan, uint64_t most_bytes,
                                  struct oct_error *err);
void oct_scanned_eye_finish(struct oct_scanned_eye *eye);

/* [N], what the camera sees as line i of those that are sent, counted from the scan's beginning:
 * the A-line nearest to where the mirrors stand; beyond the field that of its border. */
const uint16_t *oct_scanned_eye_sent(const struct oct_scanned_eye *eye, const struct oct_scan *scan,
                                     uint64_t i);

#endif
