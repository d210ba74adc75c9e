#include "viewer/contrast.h"

#include <math.h>

/* Values beyond this have no meaning in counts^2 or dB; it keeps all sums below finite. */
#define LIMIT 1e30

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* The narrowest range: 1 dB, or what one u8 step of the published range is. */
static double narrowest(const struct oct_view_contrast *c)
{
    return c->log ? 1.0 : (c->published_hi - c->published_lo) / 255.0;
}

void oct_view_contrast_init(struct oct_view_contrast *contrast, bool log)
{
    *contrast = (struct oct_view_contrast){.log = log, .follows = true};
    oct_view_contrast_publish(contrast, 0.0, log ? 60.0 : 1.0);
}

void oct_view_contrast_publish(struct oct_view_contrast *contrast, double lo, double hi)
{
    lo = isfinite(lo) ? clamp(lo, -LIMIT, LIMIT) : 0.0;
    hi = isfinite(hi) ? clamp(hi, -LIMIT, LIMIT) : lo;
    /* A B-scan of one value has lo == hi; a range must not vanish in rounding either. */
    double least = fmax(1e-9, 1e-9 * fabs(lo));
    if (hi - lo < least)
        hi = lo + least;
    contrast->published_lo = lo;
    contrast->published_hi = hi;
    if (contrast->follows) {
        contrast->lo = lo;
        contrast->hi = hi;
    }
}

void oct_view_contrast_move(struct oct_view_contrast *contrast, double level, double width)
{
    double middle = clamp((contrast->lo + contrast->hi) / 2.0 + level, -LIMIT, LIMIT);
    double least = fmax(narrowest(contrast), 1e-9 * fabs(middle));
    double wide = clamp(contrast->hi - contrast->lo + width, least, LIMIT);

    contrast->follows = false;
    contrast->lo = middle - wide / 2.0;
    contrast->hi = middle + wide / 2.0;
}

double oct_view_contrast_step(const struct oct_view_contrast *contrast)
{
    return contrast->log ? 1.0 : (contrast->published_hi - contrast->published_lo) / 40.0;
}

void oct_view_contrast_follow(struct oct_view_contrast *contrast, bool follows)
{
    contrast->follows = follows;
    if (follows)
        oct_view_contrast_publish(contrast, contrast->published_lo, contrast->published_hi);
}

uint8_t oct_view_contrast_grey(const struct oct_view_contrast *contrast, double value)
{
    double grey = (value - contrast->lo) / (contrast->hi - contrast->lo) * 255.0;

    if (!(grey > 0.0)) /* NaN too */
        return 0;
    return grey >= 255.0 ? 255 : (uint8_t)lround(grey);
}

void oct_view_contrast_table(const struct oct_view_contrast *contrast, uint8_t table[256])
{
    double range = contrast->published_hi - contrast->published_lo;

    for (unsigned i = 0; i < 256; i++)
        table[i] = oct_view_contrast_grey(contrast, contrast->published_lo + i / 255.0 * range);
}
