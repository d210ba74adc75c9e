#include "analysis/cells/snake.h"

#include "analysis/cells/snake_step.h"

#include <math.h>

#define N OCT_CELLS_SNAXELS

void oct_snake_angles_init(struct oct_snake_angles *angles)
{
    for (unsigned i = 0; i < N; i++) {
        const double t = 2 * 3.14159265358979323846 * i / N;
        angles->cosine[i] = cos(t);
        angles->sine[i] = sin(t);
    }
}

/* ---- the field ---- */

static void fill_pixel(struct oct_snake_pixel *pixel, double w, double gx, double gy)
{
    const double square = gx * gx + gy * gy, scale = square > 0 ? 1 / sqrt(square) : 0;
    pixel->w = (float)w;
    pixel->ux = (float)(gx * scale);
    pixel->uy = (float)(gy * scale);
}

void oct_snake_field_fill(struct oct_snake_field *field, const float *w, size_t stride)
{
    const size_t rows = field->rows, columns = field->columns;
    for (size_t y = 0; y < rows; y++) {
        const size_t above = y > 0 ? y - 1 : 0, below = y + 1 < rows ? y + 1 : y;
        const float *row = w + y * stride, *up = w + above * stride, *down = w + below * stride;
        const double scale = 1 / (double)(below - above);
        struct oct_snake_pixel *to = field->pixels + y * columns;
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
static void sample(struct samples *s, const struct oct_snake_field *field, const double *x,
                   const double *y)
{
    const int x_most = (int)field->columns - 2, y_most = (int)field->rows - 2;
    for (unsigned i = 0; i < N; i++) {
        const int x0 = (int)x[i] < x_most ? (int)x[i] : x_most;
        const int y0 = (int)y[i] < y_most ? (int)y[i] : y_most;
        const double ax = x[i] - x0, ay = y[i] - y0;
        const struct oct_snake_pixel *p = field->pixels + (size_t)y0 * field->columns + (size_t)x0;
        const struct oct_snake_pixel *q = p + field->columns;
        const double a = (1 - ax) * (1 - ay), b = ax * (1 - ay), c = (1 - ax) * ay, d = ax * ay;
        s->w[i] = a * (double)p[0].w + b * (double)p[1].w + c * (double)q[0].w + d * (double)q[1].w;
        s->ux[i] =
            a * (double)p[0].ux + b * (double)p[1].ux + c * (double)q[0].ux + d * (double)q[1].ux;
        s->uy[i] =
            a * (double)p[0].uy + b * (double)p[1].uy + c * (double)q[0].uy + d * (double)q[1].uy;
    }
}

static bool are_inside(const struct oct_snake_field *field, const double *x, const double *y)
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
static double step(struct oct_snake *snake, const struct samples *s,
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

uint32_t oct_snake_run(struct oct_snake *snake, const struct oct_snake_field *field,
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
