#include "analysis/cells/follow.h"

#include "analysis/cells/mgvf.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N OCT_CELLS_SNAXELS

/* A pixel of the field: w and the direction of its gradient, of length 1 or 0. */
struct pixel {
    float w, ux, uy, unused;
};

struct field {
    uint32_t rows, columns; /* at least 2 */
    struct pixel *pixels;   /* [rows][columns] */
};

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

/* ---- the field ---- */

static void fill_pixel(struct pixel *pixel, double w, double gx, double gy)
{
    const double square = gx * gx + gy * gy, scale = square > 0 ? 1 / sqrt(square) : 0;
    pixel->w = (float)w;
    pixel->ux = (float)(gx * scale);
    pixel->uy = (float)(gy * scale);
}

/* Fills pixels from w, rows `stride` apart. */
static void fill_field(struct field *field, const float *w, size_t stride)
{
    const size_t rows = field->rows, columns = field->columns;
    for (size_t y = 0; y < rows; y++) {
        const size_t above = y > 0 ? y - 1 : 0, below = y + 1 < rows ? y + 1 : y;
        const float *row = w + y * stride, *up = w + above * stride, *down = w + below * stride;
        const double scale = 1 / (double)(below - above);
        struct pixel *to = field->pixels + y * columns;
        for (size_t x = 1; x + 1 < columns; x++)
            fill_pixel(&to[x], (double)row[x], ((double)row[x + 1] - (double)row[x - 1]) * 0.5,
                       ((double)down[x] - (double)up[x]) * scale);
        const size_t end = columns - 1;
        fill_pixel(&to[0], (double)row[0], (double)row[1] - (double)row[0],
                   ((double)down[0] - (double)up[0]) * scale);
        fill_pixel(&to[end], (double)row[end], (double)row[end] - (double)row[end - 1],
                   ((double)down[end] - (double)up[end]) * scale);
    }
}

/* ---- the snake ---- */

struct samples {
    double w[N], ux[N], uy[N];
};

/* Bilinear; all points are within the field. */
static void sample(struct samples *s, const struct field *field, const double *x, const double *y)
{
    const int x_most = (int)field->columns - 2, y_most = (int)field->rows - 2;
    for (unsigned i = 0; i < N; i++) {
        const int x0 = (int)x[i] < x_most ? (int)x[i] : x_most;
        const int y0 = (int)y[i] < y_most ? (int)y[i] : y_most;
        const double ax = x[i] - x0, ay = y[i] - y0;
        const struct pixel *p = field->pixels + (size_t)y0 * field->columns + (size_t)x0;
        const struct pixel *q = p + field->columns;
        const double a = (1 - ax) * (1 - ay), b = ax * (1 - ay), c = (1 - ax) * ay, d = ax * ay;
        s->w[i] = a * (double)p[0].w + b * (double)p[1].w + c * (double)q[0].w + d * (double)q[1].w;
        s->ux[i] =
            a * (double)p[0].ux + b * (double)p[1].ux + c * (double)q[0].ux + d * (double)q[1].ux;
        s->uy[i] =
            a * (double)p[0].uy + b * (double)p[1].uy + c * (double)q[0].uy + d * (double)q[1].uy;
    }
}

static bool are_inside(const struct field *field, const double *x, const double *y)
{
    const double x_most = (double)field->columns - 1, y_most = (double)field->rows - 1;
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
static double step(struct snake *snake, const struct samples *s,
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

/* Moves the snake until it rests. mean_y: Ey, in pixels of the field; radius: R. *left: a snaxel is
 * outside the field, or the snake has no length: it is as it was then. Returns the number
 * of iterations. */
static uint32_t run_snake(struct snake *snake, const struct field *field,
                          const struct oct_snake_angles *angles, double mean_y, double radius,
                          double stop, bool *left)
{
    double moved = INFINITY;
    for (uint32_t n = 0;; n++) {
        double x[N], y[N];
        for (unsigned i = 0; i < N; i++) {
            x[i] = snake->x + snake->radii[i] * angles->cosine[i];
            y[i] = snake->y + snake->radii[i] * angles->sine[i];
        }
        const double length = find_length(x, y);
        *left = !are_inside(field, x, y) || !(length > 0);
        if (*left || n == OCT_SNAKE_MOST_ITERATIONS || !(moved > stop))
            return n;
        struct samples samples;
        sample(&samples, field, x, y);
        moved = step(snake, &samples, angles, length, mean_y, radius);
    }
}

/* ---- the window ---- */

struct oct_cells_follower {
    struct oct_cells_params params;
    uint32_t height, width;
    const struct oct_mgvf *mgvf;
    struct oct_snake_angles angles;
    float *planes[OCT_MGVF_N_PLANES], *edge; /* planes of mgvf.h, from their first float */
    double *row;                             /* of squared gradients */
    float *field;                            /* rows one after another */
    struct field snakes;
    struct oct_cell_window window;
    bool has_field;
};

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

enum oct_err oct_cells_follower_create(struct oct_cells_follower **follower,
                                       const struct oct_cells_params *params, uint32_t height,
                                       uint32_t width, struct oct_error *err)
{
    /* As oct_cell_window_most; no window is larger than the picture. */
    const uint32_t columns = least_of((uint32_t)ceil(8 * params->radius) + 2, width);
    const uint32_t rows = least_of((uint32_t)ceil(4 * params->radius) + 2, height);
    const size_t n = (size_t)rows * columns, n_plane = oct_mgvf_plane_floats(rows, columns);
    struct oct_cells_follower *f = *follower = calloc(1, sizeof(*f));
    if (!f)
        goto fail;
    f->params = *params;
    f->height = height;
    f->width = width;
    f->mgvf = oct_mgvf_select("auto");
    oct_snake_angles_init(&f->angles);
    bool is_whole = true;
    for (unsigned i = 0; i < OCT_MGVF_N_PLANES; i++) {
        f->planes[i] = oct_aligned_calloc(64, n_plane, sizeof(float));
        is_whole = is_whole && f->planes[i];
    }
    f->edge = oct_aligned_calloc(64, n_plane, sizeof(float));
    f->row = oct_aligned_calloc(64, columns, sizeof(double));
    f->field = oct_aligned_calloc(64, n, sizeof(float));
    f->snakes.pixels = oct_aligned_calloc(64, n, sizeof(struct pixel));
    if (is_whole && f->edge && f->row && f->field && f->snakes.pixels)
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
    for (unsigned i = 0; i < OCT_MGVF_N_PLANES; i++)
        free(f->planes[i]);
    free(f->edge);
    free(f->row);
    free(f->field);
    free(f->snakes.pixels);
    free(f);
}

/* |gradient|^2 of row y of the window. */
static void square_row(double *square, const float *pixels, size_t stride, uint32_t y,
                       const struct oct_mgvf_grid *grid)
{
    const size_t above = y > 0 ? y - 1 : 0, below = y + 1 < grid->rows ? y + 1 : y;
    const float *row = pixels + y * stride;
    const float *up = pixels + above * stride, *down = pixels + below * stride;
    const size_t end = grid->columns - 1;
    const double scale = 1 / (double)(below - above);
    for (size_t x = 0; x <= end; x++) {
        const double gy = ((double)down[x] - (double)up[x]) * scale;
        square[x] = gy * gy;
    }
    for (size_t x = 1; x < end; x++) {
        const double gx = ((double)row[x + 1] - (double)row[x - 1]) * 0.5;
        square[x] += gx * gx;
    }
    const double left = (double)row[1] - (double)row[0];
    const double right = (double)row[end] - (double)row[end - 1];
    square[0] += left * left;
    square[end] += right * right;
}

/* The edge map of the window, 0 to 1. The gradients are computed twice and kept nowhere: the least
 * and the largest are needed before the first is divided. */
static void find_edges(float *edge, double *row, const float *pixels, size_t stride,
                       const struct oct_mgvf_grid *grid)
{
    double least = INFINITY, most = 0;
    for (uint32_t y = 0; y < grid->rows; y++) {
        square_row(row, pixels, stride, y, grid);
        for (uint32_t x = 0; x < grid->columns; x++) {
            least = row[x] < least ? row[x] : least;
            most = row[x] > most ? row[x] : most;
        }
    }
    least = sqrt(least);
    const double scale = 1 / (sqrt(most) - least + 0x1p-52);
    for (uint32_t y = 0; y < grid->rows; y++) {
        square_row(row, pixels, stride, y, grid);
        for (uint32_t x = 0; x < grid->columns; x++)
            edge[y * grid->stride + x] = (float)((sqrt(row[x]) - least) * scale);
    }
}

/* The field of the window into f->field and f->snakes. */
static uint32_t find_field(struct oct_cells_follower *f, const float *pixels, size_t stride,
                           const struct oct_cell_start *start)
{
    const struct oct_cell_window *at = &f->window;
    struct oct_mgvf_grid grid = {.rows = (uint32_t)(at->v2 - at->v1 + 1),
                                 .columns = (uint32_t)(at->u2 - at->u1 + 1)};
    grid.stride = oct_mgvf_stride(grid.columns);
    const size_t first = oct_mgvf_first(&grid);
    float *edge = f->edge + first, *planes[OCT_MGVF_N_PLANES];
    const float *window = pixels + (size_t)at->v1 * stride + (size_t)at->u1;
    struct oct_mgvf_flow flow;
    uint32_t n;
    for (unsigned i = 0; i < OCT_MGVF_N_PLANES; i++)
        planes[i] = f->planes[i] + first;
    oct_mgvf_flow_init(&flow, start->vx, start->vy);
    find_edges(edge, f->row, window, stride, &grid);
    const float *w = oct_mgvf_run(f->mgvf, planes, edge, &grid, &flow, &n);
    f->snakes.rows = grid.rows;
    f->snakes.columns = grid.columns;
    fill_field(&f->snakes, w, grid.stride);
    for (size_t y = 0; y < grid.rows; y++)
        memcpy(f->field + y * grid.columns, w + y * grid.stride, grid.columns * sizeof(*w));
    return n;
}

void oct_cells_follow(struct oct_cells_follower *f, const float *pixels, size_t stride,
                      const struct oct_cell_start *start, struct oct_cell_end *end)
{
    struct snake snake = {.x = start->x, .y = start->y};
    memcpy(snake.radii, start->radii, sizeof(snake.radii));
    end->n_field = end->n_snake = 0;
    end->left = false;
    end->defined = f->has_field =
        oct_cell_window_find(&f->params, f->height, f->width, start->x, start->y, &f->window);
    if (end->defined) {
        end->n_field = find_field(f, pixels, stride, start);
        snake.x -= f->window.u1;
        snake.y -= f->window.v1;
        end->n_snake = run_snake(&snake, &f->snakes, &f->angles, snake.y + start->mean_dy,
                                 f->params.radius, f->params.stop, &end->left);
        snake.x += f->window.u1;
        snake.y += f->window.v1;
    }
    end->x = snake.x;
    end->y = snake.y;
    memcpy(end->radii, snake.radii, sizeof(end->radii));
}

const float *oct_cells_follow_field(const struct oct_cells_follower *f,
                                    struct oct_cell_window *window)
{
    if (!f->has_field)
        return NULL;
    *window = f->window;
    return f->field;
}
