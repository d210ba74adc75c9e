/* Forecasts whether this machine and its disk will keep up: short measurements, and the conclusions
 * from them. */
#ifndef OCT_PIPELINE_FLOW_FORECAST_H
#define OCT_PIPELINE_FLOW_FORECAST_H

#include "pipeline/flow/engine.h"

#include <stdbool.h>
#include <stddef.h>

/* Two measurements of each take less than 200 ms together on a machine that is fast enough at
 * all. */
#define OCT_FORECAST_ENGINE_US 40000u
#define OCT_FORECAST_DISK_US 50000u

/* A measured rate below this multiple of the wanted one counts as too slow: computing and writing
 * share the machine with other work. */
#define OCT_FORECAST_MARGIN 1.1

/* This many measurements must be too slow before a warning is given. */
#define OCT_FORECAST_AGREEING 2u

/* If the threads waited for a processor during more than this share of the time they wanted one,
 * the machine was busy with other work, and the measurement says little. */
#define OCT_FORECAST_BUSY 0.1

/* Other work may reduce a measured rate by much (to an eleventh was seen); of a busy machine only a
 * rate below the wanted one by more than this factor counts as too slow. */
#define OCT_FORECAST_EXCUSE 100

/* The last measurements of one rate. All zero: none. */
enum { OCT_FORECAST_KEPT = 5 };
struct oct_forecast_series {
    unsigned n_taken; /* measurements so far; the newest OCT_FORECAST_KEPT are kept */
    double rate[OCT_FORECAST_KEPT], waited[OCT_FORECAST_KEPT];
};

/* Adds a measurement; rate 0 (not measured) is ignored. waited: share of time, see
 * OCT_FORECAST_BUSY. */
void oct_forecast_series_add(struct oct_forecast_series *series, double rate, double waited);

/* Returns the median of the undisturbed measurements that are kept; if all were disturbed, the
 * largest of them, which was disturbed least. 0: there are none. *busy: all were disturbed. */
double oct_forecast_series_rate(const struct oct_forecast_series *series, bool *busy);

/* Returns how many of those kept, disturbed or not, lie below a limit. */
unsigned oct_forecast_series_below(const struct oct_forecast_series *series, double limit);

/* How long all threads of this process have run and have waited for a processor. _end returns the
 * share waited since _begin; 0 where the system does not report it. */
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
    const char *rate_from;               /* in words; NULL: a default, of which nothing warns */
    double engine_hz;                    /* that are computed, 0: not measured */
    unsigned n_engine_slow, n_disk_slow; /* measurements that say it is too slow */
    bool engine_busy, disk_busy;         /* the machine was, during all of them */
    struct oct_forecast_disk disk;
    double bscan_bytes;     /* of a B-scan in a file, 0: nothing is recorded */
    unsigned n_lines;       /* A-lines of a B-scan */
    unsigned ring_bscans;   /* slots of the raw ring */
    unsigned buffer_bscans; /* what a recording may fall behind before it loses B-scans */
};

/* Two things may be too slow, with different losses. A slow engine loses lines, once the raw ring
 * is full. A slow disk loses B-scans of a recording, once the recorder's memory is full; pictures
 * go on then. */
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
    const char *rate_from;       /* as in the setup */
};

/* Lets an engine that is not in use yet compute noise for about budget_us, with the display
 * settings that will be used: limits that follow the picture cost time. Returns A-lines a second,
 * the median of three trials of a third each (fewer of a slow engine); 0 when the engine failed or
 * a B-scan is too large for a short trial. */
double oct_forecast_engine(const struct oct_engine_ops *ops, struct oct_engine *engine,
                           const struct oct_plan *plan, const struct oct_display *display,
                           unsigned budget_us);

/* Writes for about budget_us into an unnamed file in the directory (where those do not exist, one
 * that is unlinked at once), past the page cache where that is possible, and syncs. Leaves nothing
 * behind. OCT_E_IO: the directory does not exist or cannot be written. */
enum oct_err oct_forecast_disk(const char *directory, unsigned budget_us,
                               struct oct_forecast_disk *disk, struct oct_error *err);

void oct_forecast_make(struct oct_forecast *forecast, const struct oct_forecast_setup *setup);

/* One line: rate wanted, rates found, seconds of ring and buffer, minutes of disk. */
void oct_forecast_text(const struct oct_forecast *forecast, char *text, size_t bytes);

/* One line that says what is too slow and what to do; "" when nothing is. */
void oct_forecast_warning(const struct oct_forecast *forecast, char *text, size_t bytes);

#endif
