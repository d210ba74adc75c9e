/* Reading n items from coarse to fine: every 64th, then those between, and so on. Each stands for
 * those after it until they are read themselves. Pure. */
#ifndef OCT_VIEWER_PLAY_FILL_H
#define OCT_VIEWER_PLAY_FILL_H

#include <stdbool.h>
#include <stdint.h>

struct oct_play_fill {
    uint32_t n, next, step, n_done;
};

void oct_play_fill_begin(struct oct_play_fill *fill, uint32_t n);

/* The item that comes next, which stands for *n_for items from it on. False: all were given. */
bool oct_play_fill_next(struct oct_play_fill *fill, uint32_t *item, uint32_t *n_for);

double oct_play_fill_share(const struct oct_play_fill *fill);

#endif
