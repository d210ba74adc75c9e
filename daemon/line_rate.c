#include "daemon/line_rate.h"

#include "pipeline/base/log.h"

#include <math.h>

#define MEASURE_NS UINT64_C(1000000000)
#define ANEW_NS (MEASURE_NS / 5)  /* the first ones of an acquisition */
#define HOLDS_NS (3 * MEASURE_NS) /* what was measured of the acquisition before */
#define TELL_NS (10 * MEASURE_NS)
#define CLOSE 0.05

static bool is_close(double a, double b)
{
    return fabs(a - b) <= CLOSE * b;
}

static void log_rate(struct oct_line_rate *r, const struct oct_config *config, uint64_t now_ns)
{
    if (oct_config_is_set(config, "scan.line_rate_hz") ||
        (r->told_ns && now_ns - r->told_ns < TELL_NS))
        return;
    r->told_ns = now_ns;
    oct_log(OCT_LOG_INFO,
            "scan.line_rate_hz is not set: the camera's %.6g A-lines a second are taken for it "
            "(measured by %s)",
            r->measured_hz,
            r->measured_hz == r->by_camera_hz ? "its own clock"
                                              : "octd's clock: its own does not keep pace");
}

/* A single deviating measurement (a queue that is emptied, a pause) is no new rate: two must agree.
 * Where both clocks agree it is no such case, so that a new acquisition needs only one. */
static void accept_rate(struct oct_line_rate *r, double hz, bool keeps_pace,
                        const struct oct_config *config, uint64_t now_ns)
{
    bool sure = is_close(hz, r->last_hz) || (r->anew_ns && keeps_pace);
    r->last_hz = hz;
    if (!sure)
        return;
    r->anew_ns = 0;
    if (r->measured_hz > 0 && is_close(hz, r->measured_hz))
        return;
    r->measured_hz = hz;
    log_rate(r, config, now_ns);
}

static void measure(struct oct_line_rate *r, const struct oct_config *config, uint64_t now_ns)
{
    const struct oct_lines_header *from = &r->since.header, *to = &r->look.header;
    double lines = (double)(to->first_line - from->first_line);
    double by_octd_ns = (double)(r->look.arrival_ns - r->since.arrival_ns);
    double by_camera_ns = to->time_ns > from->time_ns ? (double)(to->time_ns - from->time_ns) : 0;
    bool keeps_pace = by_camera_ns > 0.5 * by_octd_ns && by_camera_ns < 2 * by_octd_ns;
    r->by_octd_hz = lines * 1e9 / by_octd_ns;
    r->by_camera_hz = by_camera_ns > 0 ? lines * 1e9 / by_camera_ns : 0;
    accept_rate(r, keeps_pace ? r->by_camera_hz : r->by_octd_hz, keeps_pace, config, now_ns);
}

static void begin_anew(struct oct_line_rate *r)
{
    r->since = r->look;
    r->last_hz = 0;
    if (!r->anew_ns)
        r->anew_ns = r->look.arrival_ns;
}

void oct_line_rate_look(struct oct_line_rate *r, struct oct_driver_watch *watch,
                        const struct oct_config *config, uint64_t now_ns)
{
    if (r->watch != watch)
        *r = (struct oct_line_rate){.watch = watch, .told_ns = r->told_ns};
    uint64_t number = r->look.number;
    if (!oct_driver_watch_look(watch, &r->look) || r->look.number == number)
        return;
    const struct oct_lines_header *h = &r->look.header;
    if (r->since.number == 0 || h->epoch != r->since.header.epoch ||
        h->first_line <= r->since.header.first_line) {
        begin_anew(r);
    } else if (r->look.arrival_ns - r->since.arrival_ns >= (r->anew_ns ? ANEW_NS : MEASURE_NS)) {
        measure(r, config, now_ns);
        r->since = r->look;
    }
    if (r->anew_ns && r->look.arrival_ns - r->anew_ns > HOLDS_NS)
        r->measured_hz = 0;
}

double oct_line_rate_hz(const struct oct_line_rate *r, const struct oct_config *config)
{
    bool measured = r->measured_hz > 0 && !oct_config_is_set(config, "scan.line_rate_hz");
    return measured ? r->measured_hz : config->scan.line_rate_hz;
}

const char *oct_line_rate_from(const struct oct_line_rate *r, const struct oct_config *config)
{
    return oct_config_is_set(config, "scan.line_rate_hz") ? "config"
           : r->measured_hz > 0                           ? "camera"
                                                          : "default";
}
