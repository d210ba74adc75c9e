#include "analysis/enface/depths.h"

#include "analysis/enface/enface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UM 1e6
#define N_UNITS 3

static const char *const unit_names[N_UNITS] = {
    [OCT_DEPTH_PX] = "", [OCT_DEPTH_UM] = "um", [OCT_DEPTH_SHARE] = "%"};

/* Up to text + n. */
static bool parse_depth(struct oct_depth *depth, const char *text, size_t n)
{
    char *end;
    const double at = strtod(text, &end);
    if (n == 0 || strspn(text, "0123456789.") == 0 || memchr(text, 'x', n))
        return false;
    for (int i = 0; i < N_UNITS; i++)
        if (strlen(unit_names[i]) == n - (size_t)(end - text) &&
            strncmp(end, unit_names[i], strlen(unit_names[i])) == 0) {
            *depth = (struct oct_depth){i == OCT_DEPTH_SHARE ? at / 100 : at, i};
            return i == OCT_DEPTH_PX   ? strspn(text, "0123456789") == n && at <= UINT32_MAX
                   : i == OCT_DEPTH_UM ? at <= MOST_UM
                                       : at <= 100;
        }
    return false;
}

bool oct_depths_parse(struct oct_depths *depths, const char *text)
{
    const char *colon = strchr(text, ':');
    struct oct_depths read;
    if (!colon || !parse_depth(&read.first, text, (size_t)(colon - text)) ||
        !parse_depth(&read.last, colon + 1, strlen(colon + 1)) ||
        (read.first.unit == read.last.unit && !(read.first.at < read.last.at)))
        return false;
    *depths = read;
    return true;
}

/* px from the top; the slab's own pixels are those that it touches. */
static double to_px(const struct oct_depth *depth, uint32_t n, double um)
{
    return depth->unit == OCT_DEPTH_PX   ? depth->at
           : depth->unit == OCT_DEPTH_UM ? depth->at / um
                                         : depth->at * n;
}

enum oct_err oct_depths_find(const struct oct_depths *depths, const char *path, uint32_t n,
                             double um, uint32_t *first, uint32_t *last, struct oct_error *err)
{
    const struct oct_depth *a = &depths->first, *b = &depths->last;
    const bool is_um = a->unit == OCT_DEPTH_UM || b->unit == OCT_DEPTH_UM;
    const bool is_share = a->unit == OCT_DEPTH_SHARE && b->unit == OCT_DEPTH_SHARE;
    const double from = to_px(a, n, um), to = to_px(b, n, um);
    if (is_um && !(um > 0))
        return oct_fail(err, OCT_E_ARG,
                        "%s: the size of its depth pixels is not known: give the slab in depth "
                        "pixels, or in shares, as 30%%:50%%",
                        path);
    if (is_share && (!(a->at >= 0) || !(b->at <= 1) || !(a->at < b->at)))
        return oct_fail(err, OCT_E_ARG, "%s: no slab %g:%g: shares of the depth go from 0 to 1",
                        path, a->at, b->at);
    if (!(from < to) || !(ceil(to) <= n))
        return oct_fail(err, OCT_E_ARG, "%s: no slab %.10g%s:%.10g%s: its depth is 0:%u", path,
                        a->unit == OCT_DEPTH_SHARE ? 100 * a->at : a->at, unit_names[a->unit],
                        b->unit == OCT_DEPTH_SHARE ? 100 * b->at : b->at, unit_names[b->unit], n);
    if (is_share) { /* as a live one is understood */
        oct_enface_slab(a->at, b->at, n, first, last);
        *last += *first;
        return OCT_OK;
    }
    *first = (uint32_t)from;
    *last = (uint32_t)ceil(to);
    return OCT_OK;
}
