/* Whether this machine and its disk will keep up, said before it matters: short measurements and
 * what follows from them. */
#ifndef OCT_PIPELINE_FORECAST_H
#define OCT_PIPELINE_FORECAST_H

#include "pipeline/engine.h"

#include <stdbool.h>
#include <stddef.h>

/* Both measurements together stay under 200 ms on a machine that is not hopeless. */
#define OCT_FORECAST_ENGINE_US 60000u
#define OCT_FORECAST_DISK_US 80000u

/* Less than this much more than wanted is called too slow: computing and writing share a machine
 * that has more to do. */
#define OCT_FORECAST_MARGIN 1.1

struct oct_forecast_disk {
    double bytes_per_s; /* 0: not measured */
    double bytes_free;
};

struct oct_forecast_setup {
    double wanted_hz; /* A-lines a second that come */
    double engine_hz; /* that are computed, 0: not measured */
    struct oct_forecast_disk disk;
    double bscan_bytes;     /* of a B-scan in a file, 0: nothing is recorded */
    unsigned n_lines;       /* A-lines of a B-scan */
    unsigned ring_bscans;   /* slots of the raw ring */
    unsigned buffer_bscans; /* what a recording may fall behind before it loses B-scans */
};

/* Two things may be too slow, and each costs something else: the engine lines, when the raw ring
 * is full; the disk B-scans of a recording, when that has no more memory to fall behind.
 * Pictures go on then. */
struct oct_forecast {
    double wanted_hz, engine_hz;
    double disk_hz; /* A-lines a second that the disk takes; 0: unknown, or nothing recorded */
    double ring_s,
        buffer_s;     /* what they hold at the rate wanted; buffer_s 0: nothing is recorded */
    double overrun_s; /* until the ring is full; 0: it keeps up */
    double record_overrun_s; /* until a recording loses B-scans; 0: it does not */
    double disk_min; /* minutes until the disk is full; 0: unknown, or nothing is recorded */
    bool slow_engine, slow_disk;
};

/* Lets an engine that nobody uses yet compute noise for about budget_us, displayed as it will be:
 * limits that follow the picture take their time. A-lines a second, the median of three trials of a
 * third each (fewer of an engine that takes longer); 0 when it failed or when a B-scan is too large
 * for a short trial. */
double oct_forecast_engine(const struct oct_engine_ops *ops, struct oct_engine *engine,
                           const struct oct_plan *plan, const struct oct_display *display,
                           unsigned budget_us);

/* Writes into a file without a name in the directory (where there is no such thing, one whose
 * name goes at once), past the page cache where that is possible, for about budget_us, and
 * syncs. Nothing stays. OCT_E_IO: there is no such directory or it cannot be written. */
enum oct_err oct_forecast_disk(const char *directory, unsigned budget_us,
                               struct oct_forecast_disk *disk, struct oct_error *err);

void oct_forecast_make(struct oct_forecast *forecast, const struct oct_forecast_setup *setup);

/* One line: rate wanted, rates found, seconds of ring and buffer, minutes of disk. */
void oct_forecast_text(const struct oct_forecast *forecast, char *text, size_t bytes);

/* One line that says what is too slow and what to do; "" when nothing is. */
void oct_forecast_warning(const struct oct_forecast *forecast, char *text, size_t bytes);

#endif
