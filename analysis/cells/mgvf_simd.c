/* One sweep of the field. Registers of columns go down the window row by row, so that each row is
 * loaded once. Against the flow rows and columns are taken backwards: v then points to the right
 * and down, and few kinds of flow are left, each with its own code. */
#include "analysis/cells/follow.h"
#include "pipeline/base/vector.h"

INLINE vec magnitude(vec v)
{
    return larger(v, all(0) - v);
}

/* Where a sweep goes: `right` 1 or -1, `down` a row or a row back. Signs as of struct
 * oct_mgvf_flow, of the window as it is taken. */
struct course {
    ptrdiff_t right, down;
    int sign[4];
};

/* A register of pixels and of their neighbours. */
struct three {
    vec left, middle, right;
};

INLINE struct three load_three(const float *from, ptrdiff_t right)
{
    return (struct three){load(from - right), load(from), load(from + right)};
}

/* What a pair of opposite neighbours adds, and w with it. */
INLINE vec pair_sum(vec plus, vec minus, vec w, int sign)
{
    if (sign == 0)
        return (plus + minus) * all(0.5F);
    return sign > 0 ? larger(plus, w) + smaller(minus, w) : smaller(plus, w) + larger(minus, w);
}

/* w of the next iteration. */
INLINE vec update(struct three up, struct three at, struct three down, vec edge, const int sign[4])
{
    const vec w = at.middle;
    const vec a = pair_sum(at.right, at.left, w, sign[0]);
    const vec b = pair_sum(down.middle, up.middle, w, sign[1]);
    const vec c = pair_sum(down.right, up.left, w, sign[2]);
    const vec d = pair_sum(up.right, down.left, w, sign[3]);
    const int n_own = 8 - (sign[0] == 0) - (sign[1] == 0) - (sign[2] == 0) - (sign[3] == 0);
    const vec spread = (((a + b) + (c + d)) - w * all((float)n_own)) * all(0.1F);
    return w + (spread - edge * all(0.2F) * ((w - edge) + spread));
}

/* The signs and `sums` are constants at each place of call. */
INLINE double sweep_along(float *to, const float *from, const float *edge,
                          const struct oct_mgvf_grid *grid, struct course course, bool sums)
{
    const size_t last = course.down < 0 ? (grid->rows - 1) * grid->stride : 0;
    double total = 0;
    for (uint32_t x = 0; x < grid->columns; x += WIDTH) {
        size_t at = last + x;
        struct three up = load_three(from + at - course.down, course.right);
        struct three here = load_three(from + at, course.right);
        vec sum = all(0);
        for (uint32_t y = 0; y < grid->rows; y++, at += (size_t)course.down) {
            const struct three down = load_three(from + at + course.down, course.right);
            const vec next = update(up, here, down, load(edge + at), course.sign);
            store(to + at, next);
            if (sums)
                sum += magnitude(next - here.middle);
            up = here;
            here = down;
        }
        float each[WIDTH];
        store(each, sum);
        for (uint32_t j = 0; sums && j < WIDTH && x + j < grid->columns; j++)
            total += (double)each[j];
    }
    oct_mgvf_set_border(to, grid);
    return total;
}

INLINE double sweep_kind(float *to, const float *from, const float *edge,
                         const struct oct_mgvf_grid *grid, const struct course *course, int a,
                         int b, int c, int d, bool sums)
{
    const struct course along = {course->right, course->down, {a, b, c, d}};
    return sums ? sweep_along(to, from, edge, grid, along, true)
                : sweep_along(to, from, edge, grid, along, false);
}

/* As of a flow to the right and down, which has no other signs. */
static double sweep(float *to, const float *from, const float *edge,
                    const struct oct_mgvf_grid *grid, const struct oct_mgvf_flow *flow, bool sums)
{
    const bool back = flow->sign[0] < 0, up = flow->sign[1] < 0;
    const ptrdiff_t row = (ptrdiff_t)grid->stride;
    const struct course course = {.right = back ? -1 : 1, .down = up ? -row : row};
    const int apart = (back ? -1 : 1) * flow->sign[back == up ? 3 : 2];
    if (flow->sign[0] == 0 && flow->sign[1] == 0)
        return sweep_kind(to, from, edge, grid, &course, 0, 0, 0, 0, sums);
    if (flow->sign[1] == 0)
        return sweep_kind(to, from, edge, grid, &course, 1, 0, 1, 1, sums);
    if (flow->sign[0] == 0)
        return sweep_kind(to, from, edge, grid, &course, 0, 1, 1, -1, sums);
    if (apart > 0)
        return sweep_kind(to, from, edge, grid, &course, 1, 1, 1, 1, sums);
    if (apart < 0)
        return sweep_kind(to, from, edge, grid, &course, 1, 1, 1, -1, sums);
    return sweep_kind(to, from, edge, grid, &course, 1, 1, 1, 0, sums);
}

const struct oct_mgvf OCT_SIMD_TABLE(oct_mgvf) = {sweep};
