/* The cone mosaic: discs as large as the local spacing are thrown at random where they fit, then
 * push each other apart until they lie in hexagonal patches, as photoreceptors do. */
#include "synth/model.h"

#include <stdlib.h>
#include <string.h>

#define BIN_UM 8.0 /* no smaller than the reach of a push or of the beam below */

static const double foveal_spacing_um = 2.6, spacing_slope = 0.0095, spacing_max_um = 8.0;
static const int n_relaxations = 14;

struct mosaic {
    double *x, *y, *spacing; /* [n_max] */
    int32_t *next;           /* [n_max] list of a bin */
    int32_t *head;           /* [n_x * n_y] */
    size_t n, n_max;
    uint32_t n_x, n_y;
    double width, height, fovea_x, fovea_y; /* relative to the corner */
};

static double spacing_at(const struct mosaic *m, double x, double y)
{
    double e = hypot(x - m->fovea_x, y - m->fovea_y);
    return fmin(foveal_spacing_um + spacing_slope * e, spacing_max_um);
}

static size_t bin_of(const struct mosaic *m, double x, double y)
{
    double bx = fmin(fmax(x / BIN_UM, 0.0), m->n_x - 1.0);
    double by = fmin(fmax(y / BIN_UM, 0.0), m->n_y - 1.0);
    return (size_t)by * m->n_x + (size_t)bx;
}

/* Visits the 3 x 3 bins around (x, y): the push on a disc there, or whether it overlaps one. */
static bool push_from_neighbours(const struct mosaic *m, double x, double y, double reach,
                                 double push[2])
{
    uint32_t bx = (uint32_t)(bin_of(m, x, y) % m->n_x), by = (uint32_t)(bin_of(m, x, y) / m->n_x);
    bool touched = false;
    push[0] = push[1] = 0;
    for (uint32_t j = by ? by - 1 : 0; j <= by + 1 && j < m->n_y; j++)
        for (uint32_t i = bx ? bx - 1 : 0; i <= bx + 1 && i < m->n_x; i++)
            for (int32_t c = m->head[(size_t)j * m->n_x + i]; c >= 0; c = m->next[c]) {
                double dx = x - m->x[c], dy = y - m->y[c], d2 = dx * dx + dy * dy;
                if (d2 >= reach * reach || d2 <= 0)
                    continue;
                double d = sqrt(d2), strength = 1.0 - d / reach;
                touched = true;
                push[0] += dx / d * strength;
                push[1] += dy / d * strength;
            }
    return touched;
}

static void insert(struct mosaic *m, size_t c)
{
    size_t bin = bin_of(m, m->x[c], m->y[c]);
    m->next[c] = m->head[bin];
    m->head[bin] = (int32_t)c;
}

/* Random sequential discs fill the plane at 0.70 / d^2 when no more fit, a hexagonal lattice at
 * 1.15 / spacing^2: d = 0.76 spacing gives the lattice's number. */
static void throw_discs(struct mosaic *m, uint64_t seed)
{
    double densest = 1.155 / (foveal_spacing_um * foveal_spacing_um);
    uint64_t n_throws = (uint64_t)(m->width * m->height * densest * 14.0);
    for (uint64_t i = 0; i < n_throws && m->n < m->n_max; i++) {
        uint64_t h = oct_hash(seed, OCT_STREAM_CONES, (int64_t)i, 0);
        double x = m->width * (double)(uint32_t)h * 0x1p-32;
        double y = m->height * (double)(uint32_t)(h >> 32) * 0x1p-32;
        double spacing = spacing_at(m, x, y), push[2];
        double share = foveal_spacing_um * foveal_spacing_um / (spacing * spacing);
        if (oct_uniform(oct_mix64(h + 1)) >= share ||
            push_from_neighbours(m, x, y, 0.76 * spacing, push))
            continue;
        m->x[m->n] = x;
        m->y[m->n] = y;
        m->spacing[m->n] = spacing;
        insert(m, m->n++);
    }
}

static void relax(struct mosaic *m, double *move)
{
    for (int round = 0; round < n_relaxations; round++) {
        for (size_t c = 0; c < m->n; c++) {
            push_from_neighbours(m, m->x[c], m->y[c], fmin(1.3 * m->spacing[c], BIN_UM),
                                 move + 2 * c);
        }
        memset(m->head, 0xff, (size_t)m->n_x * m->n_y * sizeof(*m->head));
        for (size_t c = 0; c < m->n; c++) {
            double x = m->x[c] + 0.35 * m->spacing[c] * move[2 * c];
            double y = m->y[c] + 0.35 * m->spacing[c] * move[2 * c + 1];
            m->x[c] = fmin(fmax(x, 0.0), m->width);
            m->y[c] = fmin(fmax(y, 0.0), m->height);
            m->spacing[c] = spacing_at(m, m->x[c], m->y[c]);
            insert(m, c);
        }
    }
}

/* Cones differ in brightness, and each end of an outer segment reflects with its own phase and
 * from its own depth. The inner ends lie more even than the tips. */
static struct oct_cone dress(uint64_t seed, size_t c, double x_um, double y_um, double spacing)
{
    uint64_t h[8];
    struct oct_cone cone;
    for (int i = 0; i < 8; i++)
        h[i] = oct_hash(seed, OCT_STREAM_CONES, (int64_t)c, 1 + i);
    double isos = exp(0.22 * oct_normal(h[0])), cost = exp(0.35 * oct_normal(h[1]));
    double a = 0.9 * oct_normal(h[2]), b = 2.0 * OCT_PI * oct_uniform(h[3]);
    /* Wider inner segments away from the fovea guide more light. */
    double size = 0.3 + 0.7 * fmin(1.0, (spacing - foveal_spacing_um) / 3.5);
    cone.x_um = (float)(x_um + 0.05 * spacing * oct_normal(h[4]));
    cone.y_um = (float)(y_um + 0.05 * spacing * oct_normal(h[5]));
    cone.isos_re = (float)(size * isos * cos(a));
    cone.isos_im = (float)(size * isos * sin(a));
    cone.cost_re = (float)(size * cost * cos(b));
    cone.cost_im = (float)(size * cost * sin(b));
    cone.isos_um = (float)(0.4 * oct_normal(h[6]));
    cone.cost_um = (float)(1.5 * oct_normal(h[7]));
    return cone;
}

/* Sorts the relaxed discs into bins, bin by bin. */
static enum oct_err keep(struct oct_retina_cones *cones, const struct mosaic *m, uint64_t seed)
{
    size_t n_bins = (size_t)m->n_x * m->n_y, n = 0;
    cones->cone = calloc(m->n + 1, sizeof(*cones->cone));
    cones->bin_start = calloc(n_bins + 1, sizeof(*cones->bin_start));
    if (!cones->cone || !cones->bin_start)
        return OCT_E_NO_MEMORY;
    for (size_t bin = 0; bin < n_bins; bin++) {
        cones->bin_start[bin] = (uint32_t)n;
        for (int32_t c = m->head[bin]; c >= 0; c = m->next[c], n++)
            cones->cone[n] =
                dress(seed, n, m->x[c] + cones->x0_um, m->y[c] + cones->y0_um, m->spacing[c]);
    }
    cones->bin_start[n_bins] = (uint32_t)n;
    cones->n = n;
    cones->n_x = m->n_x;
    cones->n_y = m->n_y;
    return OCT_OK;
}

enum oct_err oct_cones_init(struct oct_retina_cones *cones, uint64_t seed, const double fovea_um[2],
                            double width_um, double height_um, struct oct_error *err)
{
    struct mosaic m = {.width = width_um + 2 * OCT_MARGIN_UM,
                       .height = height_um + 2 * OCT_MARGIN_UM,
                       .fovea_x = fovea_um[0] + OCT_MARGIN_UM,
                       .fovea_y = fovea_um[1] + OCT_MARGIN_UM};
    enum oct_err e = OCT_E_NO_MEMORY;
    double *move = NULL;
    m.n_x = (uint32_t)(m.width / BIN_UM) + 1;
    m.n_y = (uint32_t)(m.height / BIN_UM) + 1;
    m.n_max = (size_t)(m.width * m.height * 1.2 / (foveal_spacing_um * foveal_spacing_um)) + 16;
    m.x = calloc(m.n_max, sizeof(double));
    m.y = calloc(m.n_max, sizeof(double));
    m.spacing = calloc(m.n_max, sizeof(double));
    m.next = calloc(m.n_max, sizeof(*m.next));
    m.head = malloc((size_t)m.n_x * m.n_y * sizeof(*m.head));
    move = calloc(2 * m.n_max, sizeof(double));
    if (m.x && m.y && m.spacing && m.next && m.head && move) {
        cones->x0_um = -OCT_MARGIN_UM;
        cones->y0_um = -OCT_MARGIN_UM;
        memset(m.head, 0xff, (size_t)m.n_x * m.n_y * sizeof(*m.head));
        throw_discs(&m, seed);
        relax(&m, move);
        e = keep(cones, &m, seed);
    }
    free(m.x);
    free(m.y);
    free(m.spacing);
    free(m.next);
    free(m.head);
    free(move);
    return e ? oct_fail(err, e, "synth: no memory for the cones of the field") : OCT_OK;
}

void oct_cones_finish(struct oct_retina_cones *cones)
{
    free(cones->cone);
    free(cones->bin_start);
}

void oct_cones_view(const struct oct_retina_cones *cones, double x_um, double y_um, double beam_um,
                    struct oct_mosaic_view *view)
{
    float sigma = (float)(beam_um / 1.665), depth_weight = 1e-6f;
    float x = (float)x_um, y = (float)y_um, reach2 = 6.25f * sigma * sigma;
    int64_t bx = (int64_t)floor((x_um - cones->x0_um) / BIN_UM);
    int64_t by = (int64_t)floor((y_um - cones->y0_um) / BIN_UM);
    memset(view, 0, sizeof(*view));
    for (int64_t j = by > 0 ? by - 1 : 0; j <= by + 1 && j < cones->n_y; j++) {
        for (int64_t i = bx > 0 ? bx - 1 : 0; i <= bx + 1 && i < cones->n_x; i++) {
            size_t bin = (size_t)j * cones->n_x + (size_t)i;
            for (uint32_t c = cones->bin_start[bin]; c < cones->bin_start[bin + 1]; c++) {
                const struct oct_cone *cone = &cones->cone[c];
                float dx = cone->x_um - x, dy = cone->y_um - y, d2 = dx * dx + dy * dy;
                if (d2 > reach2)
                    continue;
                float w = expf(-0.5f * d2 / (sigma * sigma));
                view->isos_re += w * cone->isos_re;
                view->isos_im += w * cone->isos_im;
                view->cost_re += w * cone->cost_re;
                view->cost_im += w * cone->cost_im;
                view->isos_um += w * w * cone->isos_um;
                view->cost_um += w * w * cone->cost_um;
                depth_weight += w * w;
            }
        }
    }
    view->isos_um /= depth_weight;
    view->cost_um /= depth_weight;
}
