#include "analysis/cells/follow.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N OCT_CELLS_SNAXELS
#define SUMMED_EVERY 8u
#define NEAR 1.1 /* times the bound: from there on each sweep is summed */

/* ---- windows ---- */

/* Pixels first .. last of one axis; false: fewer than two. */
static bool find_span(double at, double reach, uint32_t n, int32_t *first, int32_t *last)
{
    const double low = at - reach + 0.5, high = at + reach + 0.5, end = (double)n - 1;
    *first = *last = 0;
    if (!(low < end) || !(high >= 0)) /* NaN too */
        return false;
    *first = (int32_t)fmax(low, 0);
    *last = (int32_t)fmin(high, end);
    return *last > *first;
}

bool oct_cell_window_find(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                          double x, double y, struct oct_cell_window *window)
{
    const bool has_width = find_span(x, 4 * params->radius, width, &window->u1, &window->u2);
    const bool has_height = find_span(y, 2 * params->radius, height, &window->v1, &window->v2);
    return has_width && has_height;
}

/* Between two sums that are rounded each for itself lie 8 R + 1 whole numbers and one more. */
static uint32_t most_columns(const struct oct_cells_params *params)
{
    return (uint32_t)ceil(8 * params->radius) + 2;
}

static uint32_t most_rows(const struct oct_cells_params *params)
{
    return (uint32_t)ceil(4 * params->radius) + 2;
}

uint32_t oct_cell_window_most(const struct oct_cells_params *params)
{
    return most_columns(params) * most_rows(params);
}

/* ---- the field ---- */

/* NaN: 0 */
static int sign_of(double dot)
{
    return (dot >= OCT_MGVF_LEAST_DOT) - (dot <= -OCT_MGVF_LEAST_DOT);
}

void oct_mgvf_flow_init(struct oct_mgvf_flow *flow, double vx, double vy)
{
    vx = sign_of(vx) ? vx : 0;
    vy = sign_of(vy) ? vy : 0;
    flow->sign[0] = (int8_t)sign_of(vx);
    flow->sign[1] = (int8_t)sign_of(vy);
    flow->sign[2] = (int8_t)sign_of(vx + vy);
    flow->sign[3] = (int8_t)sign_of(vx - vy);
}

const struct oct_mgvf *oct_mgvf_select(const char *name)
{
    static const struct oct_mgvf *const sets[OCT_N_SIMD + 1] = {OCT_SIMD_ALL(oct_mgvf)};
    return sets[oct_simd_choose(name)];
}

void oct_mgvf_set_border(float *plane, const struct oct_mgvf_grid *grid)
{
    const size_t bytes = ((size_t)grid->columns + 2) * sizeof(*plane);
    for (size_t y = 0; y < grid->rows; y++) {
        float *row = plane + y * grid->stride;
        row[-1] = row[0];
        row[grid->columns] = row[grid->columns - 1];
    }
    float *last = plane + (size_t)(grid->rows - 1) * grid->stride;
    memcpy(plane - grid->stride - 1, plane - 1, bytes);
    memcpy(last + grid->stride - 1, last - 1, bytes);
}

/* The one that is neither. */
static float *third_of(float *const planes[OCT_MGVF_N_PLANES], const float *a, const float *b)
{
    for (unsigned i = 0; i + 1 < OCT_MGVF_N_PLANES; i++)
        if (planes[i] != a && planes[i] != b)
            return planes[i];
    return planes[OCT_MGVF_N_PLANES - 1];
}

const float *oct_mgvf_run(const struct oct_mgvf *mgvf, float *const planes[OCT_MGVF_N_PLANES],
                          const float *edge, const struct oct_mgvf_grid *grid,
                          const struct oct_mgvf_flow *flow, uint32_t *n)
{
    const double least = OCT_MGVF_LEAST_CHANGE * ((double)grid->rows * grid->columns);
    float *from = planes[0], *kept = from; /* kept: of the sweep before those not summed */
    uint32_t n_kept = 0;
    bool is_near = false;
    for (size_t y = 0; y < grid->rows; y++)
        memcpy(from + y * grid->stride, edge + y * grid->stride, grid->columns * sizeof(*edge));
    oct_mgvf_set_border(from, grid);
    for (*n = 1;; ++*n) {
        float *to = third_of(planes, from, kept);
        const bool sums = is_near || *n - n_kept == SUMMED_EVERY || *n == OCT_MGVF_MOST_ITERATIONS;
        const double change = mgvf->sweep(to, from, edge, grid, flow, sums);
        from = to;
        if (!sums)
            continue;
        const bool rests = !(change > least);
        if (rests ? *n - n_kept == 1 : *n == OCT_MGVF_MOST_ITERATIONS)
            return to;
        if (rests) {
            from = kept;
            *n = n_kept;
            is_near = true;
        } else {
            kept = to;
            n_kept = *n;
            is_near = is_near || change <= NEAR * least;
        }
    }
}

/* ---- the window of a cell ---- */

/* A pixel of the field: w and the direction of its gradient, of length 1 or 0. */
struct pixel {
    float w, ux, uy, unused;
};

struct oct_cells_follower {
    struct oct_cells_params params;
    uint32_t height, width;
    const struct oct_mgvf *mgvf;
    struct oct_snake_angles angles;
    float *planes[OCT_MGVF_N_PLANES], *edge; /* from their first float */
    double *gx, *gy;                         /* of a row */
    struct pixel *pixels;                    /* [grid.rows][grid.columns] */
    /* Of the last call. */
    struct oct_cell_window window;
    struct oct_mgvf_grid grid;
    const float *field;
};

enum oct_err oct_cells_follower_create(struct oct_cells_follower **follower,
                                       const struct oct_cells_params *params, uint32_t height,
                                       uint32_t width, struct oct_error *err)
{
    const uint32_t columns = most_columns(params) < width ? most_columns(params) : width;
    const uint32_t rows = most_rows(params) < height ? most_rows(params) : height;
    const size_t n_plane = oct_mgvf_plane_floats(rows, columns);
    struct oct_cells_follower *f = *follower = calloc(1, sizeof(*f));
    if (!f)
        goto fail;
    *f = (struct oct_cells_follower){
        .params = *params,
        .height = height,
        .width = width,
        .mgvf = oct_mgvf_select("auto"),
        .planes = {oct_aligned_calloc(64, n_plane, sizeof(float)),
                   oct_aligned_calloc(64, n_plane, sizeof(float)),
                   oct_aligned_calloc(64, n_plane, sizeof(float))},
        .edge = oct_aligned_calloc(64, n_plane, sizeof(float)),
        .gx = oct_aligned_calloc(64, columns, sizeof(double)),
        .gy = oct_aligned_calloc(64, columns, sizeof(double)),
        .pixels = oct_aligned_calloc(64, (size_t)rows * columns, sizeof(struct pixel)),
    };
    oct_snake_angles_init(&f->angles);
    if (f->planes[0] && f->planes[1] && f->planes[2] && f->edge && f->gx && f->gy && f->pixels)
        return OCT_OK;
fail:
    oct_cells_follower_destroy(f);
    *follower = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for windows of %u x %u pixels of cells",
                    rows, columns);
}

void oct_cells_follower_destroy(struct oct_cells_follower *f)
{
    if (!f)
        return;
    free(f->planes[0]);
    free(f->planes[1]);
    free(f->planes[2]);
    free(f->edge);
    free(f->gx);
    free(f->gy);
    free(f->pixels);
    free(f);
}

/* Of row y of the window, into f->gx and f->gy. */
static void differentiate(const struct oct_cells_follower *f, const float *pixels, size_t stride,
                          uint32_t y)
{
    const size_t above = y > 0 ? y - 1 : 0, below = y + 1 < f->grid.rows ? y + 1 : y;
    const float *row = pixels + y * stride;
    const float *up = pixels + above * stride, *down = pixels + below * stride;
    const size_t end = f->grid.columns - 1;
    const double scale = 1 / (double)(below - above);
    double *gx = f->gx, *gy = f->gy;
    for (size_t x = 0; x <= end; x++)
        gy[x] = ((double)down[x] - (double)up[x]) * scale;
    for (size_t x = 1; x < end; x++)
        gx[x] = ((double)row[x + 1] - (double)row[x - 1]) * 0.5;
    gx[0] = (double)row[1] - (double)row[0];
    gx[end] = (double)row[end] - (double)row[end - 1];
}

/* The edge map of the window, 0 to 1. The gradients are computed twice and kept nowhere: the least
 * and the largest are needed before the first is divided. */
static void find_edges(const struct oct_cells_follower *f, float *edge, const float *pixels,
                       size_t stride)
{
    double least = INFINITY, most = 0;
    for (uint32_t y = 0; y < f->grid.rows; y++) {
        differentiate(f, pixels, stride, y);
        for (uint32_t x = 0; x < f->grid.columns; x++) {
            const double square = f->gx[x] * f->gx[x] + f->gy[x] * f->gy[x];
            least = square < least ? square : least;
            most = square > most ? square : most;
        }
    }
    least = sqrt(least);
    const double scale = 1 / (sqrt(most) - least + 0x1p-52);
    for (uint32_t y = 0; y < f->grid.rows; y++) {
        differentiate(f, pixels, stride, y);
        for (uint32_t x = 0; x < f->grid.columns; x++) {
            const double square = f->gx[x] * f->gx[x] + f->gy[x] * f->gy[x];
            edge[y * f->grid.stride + x] = (float)((sqrt(square) - least) * scale);
        }
    }
}

static void find_directions(const struct oct_cells_follower *f)
{
    struct pixel *to = f->pixels;
    for (uint32_t y = 0; y < f->grid.rows; y++) {
        const float *w = f->field + y * f->grid.stride;
        differentiate(f, f->field, f->grid.stride, y);
        for (uint32_t x = 0; x < f->grid.columns; x++, to++) {
            const double square = f->gx[x] * f->gx[x] + f->gy[x] * f->gy[x];
            const double scale = square > 0 ? 1 / sqrt(square) : 0;
            to->w = w[x];
            to->ux = (float)(f->gx[x] * scale);
            to->uy = (float)(f->gy[x] * scale);
        }
    }
}

/* The field of the window and its directions; returns the iterations. */
static uint32_t find_field(struct oct_cells_follower *f, const float *pixels, size_t stride,
                           const struct oct_cell_start *start)
{
    const struct oct_cell_window *at = &f->window;
    f->grid.rows = (uint32_t)(at->v2 - at->v1 + 1);
    f->grid.columns = (uint32_t)(at->u2 - at->u1 + 1);
    f->grid.stride = oct_mgvf_stride(f->grid.columns);
    const size_t first = oct_mgvf_first(&f->grid);
    float *const planes[OCT_MGVF_N_PLANES] = {f->planes[0] + first, f->planes[1] + first,
                                              f->planes[2] + first};
    struct oct_mgvf_flow flow;
    uint32_t n;
    oct_mgvf_flow_init(&flow, start->vx, start->vy);
    find_edges(f, f->edge + first, pixels + (size_t)at->v1 * stride + (size_t)at->u1, stride);
    f->field = oct_mgvf_run(f->mgvf, planes, f->edge + first, &f->grid, &flow, &n);
    find_directions(f);
    return n;
}

/* ---- the snake ---- */

struct snake {
    double x, y; /* of the centre; pixels of the field */
    double radii[N];
};

void oct_snake_angles_init(struct oct_snake_angles *angles)
{
    for (unsigned i = 0; i < N; i++) {
        const double t = 2 * 3.14159265358979323846 * i / N;
        angles->cosine[i] = cos(t);
        angles->sine[i] = sin(t);
    }
}

struct samples {
    double w[N], ux[N], uy[N];
};

/* Bilinear; all points are within the field. */
static void sample(struct samples *s, const struct oct_cells_follower *f, const double *x,
                   const double *y)
{
    const int x_most = (int)f->grid.columns - 2, y_most = (int)f->grid.rows - 2;
    for (unsigned i = 0; i < N; i++) {
        const int x0 = (int)x[i] < x_most ? (int)x[i] : x_most;
        const int y0 = (int)y[i] < y_most ? (int)y[i] : y_most;
        const double ax = x[i] - x0, ay = y[i] - y0;
        const struct pixel *p = f->pixels + (size_t)y0 * f->grid.columns + (size_t)x0;
        const struct pixel *q = p + f->grid.columns;
        const double a = (1 - ax) * (1 - ay), b = ax * (1 - ay), c = (1 - ax) * ay, d = ax * ay;
        s->w[i] = a * (double)p[0].w + b * (double)p[1].w + c * (double)q[0].w + d * (double)q[1].w;
        s->ux[i] =
            a * (double)p[0].ux + b * (double)p[1].ux + c * (double)q[0].ux + d * (double)q[1].ux;
        s->uy[i] =
            a * (double)p[0].uy + b * (double)p[1].uy + c * (double)q[0].uy + d * (double)q[1].uy;
    }
}

static bool are_inside(const struct oct_cells_follower *f, const double *x, const double *y)
{
    const double x_most = (double)f->grid.columns - 1, y_most = (double)f->grid.rows - 1;
    bool inside = true;
    for (unsigned i = 0; i < N; i++) /* NaN is outside */
        inside &= x[i] >= 0 && x[i] <= x_most && y[i] >= 0 && y[i] <= y_most;
    return inside;
}

static double find_length(const double *x, const double *y)
{
    double parts[N], length = 0;
    for (unsigned i = 0; i + 1 < N; i++) {
        const double dx = x[i + 1] - x[i], dy = y[i + 1] - y[i];
        parts[i] = sqrt(dx * dx + dy * dy);
    }
    const double dx = x[0] - x[N - 1], dy = y[0] - y[N - 1];
    parts[N - 1] = sqrt(dx * dx + dy * dy);
    for (unsigned i = 0; i < N; i++)
        length += parts[i];
    return length;
}

/* One iteration, all from the values before; returns by how much it moved. */
static double move_snake(struct snake *snake, const struct samples *s,
                         const struct oct_snake_angles *angles, double length, double mean_y,
                         double radius)
{
    double sum_w = 0, sum_ux = 0, sum_uy = 0;
    for (unsigned i = 0; i < N; i++) {
        sum_w += s->w[i];
        sum_ux += s->ux[i];
        sum_uy += s->uy[i];
    }
    const double share = 1 / length;
    const double x = oct_snake_next_x(snake->x, sum_ux, share);
    const double y = oct_snake_next_y(snake->y, sum_uy, share, mean_y);
    double moved = fabs(x - snake->x) + fabs(y - snake->y);
    for (unsigned i = 0; i < N; i++) {
        const double outward = s->ux[i] * angles->cosine[i] + s->uy[i] * angles->sine[i];
        const double r =
            oct_snake_next_radius(snake->radii[i], s->w[i], outward, sum_w, share, radius);
        moved += fabs(r - snake->radii[i]);
        snake->radii[i] = r;
    }
    snake->x = x;
    snake->y = y;
    return moved;
}

/* Moves the snake until it rests. mean_y: Ey, in pixels of the field. *left: a snaxel is outside
 * the field, or the snake has no length: it is as it was then. Returns the number of iterations. */
static uint32_t run_snake(struct snake *snake, const struct oct_cells_follower *f, double mean_y,
                          bool *left)
{
    double moved = INFINITY;
    for (uint32_t n = 0;; n++) {
        double x[N], y[N];
        for (unsigned i = 0; i < N; i++) {
            x[i] = snake->x + snake->radii[i] * f->angles.cosine[i];
            y[i] = snake->y + snake->radii[i] * f->angles.sine[i];
        }
        const double length = find_length(x, y);
        *left = !are_inside(f, x, y) || !(length > 0);
        if (*left || n == OCT_SNAKE_MOST_ITERATIONS || !(moved > f->params.stop))
            return n;
        struct samples samples;
        sample(&samples, f, x, y);
        moved = move_snake(snake, &samples, &f->angles, length, mean_y, f->params.radius);
    }
}

/* ---- a cell ---- */

void oct_cells_follow(struct oct_cells_follower *f, const float *pixels, size_t stride,
                      const struct oct_cell_start *start, struct oct_cell_end *end)
{
    struct snake snake = {.x = start->x, .y = start->y};
    memcpy(snake.radii, start->radii, sizeof(snake.radii));
    end->n_field = end->n_snake = 0;
    end->left = false;
    end->defined =
        oct_cell_window_find(&f->params, f->height, f->width, start->x, start->y, &f->window);
    if (end->defined) {
        end->n_field = find_field(f, pixels, stride, start);
        snake.x -= f->window.u1;
        snake.y -= f->window.v1;
        end->n_snake = run_snake(&snake, f, snake.y + start->mean_dy, &end->left);
        snake.x += f->window.u1;
        snake.y += f->window.v1;
    } else {
        f->window = (struct oct_cell_window){0, -1, 0, -1};
    }
    end->x = snake.x;
    end->y = snake.y;
    memcpy(end->radii, snake.radii, sizeof(end->radii));
}

void oct_cells_follow_field(const struct oct_cells_follower *f, struct oct_cell_window *window,
                            float *field)
{
    const size_t columns = f->grid.columns;
    *window = f->window;
    for (int32_t y = 0; y <= window->v2 - window->v1; y++)
        memcpy(field + (size_t)y * columns, f->field + (size_t)y * f->grid.stride,
               columns * sizeof(*field));
}
