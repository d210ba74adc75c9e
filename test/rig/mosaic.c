#include "test/rig/mosaic.h"

#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>

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
    struct oct_error err = {.text = ""};
    if (oct_picture_init(&picture, height, width, masked, &err))
        fail_msg("%s", err.text);
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

struct oct_picture oct_mosaic_make(const struct oct_cone_mosaic *m, bool masked)
{
    struct oct_picture p = open_picture(m->height, m->width, masked, (float)DARK);
    struct dice dice = {m->seed};
    const double least = fmin(m->spacing_y, m->spacing_x);
    const int n = (int)((m->height + m->width) / least) + 3;
    for (int j = -n; j <= n; j++)
        for (int i = -n; i <= n; i++) {
            double u = i + 0.5 * j + m->jitter * normal(&dice);
            double v = sqrt(3) / 2 * j + m->jitter * normal(&dice);
            double x = m->width / 2.0 + m->spacing_x * (u * cos(m->angle) - v * sin(m->angle));
            double y = m->height / 2.0 + m->spacing_y * (u * sin(m->angle) + v * cos(m->angle));
            add_blob(&p, y, x, BLOB * m->spacing_y, BLOB * m->spacing_x,
                     exp(m->brightness * normal(&dice)));
        }
    for (uint32_t y = 0; y < m->height; y++)
        for (uint32_t x = 0; x < m->width; x++)
            p.pixels[(size_t)y * m->width + x] *= (float)exp(m->shade * x / m->width);
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
