#include "analysis/flow/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REACH (2 * OCT_FLOW_MOST_RADIUS) /* of a Gaussian that is hardly cut */
#define FAR 6.0                               /* sigma, of such */
#define AT_ONCE 64u                           /* blocks whose powers are summed in one go */

/* Half a Gaussian of sum 1. */
static void make_half(double sigma, unsigned radius, double half[MOST_REACH + 1])
{
    double sum = 1;
    half[0] = 1;
    for (unsigned i = 1; i <= radius; i++) {
        half[i] = exp(-(double)i * i / (2 * sigma * sigma));
        sum += 2 * half[i];
    }
    for (unsigned i = 0; i <= radius; i++)
        half[i] /= sum;
}

unsigned oct_flow_taps(double sigma, float taps[OCT_FLOW_MOST_RADIUS + 1])
{
    const unsigned reach = (unsigned)floor(3 * sigma + 1e-9);
    const unsigned radius = reach < OCT_FLOW_MOST_RADIUS ? reach : OCT_FLOW_MOST_RADIUS;
    double half[MOST_REACH + 1];
    make_half(sigma, radius, half);
    for (unsigned i = 0; i <= radius; i++)
        taps[i] = (float)half[i];
    return radius + 1;
}

void oct_flow_window_init(struct oct_flow_window *w, double sigma_lines, double sigma_depth)
{
    w->n_lines = oct_flow_taps(sigma_lines, w->lines);
    w->n_depth = oct_flow_taps(sigma_depth, w->depth);
}

/* ---- its power ---- */

/* Mean powers of blocks first .. first + n - 1, in all that came. Returns of how many values each
 * is the mean; 0: nothing came. */
static double mean_powers(const struct oct_flow_bscan *const *bscans, unsigned n_bscans,
                          uint32_t first, uint32_t n, double power[AT_ONCE])
{
    double n_lines = 0;
    for (uint32_t k = 0; k < n; k++)
        power[k] = 0;
    for (unsigned r = 0; r < n_bscans; r++) {
        const struct oct_flow_bscan *b = bscans[r];
        const uint32_t n_blocks = b ? b->depth / OCT_FLOW_BLOCK : 0;
        for (uint32_t i = 0; b && i < oct_flow_pieces(b->n_lines); i++) {
            const float *piece = b->blocks + (size_t)i * n_blocks + first;
            for (uint32_t k = 0; k < n; k++)
                power[k] += (double)piece[k];
        }
        for (uint32_t j = 0; b && j < b->n_lines; j++)
            n_lines += b->power[j] > 0;
    }
    for (uint32_t k = 0; k < n && n_lines > 0; k++)
        power[k] /= n_lines * OCT_FLOW_BLOCK;
    return n_lines * OCT_FLOW_BLOCK;
}

double oct_flow_noise_find(const struct oct_flow_bscan *const *bscans, unsigned n, uint32_t *block)
{
    double power[AT_ONCE], least = INFINITY, sum = 0, n_sums = 0;
    uint32_t n_blocks = 0;
    *block = 0;
    for (unsigned r = 0; r < n; r++)
        n_blocks = bscans[r] ? bscans[r]->depth / OCT_FLOW_BLOCK : n_blocks;
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t first = 0; first < n_blocks; first += AT_ONCE) {
            const uint32_t n_here = n_blocks - first < AT_ONCE ? n_blocks - first : AT_ONCE;
            const double n_values = mean_powers(bscans, n, first, n_here, power);
            const double most =
                least * (1 + OCT_FLOW_NOISE_ALIKE * sqrt(OCT_FLOW_NOISE_OVERSAMPLED / n_values));
            if (!(n_values > 0))
                return 0;
            for (uint32_t k = 0; k < n_here; k++)
                if (pass == 0 && power[k] < least) {
                    least = power[k];
                    *block = first + k;
                } else if (pass == 1 && power[k] <= most) {
                    sum += power[k];
                    n_sums++;
                }
        }
    return n_sums > 0 ? sum / n_sums : 0;
}

/* ---- its correlation ---- */

/* Adds a[d] conj a[d + lag] of one block of a line; zeros follow the block. */
static void correlate_line(struct oct_flow_line a, double sum[OCT_FLOW_BLOCK][2])
{
    float re[2 * OCT_FLOW_BLOCK] = {0}, im[2 * OCT_FLOW_BLOCK] = {0};
    float own[2][OCT_FLOW_BLOCK] = {{0}};
    memcpy(re, a.re, OCT_FLOW_BLOCK * sizeof(*re));
    memcpy(im, a.im, OCT_FLOW_BLOCK * sizeof(*im));
    for (unsigned d = 0; d < OCT_FLOW_BLOCK; d++)
        for (unsigned lag = 0; lag < OCT_FLOW_BLOCK; lag++) {
            own[0][lag] += re[d] * re[d + lag] + im[d] * im[d + lag];
            own[1][lag] += im[d] * re[d + lag] - re[d] * im[d + lag];
        }
    for (unsigned lag = 0; lag < OCT_FLOW_BLOCK; lag++) {
        sum[lag][0] += (double)own[0][lag];
        sum[lag][1] += (double)own[1][lag];
    }
}

/* Lags of more than half a block are hardly seen in it: nothing of the noise reaches so far. */
void oct_flow_noise_correlate(const struct oct_flow_bscan *const *bscans, unsigned n,
                              uint32_t block, double rho2[OCT_FLOW_LAGS])
{
    double sum[OCT_FLOW_BLOCK][2] = {{0}};
    for (unsigned r = 0; r < n; r++)
        for (uint32_t j = r % 2; bscans[r] && j < bscans[r]->n_lines; j += 2)
            if (bscans[r]->power[j] > 0)
                correlate_line(oct_flow_bscan_line(bscans[r], j, block * OCT_FLOW_BLOCK), sum);
    for (unsigned lag = 0; lag < OCT_FLOW_LAGS; lag++)
        rho2[lag] = lag == 0;
    if (!(sum[0][0] > 0))
        return;
    for (unsigned lag = 1; lag <= OCT_FLOW_BLOCK / 2; lag++) {
        const double share = OCT_FLOW_BLOCK / (OCT_FLOW_BLOCK - (double)lag) / sum[0][0];
        rho2[lag] = pow(share * sum[lag][0], 2) + pow(share * sum[lag][1], 2);
    }
}

/* sum over a, b of G_a G_b rho2(a - b), along one axis. */
static double sum_squares(double sigma, const double *rho2, unsigned n_lags)
{
    const int radius = (int)fmin(ceil(FAR * sigma), MOST_REACH);
    double half[MOST_REACH + 1], sum = 0;
    make_half(sigma, (unsigned)radius, half);
    for (int a = -radius; a <= radius; a++)
        for (int b = -radius; b <= radius; b++)
            if (abs(a - b) < (int)n_lags)
                sum += half[abs(a)] * half[abs(b)] * rho2[abs(a - b)];
    return sum;
}

double oct_flow_noise_samples(double sigma_lines, double sigma_depth,
                              const double rho2[OCT_FLOW_LAGS])
{
    return 1 / (sum_squares(sigma_lines, (const double[]){1}, 1) *
                sum_squares(sigma_depth, rho2, OCT_FLOW_LAGS));
}
