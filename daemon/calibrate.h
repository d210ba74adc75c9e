/* The control command `calibrate` and the topic of the same name: the dispersion that makes the
 * next B-scans sharpest (analysis/calibrate/sharpen.h), and one of them before and after.
 *
 * Nothing is changed: keys of section calibration wait for octd to be idle. Main thread only, but
 * for what the errand does. */
#ifndef OCT_DAEMON_CALIBRATE_H
#define OCT_DAEMON_CALIBRATE_H

#include "daemon/errand.h"
#include "pipeline/flow/slots.h"
#include "pipeline/plan/plan.h"

#define OCT_CALIBRATE_BSCANS 2u
#define OCT_CALIBRATE_TIMEOUT_US UINT64_C(10000000)

extern const struct oct_errand_ops oct_calibrate_ops;

/* plan: that of the session, which lasts until the errand has taken its B-scans. limit: the
 * camera's largest sample. NULL: out of memory. */
void *oct_calibrate_create(const struct oct_plan *plan, uint32_t limit);

/* Where before and after are published, as one picture, u8 [lines before, lines after][depth]. */
struct oct_calibrate_topic {
    struct oct_image_form form;
    struct oct_ring *ring;
};

/* finish is right after a failure too, and on zeroed memory. */
enum oct_err oct_calibrate_topic_init(struct oct_calibrate_topic *topic,
                                      const struct oct_plan *plan,
                                      const struct oct_spacing *spacing, struct oct_error *err);
void oct_calibrate_topic_finish(struct oct_calibrate_topic *topic);

/* Publishes what the errand found, if it was this command, it is done well, and its picture has the
 * topic's form. Never waits. */
void oct_calibrate_show(const struct oct_errand *errand, struct oct_calibrate_topic *topic);

#endif
