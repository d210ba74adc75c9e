#include "analysis/surface/trace_states.h"

static void move(const struct oct_trace_rows *rows, size_t away, int16_t price)
{
    for (int i = 0; i < rows->n_rows; i++) {
        const int16_t *restrict a = rows->from + (size_t)i * rows->stride;
        const int16_t *restrict up = a - away, *restrict down = a + away;
        int16_t *restrict b = rows->to + (size_t)i * rows->stride;
        for (int t = 0; t < rows->n; t++) {
            int16_t side = (int16_t)((up[t] < down[t] ? up[t] : down[t]) + price);
            b[t] = a[t] < side ? a[t] : side;
        }
    }
}

static int16_t least(const struct oct_trace_rows *rows)
{
    int16_t x = OCT_TRACE_BIG;

    for (int i = 0; i < rows->n_rows; i++) {
        const int16_t *a = rows->from + (size_t)i * rows->stride;
        for (int t = 0; t < rows->n; t++)
            x = a[t] < x ? a[t] : x;
    }
    return x;
}

static void add(const struct oct_trace_rows *rows, const int16_t *ilm, const int16_t *rpe,
                int16_t above)
{
    for (int i = 0; i < rows->n_rows; i++) {
        const int16_t *restrict a = rows->from + (size_t)i * rows->stride;
        const int16_t *restrict c = rpe + i;
        int16_t *restrict b = rows->to + (size_t)i * rows->stride;
        const int16_t own = (int16_t)(ilm[i] - above);
        for (int t = 0; t < rows->n; t++) {
            int16_t lead = a[t] < OCT_TRACE_MOST_LEAD ? a[t] : OCT_TRACE_MOST_LEAD;
            int16_t x = (int16_t)(lead + own + c[t]);
            b[t] = x < OCT_TRACE_BIG ? x : OCT_TRACE_BIG;
        }
    }
}

const struct oct_trace_states OCT_SIMD_TABLE(oct_trace_states) = {move, least, add};
