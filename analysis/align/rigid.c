#include "analysis/align/rigid.h"

#include "analysis/align/matcher.h"
#include "analysis/align/subpixel.h"

#include <math.h>
#include <stdlib.h>

#define MOST_SD 0.2 /* px, along the surer axis */

struct oct_rigid {
    const struct oct_matcher_ops *ops;
    struct oct_matcher *matcher;
    struct oct_subpixel *subpixel;
    uint32_t height, width, max_dy, max_dx;
    /* Of engines that keep none on the host. */
    bool keeps_levels;
    struct oct_level reference, moving;
    bool has_reference;
};

enum oct_err oct_rigid_create(struct oct_rigid **out, const struct oct_rigid_setup *setup,
                              struct oct_error *err)
{
    *out = NULL;
    struct oct_rigid *rigid = calloc(1, sizeof(*rigid));
    if (!rigid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    struct oct_matcher_setup matcher = {
        .height = setup->height,
        .width = setup->width,
        .max_dy = setup->max_dy,
        .max_dx = setup->max_dx,
        .min_overlap = setup->min_overlap,
        .masked = setup->masked,
        .n_batch = 1,
        .plans_ahead = setup->plans_ahead,
        .gpus = setup->gpus,
        .deadline_ms = setup->deadline_ms,
    };
    uint32_t height = rigid->height = setup->height, width = rigid->width = setup->width;
    enum oct_err e =
        oct_matcher_select(&rigid->ops, &rigid->matcher, setup->backend, &matcher, err);
    if (!e)
        e = oct_subpixel_create(&rigid->subpixel, height, width, err);
    rigid->max_dy = setup->max_dy;
    rigid->max_dx = setup->max_dx;
    rigid->keeps_levels = !e && !rigid->ops->level;
    if (rigid->keeps_levels)
        e = oct_level_init(&rigid->reference, height, width, setup->masked, err);
    if (!e && rigid->keeps_levels)
        e = oct_level_init(&rigid->moving, height, width, setup->masked, err);
    if (e) {
        oct_rigid_destroy(rigid);
        return e;
    }
    *out = rigid;
    return OCT_OK;
}

void oct_rigid_destroy(struct oct_rigid *rigid)
{
    if (!rigid)
        return;
    if (rigid->matcher)
        rigid->ops->destroy(rigid->matcher);
    oct_subpixel_destroy(rigid->subpixel);
    oct_level_finish(&rigid->reference);
    oct_level_finish(&rigid->moving);
    free(rigid);
}

enum oct_err oct_rigid_set_reference(struct oct_rigid *rigid, const struct oct_picture *reference,
                                     struct oct_error *err)
{
    if (reference->height != rigid->height || reference->width != rigid->width)
        return oct_fail(err, OCT_E_ARG, "the reference has %u x %u pixels, not %u x %u",
                        reference->height, reference->width, rigid->height, rigid->width);
    if (!oct_picture_has_contrast(reference))
        return oct_fail(err, OCT_E_ARG,
                        "the reference has no contrast, or less than a tenth of it is valid");
    if (rigid->keeps_levels)
        oct_level_set(&rigid->reference, reference);
    enum oct_err e = rigid->ops->set_reference(rigid->matcher, reference, err);
    rigid->has_reference = !e;
    return e;
}

/* Whether both pictures agree on the place: turned ones, and those of a place beyond the search,
 * stand out of chance at a shift that their frequencies do not agree on. Layers that are level say
 * little along one axis, so that the other decides; neighbours in a volume, sought along the depth
 * alone, share no speckle. */
static bool is_agreed(const struct oct_rigid *rigid, const struct oct_fraction *fraction,
                      double score)
{
    const bool is_line = rigid->max_dy == 0 || rigid->max_dx == 0;
    return is_line || score >= OCT_MATCH_HIGH_SCORE || fraction->sd_y <= MOST_SD ||
           fraction->sd_x <= MOST_SD;
}

enum oct_err oct_rigid_find(struct oct_rigid *rigid, const struct oct_picture *moving,
                            struct oct_shift *shift, struct oct_error *err)
{
    struct oct_match match;
    *shift = (struct oct_shift){.sd_dy = NAN, .sd_dx = NAN, .score = NAN, .significance = NAN};
    if (!rigid->has_reference)
        return oct_fail(err, OCT_E_STATE, "no reference is set");
    if (moving->height != rigid->height || moving->width != rigid->width)
        return oct_fail(err, OCT_E_ARG, "the picture has %u x %u pixels, not %u x %u",
                        moving->height, moving->width, rigid->height, rigid->width);
    enum oct_err e = rigid->ops->load(rigid->matcher, moving, 1, err);
    if (!e)
        e = rigid->ops->find(rigid->matcher, &match, err);
    if (e || isnan(match.score))
        return e;
    const struct oct_level *f = &rigid->moving, *g = &rigid->reference;
    if (rigid->keeps_levels) {
        oct_level_set(&rigid->moving, moving);
    } else {
        f = rigid->ops->level(rigid->matcher, 0);
        g = rigid->ops->level(rigid->matcher, UINT32_MAX);
    }
    struct oct_fraction fraction = {.sd_y = NAN, .sd_x = NAN};
    const bool is_masked = f->is_masked || g->is_masked;
    oct_subpixel_parabola(&match, &fraction.y, &fraction.x);
    /* The edge of a mask lies at whole pixels and would pull the cross-spectrum's maximum there;
     * the scores take no part in that. */
    if (!is_masked)
        oct_subpixel_find(rigid->subpixel, f, g, match.dy, match.dx, &fraction);
    *shift =
        (struct oct_shift){match.dy + fraction.y,
                           match.dx + fraction.x,
                           fraction.sd_y,
                           fraction.sd_x,
                           (double)match.score,
                           (double)match.significance,
                           oct_match_stands_out((double)match.score, (double)match.significance,
                                                rigid->max_dy, rigid->max_dx) &&
                               oct_match_is_inside(&match, rigid->max_dy, rigid->max_dx) &&
                               (is_masked || is_agreed(rigid, &fraction, (double)match.score))};
    return OCT_OK;
}

const char *oct_rigid_running(const struct oct_rigid *rigid)
{
    return rigid->ops->running ? rigid->ops->running(rigid->matcher) : rigid->ops->name;
}
