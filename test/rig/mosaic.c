#include "test/rig/mosaic.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define BLOB 0.22 /* standard deviation of a blob, of the spacing */
#define DARK 0.2

/* A sum of 12 uniform numbers: near enough to a normal distribution. */
static double normal(struct dice *dice)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += dice_below(dice, 1000000) / 1e6;
    return sum;
}

static struct oct_picture open_picture(uint32_t height, uint32_t width, bool masked, float value)
{
    struct oct_picture picture;
    must(oct_picture_init(&picture, height, width, masked, &failure));
    for (size_t i = 0; i < (size_t)height * width; i++)
        picture.pixels[i] = value;
    return picture;
}

static void add_blob(struct oct_picture *p, double y, double x, double sd_y, double sd_x,
                     double most)
{
    for (double py = fmax(0, ceil(y - 4 * sd_y)); py <= fmin(p->height - 1, y + 4 * sd_y); py++)
        for (double px = fmax(0, ceil(x - 4 * sd_x)); px <= fmin(p->width - 1, x + 4 * sd_x);
             px++) {
            double dy = (py - y) / sd_y, dx = (px - x) / sd_x;
            p->pixels[(size_t)py * p->width + (size_t)px] +=
                (float)(most * exp(-(dy * dy + dx * dx) / 2));
        }
}

static void remember(struct oct_mosaic_truth *truth, const struct oct_picture *p, double y,
                     double x)
{
    if (!(y >= -0.5 && y < p->height - 0.5 && x >= -0.5 && x < p->width - 0.5))
        return;
    truth->at = realloc(truth->at, (truth->n + 1) * sizeof(*truth->at));
    assert_non_null(truth->at);
    truth->at[truth->n][0] = y;
    truth->at[truth->n++][1] = x;
}

/* A conformal map: z + bend z^2, so that hexagons stay hexagons. */
static void bend(const struct oct_cone_mosaic *m, double *u, double *v)
{
    const double half = m->width / (2 * m->spacing_x), share = m->bend / (2 * half);
    const double x = *u + share * (*u * *u - *v * *v), y = *v + 2 * share * *u * *v;
    *u = x;
    *v = y;
}

static void draw(const struct oct_cone_mosaic *m, struct oct_picture *p,
                 struct oct_mosaic_truth *truth)
{
    struct dice dice = {m->seed};
    const double least = fmin(m->spacing_y, m->spacing_x), blob = m->blob > 0 ? m->blob : BLOB;
    const int n = (int)((m->height + m->width) / least) + 3;
    for (int j = -n; j <= n; j++)
        for (int i = -n; i <= n; i++) {
            double u = i + 0.5 * j + m->jitter * normal(&dice);
            double v = sqrt(3) / 2 * j + m->jitter * normal(&dice);
            const double most = exp(m->brightness * normal(&dice));
            if (m->missing > 0 && dice_below(&dice, 1000000) < 1e6 * m->missing)
                continue;
            bend(m, &u, &v);
            double x = m->width / 2.0 + m->spacing_x * (u * cos(m->angle) - v * sin(m->angle));
            double y = m->height / 2.0 + m->spacing_y * (u * sin(m->angle) + v * cos(m->angle));
            add_blob(p, y, x, blob * m->spacing_y, blob * m->spacing_x, most);
            remember(truth, p, y, x);
        }
}

struct oct_picture oct_mosaic_make_known(const struct oct_cone_mosaic *m, bool masked,
                                         struct oct_mosaic_truth *truth)
{
    struct oct_picture p = open_picture(m->height, m->width, masked, (float)DARK);
    struct dice dice = {m->seed + 1};
    const size_t n = (size_t)m->height * m->width;
    double sum = 0;
    *truth = (struct oct_mosaic_truth){.n = 0};
    draw(m, &p, truth);
    for (size_t i = 0; i < n; i++) {
        p.pixels[i] *= (float)exp(m->shade * (double)(i % m->width) / m->width);
        sum += (double)p.pixels[i];
    }
    for (size_t i = 0; i < n && m->noise > 0; i++)
        p.pixels[i] = fmaxf(0, p.pixels[i] + (float)(m->noise * sum / (double)n * normal(&dice)));
    return p;
}

struct oct_picture oct_mosaic_make(const struct oct_cone_mosaic *m, bool masked)
{
    struct oct_mosaic_truth truth;
    struct oct_picture p = oct_mosaic_make_known(m, masked, &truth);
    free(truth.at);
    return p;
}

struct oct_picture oct_mosaic_noise(uint32_t height, uint32_t width, uint64_t seed)
{
    struct oct_picture p = open_picture(height, width, false, 10);
    struct dice dice = {seed};
    for (size_t i = 0; i < (size_t)height * width; i++)
        p.pixels[i] += (float)normal(&dice);
    return p;
}

struct oct_picture oct_mosaic_points(uint32_t height, uint32_t width, double spacing, uint64_t seed)
{
    struct oct_picture p = open_picture(height, width, false, (float)DARK);
    struct dice dice = {seed};
    const int n = (int)(height * width * 2 / sqrt(3) / (spacing * spacing));
    for (int i = 0; i < n; i++) {
        double y = dice_below(&dice, 1000000) * 1e-6 * height;
        double x = dice_below(&dice, 1000000) * 1e-6 * width;
        add_blob(&p, y, x, BLOB * spacing, BLOB * spacing, 1);
    }
    return p;
}
