/* Whether this machine and its disk will keep up, said before it matters: short measurements and
 * what follows from them. */
#ifndef OCT_PIPELINE_FLOW_FORECAST_H
#define OCT_PIPELINE_FLOW_FORECAST_H

#include "pipeline/flow/engine.h"

#include <stdbool.h>
#include <stddef.h>

/* Both, measured twice, together stay under 200 ms on a machine that is not hopeless. */
#define OCT_FORECAST_ENGINE_US 40000u
#define OCT_FORECAST_DISK_US 50000u

/* Less than this much more than wanted is called too slow: computing and writing share a machine
 * that has more to do. */
#define OCT_FORECAST_MARGIN 1.1

/* So many measurements must say that it is too slow before anybody is warned. */
#define OCT_FORECAST_AGREEING 2u

/* More than this share of the time that its threads wanted a processor, they had to wait for one:
 * the machine was busy with something else, and what was measured says little. */
#define OCT_FORECAST_BUSY 0.1

/* What other work leaves of a rate may be less by far (an eleventh was seen); what is slower still
 * is told even then. */
#define OCT_FORECAST_EXCUSE 100

/* The last measurements of one rate. All zero: none. */
enum { OCT_FORECAST_KEPT = 5 };
struct oct_forecast_series {
    unsigned n_taken; /* since it began; the newest OCT_FORECAST_KEPT are kept */
    double rate[OCT_FORECAST_KEPT], waited[OCT_FORECAST_KEPT];
};

/* rate 0 (not measured) is not kept. waited: share of time, see OCT_FORECAST_BUSY. */
void oct_forecast_series_add(struct oct_forecast_series *series, double rate, double waited);

/* The median of those kept that were not disturbed; if all were, the largest, since that was
 * disturbed least. 0: none. *busy: all were. */
double oct_forecast_series_rate(const struct oct_forecast_series *series, bool *busy);

/* How many of those kept, disturbed or not, lie below a limit. */
unsigned oct_forecast_series_below(const struct oct_forecast_series *series, double limit);

/* How long this process's threads have run and have waited for a processor, all together. What
 * passes between two looks is told by the second; 0 where the system does not say. */
struct oct_forecast_load {
    double ran_s, waited_s;
};
void oct_forecast_load_begin(struct oct_forecast_load *load);
double oct_forecast_load_end(const struct oct_forecast_load *load); /* share waited, 0..1 */

struct oct_forecast_disk {
    double bytes_per_s; /* 0: not measured */
    double bytes_free;
};

struct oct_forecast_setup {
    double wanted_hz;                    /* A-lines a second that come */
    bool rate_known;                     /* configured, or seen; else nobody is warned */
    double engine_hz;                    /* that are computed, 0: not measured */
    unsigned n_engine_slow, n_disk_slow; /* measurements that say it is too slow */
    bool engine_busy, disk_busy;         /* the machine was, during all of them */
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
    bool slow_engine, slow_disk; /* by OCT_FORECAST_AGREEING measurements at least */
    bool busy, told_busy;        /* the machine was, during one; during what is called slow */
    bool rate_known;
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
