/* Cells followed by MGVF and snake, against the definition in double precision with the whole
 * arctangent; and windows. */
#include "analysis/cells/follow.h"
#include "test/rig/cells_follow_oracle.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct oct_cells_params params;
    struct oct_cells_follower *follower;
    float *pixels;
    int height, width;
};

static void open_rig(struct rig *r, const struct oct_follow_scene *scene, double radius,
                     double stop)
{
    *r = (struct rig){.params = {.radius = radius, .stop = stop},
                      .pixels = oct_follow_scene_draw(scene),
                      .height = scene->height,
                      .width = scene->width};
    must(oct_cells_follower_create(&r->follower, &r->params, (uint32_t)r->height,
                                   (uint32_t)r->width, &failure));
}

static void close_rig(struct rig *r)
{
    oct_cells_follower_destroy(r->follower);
    free(r->pixels);
}

static struct oct_cell_start start_at(double x, double y, double vx, double vy, double radius)
{
    struct oct_cell_start start = {.x = x, .y = y, .vx = vx, .vy = vy};
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        start.radii[i] = radius;
    return start;
}

static struct oct_cell_end follow(struct rig *r, const struct oct_cell_start *start)
{
    struct oct_cell_end end;
    memset(&end, 0x55, sizeof(end));
    oct_cells_follow(r->follower, r->pixels, (size_t)r->width, start, &end);
    return end;
}

/* ---- against the definition ---- */

static struct oct_follow_oracle ask(const struct rig *r, const struct oct_cell_start *start,
                                    int iterations)
{
    struct oct_follow_oracle o = {.pixels = r->pixels,
                                  .height = r->height,
                                  .width = r->width,
                                  .radius = r->params.radius,
                                  .stop = r->params.stop,
                                  .x = start->x,
                                  .y = start->y,
                                  .vx = start->vx,
                                  .vy = start->vy,
                                  .mean_y = start->y + start->mean_dy,
                                  .iterations = iterations};
    memcpy(o.radii, start->radii, sizeof(o.radii));
    oct_follow_oracle_run(&o);
    return o;
}

/* The largest differences seen. */
struct worst {
    double field, snake;
    int iterations;
    unsigned n_left, n_moved;
};

static void compare_snakes(const struct oct_cell_end *end, const struct oct_follow_oracle *o,
                           const struct oct_cell_start *start, struct worst *worst)
{
    double most = fmax(fabs(end->x - o->x), fabs(end->y - o->y));
    for (int i = 0; i < ORACLE_SNAXELS; i++)
        most = fmax(most, fabs(end->radii[i] - o->radii[i]));
    worst->snake = fmax(worst->snake, most);
    worst->n_left += end->left;
    worst->n_moved += hypot(end->x - start->x, end->y - start->y) > 0.5;
    if (!(most <= 1e-3))
        fail_msg("snake from (%g, %g): %g px off, %u and %d iterations", start->x, start->y, most,
                 end->n_snake, o->n_snake);
    assert_int_equal(end->left, o->left);
}

static void compare_fields(struct rig *r, const struct oct_follow_oracle *o, struct worst *worst)
{
    struct oct_cell_window window;
    float *field = malloc(oct_cell_window_most(&r->params) * sizeof(*field));
    assert_non_null(field);
    oct_cells_follow_field(r->follower, &window, field);
    assert_true(window.u1 == o->u1 && window.u2 == o->u2);
    assert_true(window.v1 == o->v1 && window.v2 == o->v2);
    const int n = (o->u2 - o->u1 + 1) * (o->v2 - o->v1 + 1);
    assert_true((uint32_t)n <= oct_cell_window_most(&r->params));
    for (int i = 0; i < n; i++) {
        const double off = fabs((double)field[i] - o->field[i]);
        worst->field = fmax(worst->field, off);
        if (!(off <= 1e-6))
            fail_msg("field off by %g at %d of %d", off, i, n);
    }
    free(field);
}

/* Fields of numbers of iterations that differ by one are compared at the engine's. */
static void compare(struct rig *r, const struct oct_cell_start *start, struct worst *worst)
{
    const struct oct_cell_end end = follow(r, start);
    struct oct_follow_oracle o = ask(r, start, 0);
    assert_int_equal(end.defined, o.defined);
    if (!o.defined) {
        assert_true(end.x == start->x && end.y == start->y && !end.left);
        assert_true(end.n_field == 0 && end.n_snake == 0);
        assert_memory_equal(end.radii, start->radii, sizeof(end.radii));
        return;
    }
    const int more = (int)end.n_field - o.n_field;
    worst->iterations = abs(more) > worst->iterations ? abs(more) : worst->iterations;
    assert_in_range(abs(more), 0, 1);
    if (more != 0) {
        free(o.field);
        o = ask(r, start, (int)end.n_field);
    }
    compare_fields(r, &o, worst);
    compare_snakes(&end, &o, start, worst);
    free(o.field);
}

static const double directions[][2] = {{1, 1},  {1, 0},     {0, 0},           {-1, 0}, {0.3, -0.8},
                                       {0, -1}, {-2, -1.5}, {6.2e-17, 0.999}, {-1, 1}};
#define N_DIRECTIONS (sizeof(directions) / sizeof(directions[0]))

/* n cells of that radius, of contrasts of 2 to 8, dark and bright, started up to 0.4 R away; every
 * fifth is so near to the picture's border that its window is cut off. */
static void compare_cells(double radius, unsigned n, struct worst *worst)
{
    uint32_t state = (uint32_t)(1000 * radius);
    for (unsigned i = 0; i < n; i++) {
        const double reach = radius * (oct_oracle_random(&state) / 16777216.0) * 0.4;
        const double turn = oct_oracle_random(&state) / 16777216.0 * 6.28;
        struct oct_follow_scene scene = {.height = (int)(7 * radius) + 3,
                                         .width = (int)(11 * radius) + (int)i % 7,
                                         .x = 5.3 * radius,
                                         .y = 3.4 * radius,
                                         .radius = 0.9 * radius,
                                         .contrast = (i % 2 ? -2.0 : 2.0) * (1 + i % 4),
                                         .smooth = 0.2 * radius,
                                         .seed = i + 1};
        if (i % 5 == 4) {
            scene.x = 1.6 * radius;
            scene.y = 1.5 * radius;
        }
        struct rig r;
        open_rig(&r, &scene, radius, i % 3 ? 0.01 : 0.1);
        const double *v = directions[i % N_DIRECTIONS];
        struct oct_cell_start start =
            start_at(scene.x + reach * cos(turn), scene.y + reach * sin(turn), v[0], v[1], radius);
        start.mean_dy = i % 4 == 1 ? 0.1 * radius : 0;
        start.radii[3] *= 1.1;
        start.radii[14] *= 0.8;
        compare(&r, &start, worst);
        close_rig(&r);
    }
}

static void say(const struct worst *worst)
{
    print_message("field %.3g, snake %.3g px, iterations %d apart, %u moved, %u left\n",
                  worst->field, worst->snake, worst->iterations, worst->n_moved, worst->n_left);
}

TEST(cells_go_where_the_definition_says)
{
    struct worst worst = {0};
    compare_cells(10, 27, &worst);
    say(&worst);
    assert_true(worst.n_moved >= 9);
}

TEST(small_and_large_cells_do_too)
{
    struct worst worst = {0};
    compare_cells(2.5, 36, &worst);
    compare_cells(40, 2, &worst);
    say(&worst);
}

/* Starts all over a small picture, on its corners and outside: cut windows of all sizes. */
TEST(windows_at_the_border_do_too)
{
    const struct oct_follow_scene scene = {
        .height = 24, .width = 34, .x = 5, .y = 4, .radius = 4, .contrast = 6, .smooth = 1};
    struct rig r;
    struct worst worst = {0};
    open_rig(&r, &scene, 4, 0.01);
    for (int y = -9; y <= 32; y += 4)
        for (int x = -17; x <= 50; x += 3) {
            const double *v = directions[(unsigned)(x + 17 + y + 9) % N_DIRECTIONS];
            const struct oct_cell_start start = start_at(x + 0.25, y + 0.5, v[0], v[1], 3.5);
            compare(&r, &start, &worst);
        }
    const struct oct_cell_start touches_right = start_at(27, 12, 1, 0, 6); /* x = 33: the last */
    const struct oct_cell_start touches_left = start_at(6, 12, 1, 0, 6);
    compare(&r, &touches_right, &worst);
    assert_true(follow(&r, &touches_right).n_snake > 0);
    compare(&r, &touches_left, &worst);
    assert_true(follow(&r, &touches_left).n_snake > 0);
    close_rig(&r);
    say(&worst);
    assert_true(worst.n_left >= 20 && worst.n_moved >= 5);
}

/* ---- bounds ---- */

TEST(windows_are_those_of_the_equation)
{
    const struct oct_cells_params params = {.radius = 10};
    struct oct_cell_window w;
    assert_true(oct_cell_window_find(&params, 480, 640, 100.4, 200.5, &w));
    assert_true(w.u1 == 60 && w.u2 == 140 && w.v1 == 181 && w.v2 == 221);
    assert_true(oct_cell_window_find(&params, 480, 640, 0, 479, &w));
    assert_true(w.u1 == 0 && w.u2 == 40 && w.v1 == 459 && w.v2 == 479);
    assert_true(oct_cell_window_find(&params, 480, 640, -39.5, 10, &w));
    assert_true(w.u1 == 0 && w.u2 == 1);
    assert_false(oct_cell_window_find(&params, 480, 640, -39.6, 10, &w));
    assert_true(oct_cell_window_find(&params, 480, 640, 677.9, 10, &w));
    assert_true(w.u1 == 638 && w.u2 == 639);
    assert_false(oct_cell_window_find(&params, 480, 640, 678.5, 10, &w));
    assert_false(oct_cell_window_find(&params, 480, 640, 10, 499, &w));
    assert_false(oct_cell_window_find(&params, 1, 640, 10, 0, &w));
    assert_false(oct_cell_window_find(&params, 480, 640, (double)NAN, 10, &w));
    assert_false(oct_cell_window_find(&params, 480, 640, 10, 1e300, &w));
    assert_false(oct_cell_window_find(&params, 480, 640, -INFINITY, 10, &w));
}

/* Where x and both ends are rounded a window has a column more than 8 R + 1. */
TEST(no_window_is_larger_than_the_largest)
{
    uint32_t random = 5;
    for (unsigned i = 0; i < 20000; i++) {
        const struct oct_cells_params params = {
            .radius = i % 2 ? 10 : 1.5 + oct_oracle_random(&random) / 16777216.0 * 20};
        double x = 200 + i % 200 + (i % 2 ? 0.5 : oct_oracle_random(&random) / 16777216.0);
        x = i % 3 ? x : nextafter(x, 0);
        struct oct_cell_window w;
        assert_true(oct_cell_window_find(&params, 4096, 4096, x, x, &w));
        const uint32_t n = (uint32_t)((w.u2 - w.u1 + 1) * (w.v2 - w.v1 + 1));
        assert_true(n <= oct_cell_window_most(&params));
        assert_true(w.u2 - w.u1 + 1 <= ceil(8 * params.radius) + 2);
        assert_true(w.v2 - w.v1 + 1 <= ceil(4 * params.radius) + 2);
    }
}

static bool is_finite(const struct oct_cell_end *end)
{
    bool finite = isfinite(end->x) && isfinite(end->y);
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        finite = finite && isfinite(end->radii[i]);
    return finite;
}

/* A flat picture has no edges: the snake takes the radius R and goes to Ey. One without noise has
 * flat parts, and one of large numbers squares beyond a float. */
TEST(flat_pictures_give_numbers)
{
    const struct oct_follow_scene scene = {
        .height = 60, .width = 100, .x = 50, .y = 30, .radius = 10, .contrast = 4, .smooth = 1};
    struct rig r;
    struct worst worst = {0};
    open_rig(&r, &scene, 10, 0.01);
    struct oct_cell_start start = start_at(50, 30, 1, 1, 8);
    for (int i = 0; i < 60 * 100; i++)
        r.pixels[i] = 17;
    struct oct_cell_end end = follow(&r, &start);
    assert_true(end.defined && !end.left && end.n_field == 1 && is_finite(&end));
    assert_true(fabs(end.x - 50) < 1e-12 && fabs(end.y - 30) < 1e-12);
    assert_true(fabs(end.radii[7] - 10) < 0.02);
    start.mean_dy = 2;
    compare(&r, &start, &worst);
    end = follow(&r, &start);
    assert_true(end.y > 31 && end.y <= 32);
    r.pixels[35 * 100 + 52] = 18;
    end = follow(&r, &start);
    assert_true(end.n_field > 1 && is_finite(&end));
    for (int i = 0; i < 60 * 100; i++)
        r.pixels[i] = i % 7 < 3 ? 3e38F : -3e38F;
    end = follow(&r, &start);
    assert_true(end.n_field > 1 && is_finite(&end));
    close_rig(&r);
}

/* What was followed before, and how far apart the rows lie, does not change a bit. */
TEST(each_call_stands_alone)
{
    const struct oct_follow_scene scene = {
        .height = 60, .width = 100, .x = 50, .y = 30, .radius = 10, .contrast = 4, .smooth = 2};
    enum { STRIDE = 117, MOST = 83 * 43 };
    static float wide[60 * STRIDE], field[MOST], other_field[MOST];
    struct rig r;
    struct oct_cell_window window, again;
    open_rig(&r, &scene, 10, 0.01);
    const struct oct_cell_start start = start_at(52, 31, 1, 0, 10), other = start_at(3, 9, 0, 1, 8);
    const struct oct_cell_end first = follow(&r, &start);
    oct_cells_follow_field(r.follower, &window, field);
    const int n = (window.u2 - window.u1 + 1) * (window.v2 - window.v1 + 1);
    const size_t bytes = (size_t)n * sizeof(float);
    assert_in_range(n, 2, MOST);
    assert_true(follow(&r, &other).defined);
    for (size_t y = 0; y < 60; y++)
        memcpy(wide + y * STRIDE, r.pixels + y * 100, 100 * sizeof(float));
    struct oct_cell_end second;
    memset(&second, 0x55, sizeof(second));
    oct_cells_follow(r.follower, wide, STRIDE, &start, &second);
    assert_memory_equal(&second, &first, sizeof(first));
    oct_cells_follow_field(r.follower, &again, other_field);
    assert_memory_equal(other_field, field, bytes);
    assert_memory_equal(&again, &window, sizeof(window));
    const struct oct_cell_start outside = start_at(-60, 9, 0, 1, 8);
    assert_false(follow(&r, &outside).defined);
    oct_cells_follow_field(r.follower, &again, other_field);
    assert_int_equal(oct_cell_window_pixels(&again), 0);
    close_rig(&r);
}

/* ---- the builds ---- */

static void fill_plane(float *plane, const struct oct_mgvf_grid *grid, uint32_t *random)
{
    for (size_t i = 0; i < (size_t)grid->rows * grid->stride; i++)
        plane[i] = (float)oct_oracle_random(random) / 16777216.0F;
}

/* One field of one build: the result and the iterations. */
static uint32_t run_build(const struct oct_mgvf *mgvf, const struct oct_mgvf_grid *grid,
                          const double *v, float *result)
{
    const size_t n = oct_mgvf_plane_floats(grid->rows, grid->columns);
    float *all = calloc((1 + OCT_MGVF_N_PLANES) * n, sizeof(*all));
    assert_non_null(all);
    float *first = all + oct_mgvf_first(grid);
    float *const planes[OCT_MGVF_N_PLANES] = {first + n, first + 2 * n, first + 3 * n};
    struct oct_mgvf_flow flow;
    uint32_t random = grid->columns, n_iterations;
    oct_mgvf_flow_init(&flow, v[0], v[1]);
    fill_plane(first, grid, &random);
    const float *w = oct_mgvf_run(mgvf, planes, first, grid, &flow, &n_iterations);
    for (size_t y = 0; y < grid->rows; y++)
        memcpy(result + y * grid->columns, w + y * grid->stride, grid->columns * sizeof(*w));
    free(all);
    return n_iterations;
}

TEST(all_builds_give_the_same_bits)
{
    static const char *const names[] = {"avx512", "avx2", "auto"};
    float plain[12 * 70], other[12 * 70];
    for (uint32_t columns = 2; columns <= 70; columns++) {
        const struct oct_mgvf_grid grid = {
            .rows = 2 + columns % 11, .columns = columns, .stride = oct_mgvf_stride(columns)};
        const size_t bytes = (size_t)grid.rows * columns * sizeof(float);
        const double *v = directions[columns % N_DIRECTIONS];
        const uint32_t n = run_build(oct_mgvf_select("plain"), &grid, v, plain);
        for (unsigned i = 0; i < 3; i++) {
            const struct oct_mgvf *mgvf = oct_mgvf_select(names[i]);
            if (!mgvf)
                continue;
            assert_int_equal(run_build(mgvf, &grid, v, other), n);
            assert_memory_equal(other, plain, bytes);
        }
    }
    assert_null(oct_mgvf_select("sse9"));
}

/* The first sweep whose mean change is small enough ends a field, wherever it lies between those
 * that are summed: as when each is. */
TEST(no_sweep_too_many)
{
    const struct oct_mgvf *mgvf = oct_mgvf_select("auto");
    const struct oct_mgvf_grid grid = {.rows = 21, .columns = 33, .stride = oct_mgvf_stride(33)};
    const size_t n = oct_mgvf_plane_floats(grid.rows, grid.columns);
    const double least = OCT_MGVF_LEAST_CHANGE * 21 * 33;
    float *all = calloc(3 * n, sizeof(*all)), *edge = all + oct_mgvf_first(&grid);
    float result[21 * 33];
    unsigned n_left[8] = {0}, n_kinds = 0;
    assert_non_null(all);
    for (unsigned i = 0; i < N_DIRECTIONS; i++) {
        float *from = edge + n, *to = edge + 2 * n;
        struct oct_mgvf_flow flow;
        uint32_t random = grid.columns, wanted = 0;
        double change;
        oct_mgvf_flow_init(&flow, directions[i % N_DIRECTIONS][0], directions[i % N_DIRECTIONS][1]);
        fill_plane(edge, &grid, &random);
        memcpy(from, edge, grid.rows * grid.stride * sizeof(*from));
        oct_mgvf_set_border(from, &grid);
        do {
            change = mgvf->sweep(to, from, edge, &grid, &flow, true);
            float *swap = from;
            from = to;
            to = swap;
        } while (++wanted < OCT_MGVF_MOST_ITERATIONS && change > least);
        assert_int_equal(run_build(mgvf, &grid, directions[i % N_DIRECTIONS], result), wanted);
        for (size_t y = 0; y < grid.rows; y++)
            assert_memory_equal(result + y * 33, from + y * grid.stride, 33 * sizeof(*from));
        n_kinds += n_left[wanted % 8]++ == 0;
    }
    free(all);
    assert_true(n_kinds >= 3);
}

static void assert_flow(double vx, double vy, int a, int b, int c, int d)
{
    struct oct_mgvf_flow flow;
    oct_mgvf_flow_init(&flow, vx, vy);
    assert_int_equal(flow.sign[0], a);
    assert_int_equal(flow.sign[1], b);
    assert_int_equal(flow.sign[2], c);
    assert_int_equal(flow.sign[3], d);
}

/* The neighbours ahead are those with v . e > 0; what is next to 0 lies across. */
TEST(neighbours_lie_ahead_or_across)
{
    assert_flow(1, 1, 1, 1, 1, 0);
    assert_flow(-3, 1, -1, 1, -1, -1);
    assert_flow(1, -3, 1, -1, -1, 1);
    assert_flow(0, -2, 0, -1, -1, 1);
    assert_flow(-2, 6.2e-17, -1, 0, -1, -1);
    assert_flow(1, -1 + 1e-12, 1, -1, 0, 1);
    assert_flow(0.9e-9, -0.2e-9, 0, 0, 0, 0);
    assert_flow(1.1e-9, -0.9e-9, 1, 0, 1, 1);
    assert_flow((double)NAN, 1, 0, 1, 1, -1);
    assert_flow((double)NAN, (double)NAN, 0, 0, 0, 0);
}
