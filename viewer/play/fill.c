#include "viewer/play/fill.h"

#define COARSEST 64u

void oct_play_fill_begin(struct oct_play_fill *fill, uint32_t n)
{
    *fill = (struct oct_play_fill){.n = n, .step = COARSEST};
}

bool oct_play_fill_next(struct oct_play_fill *fill, uint32_t *item, uint32_t *n_for)
{
    if (fill->n_done == fill->n)
        return false;
    while (fill->next >= fill->n) {
        fill->step /= 2;
        fill->next = fill->step; /* odd multiples: the even ones were given */
    }
    *item = fill->next;
    *n_for = fill->n - fill->next < fill->step ? fill->n - fill->next : fill->step;
    fill->next += fill->step == COARSEST ? fill->step : 2 * fill->step;
    fill->n_done++;
    return true;
}

double oct_play_fill_share(const struct oct_play_fill *fill)
{
    return fill->n > 0 ? (double)fill->n_done / fill->n : 0;
}
