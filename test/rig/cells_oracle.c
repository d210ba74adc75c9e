#include "test/rig/cells_oracle.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLES 150

static const double pi = 3.14159265358979323846;

static size_t clamped(int64_t i, uint32_t n)
{
    return (size_t)(i < 0 ? 0 : i >= n ? n - 1 : i);
}

static void smooth(struct oct_cells_oracle *o, const float *pixels, double sigma)
{
    const size_t h = o->height, w = o->width;
    const int64_t reach = (int64_t)floor(4 * sigma + 0.5);
    double *tap = calloc((size_t)(2 * reach + 1), sizeof(double)), sum = 0;
    double *along = calloc(h * w, sizeof(double));
    for (int64_t t = -reach; t <= reach; t++)
        sum += tap[t + reach] = reach ? exp(-(double)(t * t) / (2 * sigma * sigma)) : 1;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            for (int64_t t = -reach; t <= reach; t++)
                along[y * w + x] += tap[t + reach] / sum *
                                    (double)pixels[y * w + clamped((int64_t)x + t, o->width)];
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            for (int64_t t = -reach; t <= reach; t++)
                o->smooth[y * w + x] +=
                    tap[t + reach] / sum * along[clamped((int64_t)y + t, o->height) * w + x];
    free(along);
    free(tap);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void differentiate(struct oct_cells_oracle *o)
{
    const size_t h = o->height, w = o->width;
    double *all = calloc(2 * h * w, sizeof(double));
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++) {
            const size_t x0 = x ? x - 1 : x, x1 = x + 1 < w ? x + 1 : x;
            const size_t y0 = y ? y - 1 : y, y1 = y + 1 < h ? y + 1 : y;
            o->gx[y * w + x] = (o->smooth[y * w + x1] - o->smooth[y * w + x0]) / (double)(x1 - x0);
            o->gy[y * w + x] = (o->smooth[y1 * w + x] - o->smooth[y0 * w + x]) / (double)(y1 - y0);
            all[2 * (y * w + x)] = fabs(o->gx[y * w + x]);
            all[2 * (y * w + x) + 1] = fabs(o->gy[y * w + x]);
        }
    qsort(all, 2 * h * w, sizeof(double), ascending);
    o->sigma = 1.4826 * (all[h * w - 1] + all[h * w]) / 2;
    free(all);
}

static double to_pixel(double d, bool truncated)
{
    return truncated ? trunc(d) : copysign(floor(fabs(d) + 0.5), d);
}

/* Samples of a circle: the whole pixel that they fall on, and their direction. */
struct circle {
    int64_t dx[SAMPLES], dy[SAMPLES];
    double cosine[SAMPLES], sine[SAMPLES];
};

static void draw(struct circle *circle, double rho, bool truncated)
{
    for (int i = 0; i < SAMPLES; i++) {
        const double t = 2 * pi * i / SAMPLES;
        circle->cosine[i] = cos(t);
        circle->sine[i] = sin(t);
        circle->dx[i] = (int64_t)to_pixel(rho * cos(t), truncated);
        circle->dy[i] = (int64_t)to_pixel(rho * sin(t), truncated);
    }
}

static double score_at(const struct oct_cells_oracle *o, const struct circle *circle, size_t x,
                       size_t y, double v0)
{
    double g[SAMPLES], mean = 0, variance = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const size_t at =
            (size_t)((int64_t)y + circle->dy[i]) * o->width + (size_t)((int64_t)x + circle->dx[i]);
        g[i] = o->gx[at] * circle->cosine[i] + o->gy[at] * circle->sine[i];
        mean += g[i] / SAMPLES;
    }
    for (int i = 0; i < SAMPLES; i++)
        variance += (g[i] - mean) * (g[i] - mean) / (SAMPLES - 1);
    return mean == 0 ? 0 : mean / sqrt(variance + v0);
}

/* Circle k of all pixels. */
static void score_circle(struct oct_cells_oracle *o, const struct circle *circle, unsigned k,
                         double v0)
{
    for (size_t y = o->border; y + o->border < o->height; y++)
        for (size_t x = o->border; x + o->border < o->width; x++) {
            const size_t at = y * o->width + x;
            const double s = score_at(o, circle, x, y, v0);
            if (fabs(s) > fabs(o->score[at])) {
                o->rival[at] = fabs(o->score[at]);
                o->score[at] = s;
                o->best[at] = k;
            } else if (fabs(s) > o->rival[at]) {
                o->rival[at] = fabs(s);
            }
        }
}

void oct_cells_oracle_init(struct oct_cells_oracle *o, const struct oct_picture *picture,
                           const struct oct_cells_params *p)
{
    const size_t h = picture->height, w = picture->width;
    *o = (struct oct_cells_oracle){
        .height = picture->height,
        .width = picture->width,
        .border = (uint32_t)ceil(p->radius * p->last - 1e-9) + 2,
        .smooth = calloc(h * w, sizeof(double)),
        .gx = calloc(h * w, sizeof(double)),
        .gy = calloc(h * w, sizeof(double)),
        .score = calloc(h * w, sizeof(double)),
        .rival = calloc(h * w, sizeof(double)),
        .best = calloc(h * w, sizeof(unsigned)),
    };
    smooth(o, picture->pixels, p->smooth * p->radius);
    differentiate(o);
    for (unsigned k = 0; p->first + k * p->step < p->last + p->step / 1000; k++) {
        struct circle circle;
        const double rho = p->radius * (p->first * 1000 + k * p->step * 1000);
        draw(&circle, round(rho * 1e6) / 1e9, p->truncated);
        score_circle(o, &circle, k, p->floor * o->sigma * p->floor * o->sigma);
    }
}

void oct_cells_oracle_finish(struct oct_cells_oracle *o)
{
    free(o->smooth);
    free(o->gx);
    free(o->gy);
    free(o->score);
    free(o->rival);
    free(o->best);
}

double oct_cells_oracle_around(const struct oct_cells_oracle *o, const struct oct_cells_params *p,
                               uint32_t x, uint32_t y)
{
    const int64_t r = (int64_t)floor(p->spacing * p->radius + 0.5);
    double most = 0;
    for (int64_t v = (int64_t)y - r; v <= (int64_t)y + r; v++)
        for (int64_t u = (int64_t)x - r; u <= (int64_t)x + r; u++) {
            const int64_t dx = u - x, dy = v - y;
            if (u < 0 || v < 0 || u >= o->width || v >= o->height || (dx == 0 && dy == 0) ||
                dx * dx + dy * dy > r * r)
                continue;
            most = fmax(most, fabs(o->score[(size_t)v * o->width + (size_t)u]));
        }
    return most;
}

/* ---- films ---- */

static double uniform(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return ((double)(*state >> 8) + 0.5) / 16777216;
}

double oct_cells_scene_normal(uint32_t *state)
{
    const double u = uniform(state), v = uniform(state);
    return sqrt(-2 * log(u)) * cos(2 * pi * v);
}

void oct_cells_scene_disk(struct oct_picture *picture, const struct oct_cells_disk *disk)
{
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t x = 0; x < picture->width; x++) {
            const double d = hypot(x - disk->x, y - disk->y);
            unsigned n = d < disk->radius - 1 ? 256 : 0;
            for (int i = 0; i < 256 && fabs(d - disk->radius) <= 1; i++)
                n += hypot(x - disk->x + (i % 16 - 7.5) / 16, y - disk->y + (i / 16 - 7.5) / 16) <=
                     disk->radius;
            picture->pixels[(size_t)y * picture->width + x] += (float)(disk->height * n / 256);
        }
}

void oct_cells_scene(struct oct_picture *picture, uint32_t height, uint32_t width, double radius,
                     enum oct_cells_scene scene, uint32_t seed)
{
    const double contrast = scene == OCT_CELLS_SCENE_NOISE ? 4 : 8, sigma = 5;
    uint32_t state = seed * 7919 + (uint32_t)scene;
    const double side = 5 * radius;
    if (oct_picture_init(picture, height, width, false, NULL))
        abort();
    for (size_t i = 0; i < (size_t)height * width; i++)
        picture->pixels[i] = 0;
    for (double y = side / 2; y < height; y += side)
        for (double x = side / 2; x < width; x += side) {
            const struct oct_cells_disk disk = {
                x + radius * (uniform(&state) - 0.5), y + radius * (uniform(&state) - 0.5),
                radius * (0.85 + 0.3 * uniform(&state)),
                contrast * sigma * (uniform(&state) < 0.3 ? -1 : 1)};
            oct_cells_scene_disk(picture, &disk);
        }
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            float *p = picture->pixels + (size_t)y * width + x;
            double v = (double)*p + 100;
            const bool quiet = scene == OCT_CELLS_SCENE_FLAT && (x / 40 + y / 40) % 3 == 0;
            if (scene == OCT_CELLS_SCENE_SLOPE)
                v += 60.0 * x / width - 30.0 * y / height;
            v = quiet ? 130 : v + sigma * oct_cells_scene_normal(&state);
            if (scene != OCT_CELLS_SCENE_NOISE)
                v = fmin(fmax(floor(v + 0.5), 0), scene == OCT_CELLS_SCENE_FLAT ? 135 : 255);
            *p = (float)v;
        }
}
