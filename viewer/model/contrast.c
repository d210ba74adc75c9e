#include "viewer/model/picture.h"

#include <math.h>

/* Values beyond this have no meaning in counts^2 or dB. The bound keeps all sums below finite. */
#define LIMIT 1e30

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* Returns the narrowest range: 1 dB, or one u8 step of the published range. */
static double narrowest(const struct oct_view_contrast *c)
{
    return c->log ? 1.0 : (c->published_hi - c->published_lo) / 255.0;
}

void oct_view_contrast_init(struct oct_view_contrast *contrast, bool log)
{
    *contrast = (struct oct_view_contrast){.log = log, .range = OCT_CONTRAST_PUBLISHED, .gamma = 1};
    oct_view_contrast_publish(contrast, 0.0, log ? 60.0 : 1.0);
}

void oct_view_contrast_publish(struct oct_view_contrast *contrast, double lo, double hi)
{
    lo = isfinite(lo) ? clamp(lo, -LIMIT, LIMIT) : 0.0;
    hi = isfinite(hi) ? clamp(hi, -LIMIT, LIMIT) : lo;
    /* A B-scan of one value has lo == hi. Nor may rounding make the range vanish. */
    double least = fmax(1e-9, 1e-9 * fabs(lo));
    if (hi - lo < least)
        hi = lo + least;
    contrast->published_lo = lo;
    contrast->published_hi = hi;
    if (contrast->range == OCT_CONTRAST_PUBLISHED) {
        contrast->lo = lo;
        contrast->hi = hi;
    }
}

void oct_view_contrast_adapt(struct oct_view_contrast *contrast, double lo, double hi, double pace)
{
    if (contrast->range != OCT_CONTRAST_AUTO || !isfinite(lo) || !isfinite(hi))
        return;
    lo = contrast->lo + pace * (clamp(lo, -LIMIT, LIMIT) - contrast->lo);
    hi = contrast->hi + pace * (clamp(hi, -LIMIT, LIMIT) - contrast->hi);
    double least = fmax(narrowest(contrast), 1e-9 * fabs(lo));
    contrast->lo = lo;
    contrast->hi = hi - lo < least ? lo + least : hi;
}

void oct_view_contrast_move(struct oct_view_contrast *contrast, double level, double width)
{
    double middle = clamp((contrast->lo + contrast->hi) / 2.0 + level, -LIMIT, LIMIT);
    double least = fmax(narrowest(contrast), 1e-9 * fabs(middle));
    double wide = clamp(contrast->hi - contrast->lo + width, least, LIMIT);

    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->lo = middle - wide / 2.0;
    contrast->hi = middle + wide / 2.0;
}

void oct_view_contrast_move_lo(struct oct_view_contrast *contrast, double by)
{
    double least = fmax(narrowest(contrast), 1e-9 * fabs(contrast->hi));

    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->lo = clamp(contrast->lo + by, contrast->hi - LIMIT, contrast->hi - least);
}

void oct_view_contrast_move_hi(struct oct_view_contrast *contrast, double by)
{
    double least = fmax(narrowest(contrast), 1e-9 * fabs(contrast->lo));

    contrast->range = OCT_CONTRAST_MANUAL;
    contrast->hi = clamp(contrast->hi + by, contrast->lo + least, contrast->lo + LIMIT);
}

double oct_view_contrast_step(const struct oct_view_contrast *contrast)
{
    return contrast->log ? 1.0 : (contrast->published_hi - contrast->published_lo) / 40.0;
}

void oct_view_contrast_set_range(struct oct_view_contrast *contrast, enum oct_view_range range)
{
    contrast->range = range;
    oct_view_contrast_publish(contrast, contrast->published_lo, contrast->published_hi);
}

void oct_view_contrast_set_gamma(struct oct_view_contrast *contrast, double gamma)
{
    contrast->gamma = gamma > 0 ? clamp(gamma, OCT_VIEW_LEAST_GAMMA, OCT_VIEW_MOST_GAMMA) : 1;
}

uint8_t oct_view_contrast_level(const struct oct_view_contrast *contrast, double value)
{
    double level = (value - contrast->lo) / (contrast->hi - contrast->lo) * 255.0;

    if (!(level > 0.0)) /* NaN too */
        return 0;
    return level >= 255.0 ? 255 : (uint8_t)lround(level);
}

void oct_view_contrast_colours(const struct oct_view_contrast *contrast, uint32_t argb[256])
{
    for (unsigned i = 0; i < 256; i++) {
        double bent = 255.0 * pow(i / 255.0, contrast->gamma);
        argb[i] = oct_view_palette_argb(contrast->palette, (uint8_t)lround(bent));
    }
}

void oct_view_contrast_table(const struct oct_view_contrast *contrast, uint32_t argb[256])
{
    double range = contrast->published_hi - contrast->published_lo;
    uint32_t colours[256];

    oct_view_contrast_colours(contrast, colours);
    for (unsigned i = 0; i < 256; i++)
        argb[i] =
            colours[oct_view_contrast_level(contrast, contrast->published_lo + i / 255.0 * range)];
}
