#include "analysis/cells/follow.h"

#include "analysis/cells/mgvf.h"
#include "analysis/cells/snake.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oct_cells_follower {
    struct oct_cells_params params;
    uint32_t height, width;
    const struct oct_mgvf *mgvf;
    struct oct_snake_angles angles;
    float *planes[OCT_MGVF_N_PLANES], *edge; /* planes of mgvf.h, from their first float */
    double *row;                             /* of squared gradients */
    float *field;                            /* rows one after another */
    struct oct_snake_field snakes;
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
    f->snakes.pixels = oct_aligned_calloc(64, n, sizeof(struct oct_snake_pixel));
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
    oct_snake_field_fill(&f->snakes, w, grid.stride);
    for (size_t y = 0; y < grid.rows; y++)
        memcpy(f->field + y * grid.columns, w + y * grid.stride, grid.columns * sizeof(*w));
    return n;
}

void oct_cells_follow(struct oct_cells_follower *f, const float *pixels, size_t stride,
                      const struct oct_cell_start *start, struct oct_cell_end *end)
{
    struct oct_snake snake = {.x = start->x, .y = start->y};
    memcpy(snake.radii, start->radii, sizeof(snake.radii));
    end->n_field = end->n_snake = 0;
    end->left = false;
    end->defined = f->has_field =
        oct_cell_window_find(&f->params, f->height, f->width, start->x, start->y, &f->window);
    if (end->defined) {
        end->n_field = find_field(f, pixels, stride, start);
        snake.x -= f->window.u1;
        snake.y -= f->window.v1;
        end->n_snake = oct_snake_run(&snake, &f->snakes, &f->angles, snake.y + start->mean_dy,
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
