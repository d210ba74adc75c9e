#include "analysis/rolloff/curve.h"

#include <math.h>
#include <string.h>

void oct_rolloff_curve_clear(struct oct_rolloff_curve *curve, uint32_t depth)
{
    memset(curve, 0, sizeof(*curve));
    curve->depth = depth;
}

void oct_rolloff_curve_add(struct oct_rolloff_curve *curve, const struct oct_rolloff_point *point)
{
    const double share = point->depth_px / curve->depth;
    if (!(share >= 0 && share < 1) || !isfinite(point->peak_db))
        return;
    const unsigned i = (unsigned)(share * OCT_ROLLOFF_MOST_POINTS);
    if (curve->has[i] && curve->part[i].peak_db >= point->peak_db)
        return;
    curve->has[i] = true;
    curve->part[i] = *point;
}

unsigned oct_rolloff_curve_points(const struct oct_rolloff_curve *curve,
                                  struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS])
{
    unsigned n = 0;
    for (unsigned i = 0; i < OCT_ROLLOFF_MOST_POINTS; i++)
        if (curve->has[i])
            points[n++] = curve->part[i];
    return n;
}

struct oct_rolloff_line oct_rolloff_fit(const struct oct_rolloff_point *points, unsigned n,
                                        double first_px)
{
    struct oct_rolloff_line line = {n, NAN, NAN, NAN, NAN};
    double x = 0, y = 0, xx = 0, xy = 0, squares = 0;
    if (n < OCT_ROLLOFF_LEAST_POINTS)
        return line;
    for (unsigned i = 0; i < n; i++) {
        x += points[i].depth_px / n;
        y += points[i].peak_db / n;
    }
    for (unsigned i = 0; i < n; i++) {
        const double dx = points[i].depth_px - x;
        xx += dx * dx;
        xy += dx * (points[i].peak_db - y);
    }
    if (!(xx > 0))
        return line;
    line.db_per_px = xy / xx;
    line.zero_db = y - line.db_per_px * (x + first_px);
    for (unsigned i = 0; i < n; i++) {
        const double off = points[i].peak_db - y - line.db_per_px * (points[i].depth_px - x);
        squares += off * off;
    }
    line.rms_db = sqrt(squares / n);
    line.minus_6db_px = line.db_per_px < 0 ? -6 / line.db_per_px : NAN;
    return line;
}
