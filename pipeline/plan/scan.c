#include "pipeline/plan/scan.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265358979323846
#define MOST_PHASE_DEG 90

const char *const oct_scan_pattern_names[] = {"raster", "raster-both", "line", "circle", "radial",
                                              "spiral", "lissajous",   "file", NULL};

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

static bool is_swept(const struct oct_scan *s)
{
    return s->pattern == OCT_SCAN_RASTER || s->pattern == OCT_SCAN_RASTER_BOTH ||
           s->pattern == OCT_SCAN_LINE;
}

static enum oct_err check_sizes(const struct oct_scan *s, struct oct_error *err)
{
    const char *const name = oct_scan_pattern_names[s->pattern];
    if (is_swept(s) || s->pattern == OCT_SCAN_FILE)
        return OCT_OK;
    if (s->width_um <= 0)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.width_um",
                            "scan.width_um: is 0, and the pattern %s needs its width, in um", name);
    if (s->pattern == OCT_SCAN_LISSAJOUS && s->height_um <= 0)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.height_um",
                            "scan.height_um: is 0, and the pattern %s needs its height, in um",
                            name);
    return OCT_OK;
}

enum oct_err oct_scan_check(const struct oct_scan *s, struct oct_error *err)
{
    const double most = s->flyback_lines > 0 ? s->flyback_lines : 0.5;
    if (s->phase_deg != 0 && !is_swept(s))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.phase",
                            "scan.phase: only a sweep has one: set it to 0, or scan.pattern to "
                            "raster, raster-both or line");
    if (s->phase_deg != 0 && at_least_1(s->protocol.line_repeats) > 1)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.phase",
                            "scan.phase: a mirror that stays at points is none that resonates: set "
                            "it to 0, or scan.line_repeats to 1");
    if (s->delay_lines > most)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.trigger_delay_lines",
                            "scan.trigger_delay_lines: is %g, and %g is the most: lines that lag "
                            "behind come within scan.flyback_lines",
                            s->delay_lines, most);
    if (s->pattern == OCT_SCAN_FILE && !s->file)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.positions",
                            "scan.positions: is not set: the pattern file needs a file of x and y, "
                            "in um, a row for each A-line of a volume");
    return check_sizes(s, err);
}

uint32_t oct_scan_sent_lines(const struct oct_scan *s)
{
    return s->n_lines + s->flyback_lines;
}

uint32_t oct_scan_lag(const struct oct_scan *s)
{
    const double whole = floor(s->delay_lines + 0.5);
    return whole <= 0 ? 0 : whole < s->flyback_lines ? (uint32_t)whole : s->flyback_lines;
}

/* Its number within a volume. */
static uint32_t of_volume(const struct oct_scan *s, uint32_t b)
{
    return s->n_bscans ? (uint32_t)(((uint64_t)s->first_bscan + b) % s->n_bscans) : b;
}

bool oct_scan_is_turned(const struct oct_scan *s, uint32_t b)
{
    return s->pattern == OCT_SCAN_RASTER_BOTH && of_volume(s, b) % 2 == 1;
}

/* Of a raster in one direction the rest of the lag moves all alike; A-lines of a point are not
 * mixed with those of another. */
bool oct_scan_is_uneven(const struct oct_scan *s)
{
    return is_swept(s) && at_least_1(s->protocol.line_repeats) == 1 &&
           (s->phase_deg > 0 ||
            (s->pattern == OCT_SCAN_RASTER_BOTH && s->delay_lines != oct_scan_lag(s)));
}

bool oct_scan_has_rows(const struct oct_scan *s)
{
    return is_swept(s) || s->pattern == OCT_SCAN_CIRCLE;
}

bool oct_scan_is_raster(const struct oct_scan *s)
{
    return s->pattern == OCT_SCAN_RASTER || s->pattern == OCT_SCAN_RASTER_BOTH;
}

bool oct_scan_is_one_place(const struct oct_scan *s)
{
    return s->pattern == OCT_SCAN_LINE || s->pattern == OCT_SCAN_CIRCLE;
}

bool oct_scan_is_straight(const struct oct_scan *s)
{
    return is_swept(s) || s->pattern == OCT_SCAN_RADIAL;
}

void oct_scan_box_grow(struct oct_scan_box *box, const double um[2])
{
    for (int axis = 0; axis < 2 && isfinite(um[0] + um[1]); axis++) {
        box->low[axis] = fmin(box->low[axis], um[axis]);
        box->high[axis] = fmax(box->high[axis], um[axis]);
    }
}

double oct_scan_length_um(enum oct_scan_pattern pattern, double width_um)
{
    static const double widths[] = {
        [OCT_SCAN_RASTER] = 1,  [OCT_SCAN_RASTER_BOTH] = 1, [OCT_SCAN_LINE] = 1,
        [OCT_SCAN_CIRCLE] = PI, [OCT_SCAN_RADIAL] = 1,      [OCT_SCAN_FILE] = 0};
    return widths[pattern] * width_um;
}

uint32_t oct_scan_n_places(const struct oct_scan *s)
{
    return s->n_bscans / at_least_1(s->protocol.repeats);
}

uint32_t oct_scan_place(const struct oct_scan *s, uint32_t b)
{
    const uint32_t turn = at_least_1(s->protocol.interleave);
    const uint32_t group = at_least_1(s->protocol.repeats) * turn;
    const uint32_t at = of_volume(s, b);
    return at / group * turn + at % group % turn;
}

uint32_t oct_scan_bscan(const struct oct_scan *s, uint32_t place)
{
    const uint32_t turn = at_least_1(s->protocol.interleave);
    return place / turn * turn * at_least_1(s->protocol.repeats) + place % turn;
}

/* Before centre and angle. s: the share of the B-scan. */
static void pattern_at(const struct oct_scan *scan, uint32_t b, double s, double um[2])
{
    const double n = oct_scan_n_places(scan), place = oct_scan_place(scan, b);
    const double width = scan->width_um > 0 ? scan->width_um : NAN;
    const double height = scan->height_um > 0 ? scan->height_um : NAN;
    const double w = (place + s) / n, turn = 2 * PI * s;
    const double star = PI * place / n, radius = width / 2 * (1 - fabs(1 - 2 * w));
    um[0] = (s - 0.5) * width;
    um[1] = scan->pattern == OCT_SCAN_LINE ? 0 : ((place + 0.5) / n - 0.5) * height;
    if (scan->pattern == OCT_SCAN_CIRCLE) {
        um[0] = width / 2 * cos(turn);
        um[1] = width / 2 * sin(turn);
    } else if (scan->pattern == OCT_SCAN_RADIAL) {
        um[0] = (s - 0.5) * width * cos(star);
        um[1] = (s - 0.5) * width * sin(star);
    } else if (scan->pattern == OCT_SCAN_SPIRAL) {
        um[0] = radius * cos(turn);
        um[1] = radius * sin(turn);
    } else if (scan->pattern == OCT_SCAN_LISSAJOUS) {
        um[0] = width / 2 * sin(turn);
        um[1] = height / 2 * sin(2 * PI * (n - 1) * w);
    }
}

static void place_pattern(const struct oct_scan *scan, double um[2])
{
    const double angle = scan->angle_deg * PI / 180;
    const double x = um[0], y = um[1];
    um[0] = scan->centre_um[0] + (scan->angle_deg != 0 ? x * cos(angle) - y * sin(angle) : x);
    um[1] = scan->centre_um[1] + (scan->angle_deg != 0 ? x * sin(angle) + y * cos(angle) : y);
}

void oct_scan_position(const struct oct_scan *scan, uint32_t b, uint32_t j, double um[2])
{
    const uint32_t repeats = at_least_1(scan->protocol.line_repeats);
    if (scan->pattern == OCT_SCAN_FILE) {
        const uint64_t row = (uint64_t)of_volume(scan, b) * scan->n_lines + j;
        um[0] = scan->file ? scan->file[row][0] : NAN;
        um[1] = scan->file ? scan->file[row][1] : NAN;
        return;
    }
    pattern_at(scan, b, (j / repeats + 0.5) * repeats / scan->n_lines, um);
    place_pattern(scan, um);
}

/* The share of the sweep at the share s of its time. */
static double swept_share(const struct oct_scan *scan, double s)
{
    if (scan->phase_deg <= 0)
        return s;
    const double most = scan->phase_deg * PI / 180;
    const double phase = most * (2 * s - 1);
    return (sin(phase) / sin(most) + 1) / 2;
}

void oct_scan_way(const struct oct_scan *scan, uint32_t b, double i, double um[2])
{
    const uint32_t n = scan->n_lines, repeats = at_least_1(scan->protocol.line_repeats);
    if (scan->pattern == OCT_SCAN_FILE) {
        oct_scan_position(scan, b, i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i, um);
        return;
    }
    const double time = repeats > 1 ? (floor(i / repeats) + 0.5) * repeats : i + 0.5;
    double s = time / n;
    s = is_swept(scan) ? swept_share(scan, s) : s;
    pattern_at(scan, b, oct_scan_is_turned(scan, b) ? 1 - s : s, um);
    place_pattern(scan, um);
}

void oct_scan_sample(const struct oct_scan *scan, uint32_t b, uint32_t k, double um[2])
{
    if (!is_swept(scan) || at_least_1(scan->protocol.line_repeats) > 1) {
        oct_scan_way(scan, b, k - (scan->delay_lines - oct_scan_lag(scan)), um);
        return;
    }
    const double column = oct_scan_column(scan, oct_scan_is_turned(scan, b), k);
    pattern_at(scan, b, (column + 0.5) / scan->n_lines, um);
    place_pattern(scan, um);
}

double oct_scan_column(const struct oct_scan *scan, bool is_turned, uint32_t k)
{
    const double n = scan->n_lines, rest = scan->delay_lines - oct_scan_lag(scan);
    const double time = is_turned ? n - 1 - k : k;
    double s = (time + 0.5 - rest) / n;
    if (scan->phase_deg > 0) { /* beyond its turning point the mirror comes back */
        const double most = MOST_PHASE_DEG / scan->phase_deg;
        s = s < (1 - most) / 2 ? (1 - most) / 2 : s > (1 + most) / 2 ? (1 + most) / 2 : s;
        s = swept_share(scan, s);
    }
    return (is_turned ? 1 - s : s) * n - 0.5;
}
