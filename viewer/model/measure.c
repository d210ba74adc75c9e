#include "viewer/model/measure.h"

#include <math.h>
#include <stdio.h>

bool oct_view_proportion_known(double across_um, double down_um)
{
    double ratio = across_um / down_um;

    return isfinite(ratio) && ratio > 0;
}

double oct_view_proportion(uint32_t n_across, double across_um, uint32_t n_down, double down_um)
{
    double pixels = n_down ? (double)n_across / n_down : 1;

    return oct_view_proportion_known(across_um, down_um) ? pixels * (across_um / down_um) : pixels;
}

double oct_view_distance_um(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale)
{
    double lines = b.line - a.line, depth = b.depth - a.depth;
    /* A length straight down needs no lateral spacing, and the other way round. */
    double across = lines == 0 ? 0 : lines * scale.lateral_um;
    double deep = depth == 0 ? 0 : depth * scale.axial_um;

    return hypot(across, deep);
}

void oct_view_distance_text(struct oct_view_point a, struct oct_view_point b,
                            struct oct_view_scale scale, char *text, size_t n_bytes)
{
    double um = oct_view_distance_um(a, b, scale);
    double lines = fabs(b.line - a.line), depth = fabs(b.depth - a.depth);

    if (isfinite(um))
        snprintf(text, n_bytes, "%.1f \u00b5m (across %.1f, deep %.1f)", um,
                 lines == 0 ? 0 : lines * scale.lateral_um,
                 depth == 0 ? 0 : depth * scale.axial_um);
    else if (isfinite(scale.axial_um))
        snprintf(text, n_bytes, "across %.1f A-lines, deep %.1f \u00b5m", lines,
                 depth * scale.axial_um);
    else
        snprintf(text, n_bytes, "across %.1f A-lines, deep %.1f pixels", lines, depth);
}

double oct_view_scale_bar_um(double most_um)
{
    if (!isfinite(most_um) || most_um < 1e-6)
        return 0;
    double power = pow(10, floor(log10(most_um) + 1e-12));
    return power * (most_um >= 5 * power ? 5 : most_um >= 2 * power ? 2 : 1);
}

void oct_view_length_text(double um, char *text, size_t n_bytes)
{
    if (um >= 1000)
        snprintf(text, n_bytes, "%g mm", um / 1000);
    else
        snprintf(text, n_bytes, "%g \u00b5m", um);
}
