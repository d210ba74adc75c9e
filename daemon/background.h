/* The control command background: the mean spectrum of the next B-scans, an errand (errand.h), and
 * its values, which are too many for the status. Main thread only. */
#ifndef OCT_DAEMON_BACKGROUND_H
#define OCT_DAEMON_BACKGROUND_H

#include "daemon/daemon.h"

#define OCT_BACKGROUND_VALUES 8192u /* most in a reply: it takes a few ms to write */

/* Begins one over the next n_bscans whole B-scans. Refused as oct_daemon_errand refuses. */
enum oct_err oct_daemon_background(struct oct_daemon *daemon, unsigned n_bscans, double timeout_s,
                                   struct oct_error *err);

/* Adds "number", "first", "samples" and "values", those from sample `first` on, of the last
 * background to a reply. OCT_E_AGAIN: it is under way; OCT_E_STATE: there is none, or it failed;
 * OCT_E_ARG: it has no such sample. */
enum oct_err oct_daemon_background_values(const struct oct_daemon *daemon, uint32_t first,
                                          struct cJSON *reply, struct oct_error *err);

#endif
