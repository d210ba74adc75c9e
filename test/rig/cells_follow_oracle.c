#include "test/rig/cells_follow_oracle.h"

#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static double *room(int rows, int columns)
{
    double *all = calloc((size_t)rows * (size_t)columns, sizeof(*all));
    assert_non_null(all);
    return all;
}

static int clamp(int i, int n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* A picture of doubles. */
struct map {
    int rows, columns;
    double *values;
};

static double value(const struct map *m, int y, int x)
{
    return m->values[y * m->columns + x];
}

/* Central differences, one-sided at the border. */
static void gradient(const struct map *m, int y, int x, double *gx, double *gy)
{
    const int left = clamp(x - 1, m->columns), right = clamp(x + 1, m->columns);
    const int up = clamp(y - 1, m->rows), down = clamp(y + 1, m->rows);
    *gx = (value(m, y, right) - value(m, y, left)) / (right - left);
    *gy = (value(m, down, x) - value(m, up, x)) / (down - up);
}

/* ---- the field ---- */

static bool find_window(struct oct_follow_oracle *o)
{
    const double reach_x = 4 * o->radius, reach_y = 2 * o->radius;
    o->u1 = (int)fmax(o->x - reach_x + 0.5, 0);
    o->u2 = (int)fmin(o->x + reach_x + 0.5, o->width - 1);
    o->v1 = (int)fmax(o->y - reach_y + 0.5, 0);
    o->v2 = (int)fmin(o->y + reach_y + 0.5, o->height - 1);
    return o->u2 - o->u1 >= 1 && o->v2 - o->v1 >= 1;
}

static struct map edge_map(const struct oct_follow_oracle *o)
{
    struct map part = {.rows = o->v2 - o->v1 + 1, .columns = o->u2 - o->u1 + 1};
    part.values = room(part.rows, part.columns);
    for (int y = 0; y < part.rows; y++)
        for (int x = 0; x < part.columns; x++)
            part.values[y * part.columns + x] =
                (double)o->pixels[(y + o->v1) * o->width + x + o->u1];
    struct map edge = part;
    edge.values = room(part.rows, part.columns);
    double least = INFINITY, most = -INFINITY;
    const int n = part.rows * part.columns;
    for (int i = 0; i < n; i++) {
        double gx, gy;
        gradient(&part, i / part.columns, i % part.columns, &gx, &gy);
        edge.values[i] = hypot(gx, gy);
        least = fmin(least, edge.values[i]);
        most = fmax(most, edge.values[i]);
    }
    for (int i = 0; i < n; i++)
        edge.values[i] = (edge.values[i] - least) / (most - least + pow(2, -52));
    free(part.values);
    return edge;
}

static double next_value(const struct map *w, double f, int y, int x, double vx, double vy)
{
    const double mu = 0.5, lambda = 8 * mu + 1, epsilon = 1e-10, old = value(w, y, x);
    double sum = 0;
    for (int ey = -1; ey <= 1; ey++)
        for (int ex = -1; ex <= 1; ex++) {
            const double d = value(w, clamp(y + ey, w->rows), clamp(x + ex, w->columns)) - old;
            const double z = d * (vx * ex + vy * ey);
            if (ex != 0 || ey != 0)
                sum += (atan(z / epsilon) / pi + 0.5) * d;
        }
    const double spread = old + mu / lambda * sum;
    return spread - 1 / lambda * f * (spread - f);
}

/* One iteration in place; returns the mean |change|. */
static double iterate(struct map *w, const struct map *edge, double vx, double vy, double *next)
{
    const int n = w->rows * w->columns;
    double change = 0;
    for (int i = 0; i < n; i++) {
        next[i] = next_value(w, edge->values[i], i / w->columns, i % w->columns, vx, vy);
        change += fabs(next[i] - w->values[i]);
    }
    memcpy(w->values, next, (size_t)n * sizeof(*next));
    return change / n;
}

static struct map find_field(struct oct_follow_oracle *o)
{
    struct map edge = edge_map(o), w = edge;
    w.values = room(w.rows, w.columns);
    memcpy(w.values, edge.values, (size_t)(w.rows * w.columns) * sizeof(double));
    double *next = room(w.rows, w.columns), change = 1;
    for (o->n_field = 0;
         o->iterations ? o->n_field < o->iterations : o->n_field < 500 && change > 1e-5;
         o->n_field++)
        change = iterate(&w, &edge, o->vx, o->vy, next);
    free(next);
    free(edge.values);
    return w;
}

/* ---- the snake ---- */

struct force {
    double w, ux, uy;
};

static struct force force_of(const struct map *w, int y, int x)
{
    double gx, gy;
    gradient(w, y, x, &gx, &gy);
    const double length = sqrt(gx * gx + gy * gy);
    return (struct force){.w = value(w, y, x),
                          .ux = length > 0 ? gx / length : 0,
                          .uy = length > 0 ? gy / length : 0};
}

static struct force force_at(const struct map *w, double x, double y)
{
    struct force sum = {0};
    const int x0 = (int)floor(x), y0 = (int)floor(y);
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            const double part = (1 - fabs(x - x0 - i)) * (1 - fabs(y - y0 - j));
            if (part == 0)
                continue;
            const struct force f = force_of(w, y0 + j, x0 + i);
            sum.w += part * f.w;
            sum.ux += part * f.ux;
            sum.uy += part * f.uy;
        }
    return sum;
}

/* The snaxels; false: one is outside. */
static bool place(const struct oct_follow_oracle *o, const struct map *w, double *x, double *y)
{
    bool inside = true;
    for (int i = 0; i < ORACLE_SNAXELS; i++) {
        x[i] = o->x - o->u1 + o->radii[i] * cos(2 * pi * i / ORACLE_SNAXELS);
        y[i] = o->y - o->v1 + o->radii[i] * sin(2 * pi * i / ORACLE_SNAXELS);
        inside = inside && x[i] >= 0 && x[i] <= w->columns - 1 && y[i] >= 0 && y[i] <= w->rows - 1;
    }
    return inside;
}

static double move(struct oct_follow_oracle *o, const struct map *w, const double *x,
                   const double *y)
{
    struct force f[ORACLE_SNAXELS], sum = {0};
    double length = 0, moved = 0;
    for (int i = 0; i < ORACLE_SNAXELS; i++) {
        const int j = (i + 1) % ORACLE_SNAXELS;
        length += hypot(x[j] - x[i], y[j] - y[i]);
        f[i] = force_at(w, x[i], y[i]);
        sum.w += f[i].w;
        sum.ux += f[i].ux;
        sum.uy += f[i].uy;
    }
    for (int i = 0; i < ORACLE_SNAXELS; i++) {
        const double along = f[i].ux * (x[i] - (o->x - o->u1)) + f[i].uy * (y[i] - (o->y - o->v1));
        const double force = (f[i].w + along - sum.w / length) / length;
        const double r = (o->radii[i] + 0.2 * force + 0.2 * 0.2 * o->radius) / (1 + 0.2 * 0.2);
        moved += fabs(r - o->radii[i]);
        o->radii[i] = r;
    }
    const double x_new = o->x + 0.2 * sum.ux / length;
    const double y_new = (o->y + 0.2 * sum.uy / length + 0.2 * 0.05 * o->mean_y) / (1 + 0.2 * 0.05);
    moved += fabs(x_new - o->x) + fabs(y_new - o->y);
    o->x = x_new;
    o->y = y_new;
    return moved;
}

void oct_follow_oracle_run(struct oct_follow_oracle *o)
{
    double x[ORACLE_SNAXELS], y[ORACLE_SNAXELS], moved = INFINITY;
    o->left = false;
    o->field = NULL;
    o->n_field = o->n_snake = 0;
    o->defined = find_window(o);
    if (!o->defined)
        return;
    struct map w = find_field(o);
    o->field = w.values;
    for (;;) {
        o->left = !place(o, &w, x, y);
        if (o->left || o->n_snake == 1000 || moved <= o->stop)
            return;
        moved = move(o, &w, x, y);
        o->n_snake++;
    }
}

/* ---- pictures ---- */

static double uniform(uint32_t *state)
{
    return oct_oracle_random(state) / 16777216.0;
}

/* Boxes over three pixels, `times` times along both axes. */
static void smooth(double *noise, int height, int width, int times)
{
    const struct map m = {.rows = height, .columns = width, .values = noise};
    double *next = room(height, width);
    for (int t = 0; t < times; t++) {
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                double sum = 0;
                for (int k = 0; k < 9; k++)
                    sum += value(&m, clamp(y + k / 3 - 1, height), clamp(x + k % 3 - 1, width));
                next[y * width + x] = sum / 9;
            }
        memcpy(noise, next, (size_t)(height * width) * sizeof(*next));
    }
    free(next);
}

float *oct_follow_scene_draw(const struct oct_follow_scene *s)
{
    const int n = s->height * s->width;
    uint32_t state = s->seed * 2654435761U + 1;
    double *noise = room(s->height, s->width), squares = 0;
    float *pixels = calloc((size_t)n, sizeof(*pixels));
    assert_non_null(pixels);
    for (int i = 0; i < n; i++)
        noise[i] = uniform(&state) + uniform(&state) + uniform(&state) - 1.5;
    /* A box of three has the variance 2/3. */
    smooth(noise, s->height, s->width, (int)lround(1.5 * s->smooth * s->smooth));
    for (int i = 0; i < n; i++)
        squares += noise[i] * noise[i];
    const double deviation = sqrt(squares / n);
    for (int i = 0; i < n; i++) {
        const double away = hypot(i % s->width - s->x, i / s->width - s->y);
        const double disk = 1 / (1 + exp((away - s->radius) / (0.1 * s->radius)));
        pixels[i] = (float)(100 + 10 * (noise[i] / deviation + s->contrast * disk));
    }
    free(noise);
    return pixels;
}
