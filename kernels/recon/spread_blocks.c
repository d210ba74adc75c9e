#include "kernels/recon/spread_blocks.h"

#include "pipeline/base/aligned.h"

#include <stdbool.h>
#include <stdlib.h>

/* The first sample of grid point g: below 0 where its samples go on around the line's end. */
static int32_t first_of(const struct oct_spread *spread, uint32_t g, uint32_t n)
{
    uint32_t count = spread->at[g + 1] - spread->at[g];
    bool is_around = spread->first[g] + count > n;
    return (int32_t)spread->first[g] - (is_around ? (int32_t)n : 0);
}

/* What the block reads; a block that no sample reaches has no taps. */
static void place_block(struct oct_spread_block *block, const struct oct_spread *spread,
                        uint32_t g0, uint32_t n)
{
    int32_t low = INT32_MAX, end = INT32_MIN;
    for (uint32_t l = 0; l < OCT_SPREAD_BLOCK; l++) {
        uint32_t g = g0 + l, count = spread->at[g + 1] - spread->at[g];
        if (!count)
            continue;
        int32_t begin = first_of(spread, g, n) - (int32_t)l;
        low = begin < low ? begin : low;
        end = begin + (int32_t)count > end ? begin + (int32_t)count : end;
    }
    *block = (struct oct_spread_block){.base = low < end ? low : 0,
                                       .n_taps = low < end ? (uint32_t)(end - low) : 0};
}

/* About how long it takes when blocks of up to `usual` taps have as many: those of one more have
 * code of their own, the others take twice the time a tap, and a while to begin. */
static uint64_t cost_of(const struct oct_spread_blocks *blocks, uint32_t usual)
{
    uint64_t cost = 0;
    for (uint32_t b = 0; b < blocks->n_blocks; b++) {
        uint32_t n_taps = blocks->block[b].n_taps;
        const bool is_next = n_taps == usual + 1 && usual < OCT_SPREAD_MOST_USUAL;
        cost += n_taps <= usual ? usual : is_next ? n_taps : 2 * n_taps + 4;
    }
    return cost;
}

/* Blocks of fewer taps get as many as the usual ones. */
static void even_out(struct oct_spread_blocks *blocks)
{
    uint32_t usual = OCT_SPREAD_LEAST_USUAL;
    for (uint32_t u = usual + 1; u <= OCT_SPREAD_MOST_USUAL; u++)
        usual = cost_of(blocks, u) < cost_of(blocks, usual) ? u : usual;
    for (uint32_t b = 0; b < blocks->n_blocks; b++)
        if (blocks->block[b].n_taps < usual)
            blocks->block[b].n_taps = usual;
    blocks->n_usual_taps = usual;
}

static size_t place_blocks(struct oct_spread_blocks *blocks, const struct oct_spread *spread,
                           uint32_t n)
{
    int32_t low = 0;
    for (uint32_t b = 0; b < blocks->n_blocks; b++) {
        place_block(&blocks->block[b], spread, b * OCT_SPREAD_BLOCK, n);
        low = blocks->block[b].base < low ? blocks->block[b].base : low;
    }
    even_out(blocks);
    size_t n_taps = 0;
    for (uint32_t b = 0; b < blocks->n_blocks; b++) {
        blocks->block[b].at = n_taps;
        n_taps += blocks->block[b].n_taps;
    }
    for (uint32_t g = 0; g < spread->n_used; g++) {
        int32_t first = first_of(spread, g, n);
        if (-first > (int32_t)blocks->n_wrap)
            blocks->n_wrap = (uint32_t)-first;
    }
    low = -(int32_t)blocks->n_wrap < low ? -(int32_t)blocks->n_wrap : low;
    blocks->n_ahead = ((uint32_t)-low + 15) / 16 * 16;
    return n_taps;
}

static void fill_weights(struct oct_spread_blocks *blocks, const struct oct_spread *spread,
                         uint32_t n)
{
    for (uint32_t g = 0; g < blocks->n_blocks * OCT_SPREAD_BLOCK; g++) {
        const struct oct_spread_block *block = &blocks->block[g / OCT_SPREAD_BLOCK];
        uint32_t l = g % OCT_SPREAD_BLOCK, count = spread->at[g + 1] - spread->at[g];
        for (uint32_t k = 0; k < count; k++) {
            int32_t t = first_of(spread, g, n) - (int32_t)l - block->base + (int32_t)k;
            float *to = blocks->weight + (block->at + (size_t)t) * 2 * OCT_SPREAD_BLOCK;
            to[l] = spread->re[spread->at[g] + k];
            to[OCT_SPREAD_BLOCK + l] = spread->im[spread->at[g] + k];
        }
    }
}

enum oct_err oct_spread_blocks_init(struct oct_spread_blocks *blocks,
                                    const struct oct_spread *spread, uint32_t n)
{
    *blocks = (struct oct_spread_blocks){
        .n_blocks = (spread->n_used + OCT_SPREAD_BLOCK - 1) / OCT_SPREAD_BLOCK,
    };
    blocks->block = oct_aligned_calloc(64, blocks->n_blocks, sizeof(*blocks->block));
    if (!blocks->block)
        return OCT_E_NO_MEMORY;
    size_t n_taps = place_blocks(blocks, spread, n);
    blocks->weight = oct_aligned_calloc(64, n_taps * 2 * OCT_SPREAD_BLOCK, sizeof(*blocks->weight));
    if (!blocks->weight)
        return OCT_E_NO_MEMORY;
    fill_weights(blocks, spread, n);
    return OCT_OK;
}

void oct_spread_blocks_finish(struct oct_spread_blocks *blocks)
{
    free(blocks->block);
    free(blocks->weight);
    *blocks = (struct oct_spread_blocks){0};
}
