#include "viewer/model/quality.h"

#include <math.h>
#include <string.h>

#define N_BINS 512u
#define MOST_LINES 128u /* looked at of a B-scan */
#define LEVEL_BSCANS 100.0
#define SMOOTH 0.2
#define MOST_DB 400.0

struct look {
    double bin[N_BINS];               /* how many pixels */
    double lo, step;                  /* a bin's value: lo + i * step */
    double profile[OCT_VIEW_PROFILE]; /* sums, scaled as they are */
    unsigned n_profile;
};

static double value_at(const struct oct_view_picture *picture, size_t i)
{
    const struct oct_picture_header *h = &picture->header;

    if (h->sample_type == OCT_SAMPLE_F32)
        return (double)((const float *)picture->pixels)[i];
    return h->lo + ((const uint8_t *)picture->pixels)[i] * ((h->hi - h->lo) / 255.0);
}

static uint32_t line_step(const struct oct_picture_header *h)
{
    return (h->n_lines + MOST_LINES - 1) / MOST_LINES;
}

static void find_range(const struct oct_view_picture *picture, struct look *look)
{
    const struct oct_picture_header *h = &picture->header;
    double least = h->lo, most = h->hi;

    if (h->sample_type == OCT_SAMPLE_F32) {
        least = INFINITY;
        most = -INFINITY;
        for (uint32_t line = 0; line < h->n_lines; line += line_step(h))
            for (uint32_t d = 0; d < h->depth; d++) {
                double v = value_at(picture, (size_t)line * h->depth + d);
                least = isfinite(v) && v < least ? v : least;
                most = isfinite(v) && v > most ? v : most;
            }
    }
    if (!isfinite(least) || !isfinite(most) || !(most > least))
        most = least + 1;
    look->lo = least;
    look->step = (most - least) / (N_BINS - 1);
}

static void count_f32(const struct oct_view_picture *picture, struct look *look)
{
    const struct oct_picture_header *h = &picture->header;

    for (uint32_t line = 0; line < h->n_lines; line += line_step(h))
        for (uint32_t d = 0; d < h->depth; d++) {
            double v = (value_at(picture, (size_t)line * h->depth + d) - look->lo) / look->step;
            if (!(v >= 0 && v < N_BINS))
                continue;
            look->bin[(unsigned)v]++;
            look->profile[(uint64_t)d * look->n_profile / h->depth] += v;
        }
}

/* A pixel is its own bin: 256 of them, spread over the 512. Depths are summed first as they lie,
 * which is the part that takes the time. */
static void count_u8(const struct oct_view_picture *picture, struct look *look)
{
    const struct oct_picture_header *h = &picture->header;
    uint32_t counts[256] = {0};

    for (uint32_t line = 0; line < h->n_lines; line += line_step(h)) {
        const uint8_t *pixel = (const uint8_t *)picture->pixels + (size_t)line * h->depth;
        for (uint32_t b = 0; b < look->n_profile; b++) {
            uint32_t from = (uint32_t)((uint64_t)b * h->depth / look->n_profile), sum = 0;
            uint32_t to = (uint32_t)((uint64_t)(b + 1) * h->depth / look->n_profile);
            for (uint32_t d = from; d < to; d++) {
                counts[pixel[d]]++;
                sum += pixel[d];
            }
            look->profile[b] += sum;
        }
    }
    for (unsigned i = 0; i < 256; i++)
        look->bin[i * (N_BINS - 1) / 255] += counts[i];
}

static double percentile(const struct look *look, double total, double share)
{
    double seen = 0;

    for (unsigned i = 0; i < N_BINS; i++) {
        seen += look->bin[i];
        if (seen >= share * total)
            return look->lo + i * look->step;
    }
    return look->lo + (N_BINS - 1) * look->step;
}

static double clamp_db(double db)
{
    return db < -MOST_DB ? -MOST_DB : db > MOST_DB ? MOST_DB : db;
}

static void judge(const struct look *look, bool log, double *snr_db, double *sharpness)
{
    double total = 0, sum = 0, sum2 = 0;

    for (unsigned i = 0; i < N_BINS; i++) {
        double v = look->lo + i * look->step;
        double intensity = log ? pow(10, clamp_db(v) / 10) : fmax(v, 0);
        total += look->bin[i];
        sum += look->bin[i] * intensity;
        sum2 += look->bin[i] * intensity * intensity;
    }
    double signal = percentile(look, total, 0.995), noise = percentile(look, total, 0.25);
    double ratio_db = log ? signal - noise : 10 * log10(fmax(signal, 1e-12) / fmax(noise, 1e-12));
    /* A hostile range may be anything; what is kept is finite, and so are differences of it. */
    double sharp = sum > 0 ? total * (sum2 / sum) / sum : 0;
    *snr_db = isfinite(ratio_db) ? clamp_db(ratio_db) : 0;
    *sharpness = isfinite(sharp) ? sharp : 0;
}

/* ---- motion ---- */

static double match(const float *a, const float *b, int n, int shift)
{
    double dot = 0, aa = 0, bb = 0;

    for (int i = 0; i < n; i++) {
        int j = i + shift;
        if (j < 0 || j >= n)
            continue;
        dot += (double)a[i] * (double)b[j];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[j] * (double)b[j];
    }
    return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : 0;
}

static bool has_moved(const float *before, const float *now, unsigned n)
{
    int most = (int)n / 8, best = 0;
    double best_match = match(before, now, (int)n, 0);

    for (int shift = -most; shift <= most; shift++) {
        double m = match(before, now, (int)n, shift);
        if (m > best_match + 1e-6) {
            best_match = m;
            best = shift;
        }
    }
    return best_match > 0.5 && (best < 0 ? -best : best) > (int)n / 50;
}

static void take_profile(struct oct_view_quality *q, const struct look *look)
{
    double mean = 0;

    for (unsigned i = 0; i < look->n_profile; i++)
        mean += look->profile[i] / look->n_profile;
    for (unsigned i = 0; i < look->n_profile; i++)
        q->profile[i] = (float)(look->profile[i] - mean);
    q->n_profile = look->n_profile;
}

/* ---- the timeline ---- */

static void note(struct oct_view_quality *q, uint64_t bin, double snr_db, double sharpness)
{
    struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];

    if (m->bin != bin || m->snr_db == 0)
        *m = (struct oct_view_moment){bin, (float)snr_db, (float)sharpness, 0};
    m->snr_db = fminf(m->snr_db, (float)snr_db);
    m->sharpness = fminf(m->sharpness, (float)sharpness);
    m->marks |= q->marks;
}

const struct oct_view_moment *oct_view_quality_moment(const struct oct_view_quality *q,
                                                      uint64_t bin)
{
    const struct oct_view_moment *m = &q->moment[bin % OCT_VIEW_TIMELINE];
    return q->known && m->bin == bin ? m : NULL;
}

void oct_view_quality_add(struct oct_view_quality *q, const struct oct_view_picture *picture,
                          bool log)
{
    const struct oct_picture_header *h = &picture->header;
    struct look look = {.n_profile = h->depth < OCT_VIEW_PROFILE ? h->depth : OCT_VIEW_PROFILE};
    float before[OCT_VIEW_PROFILE];
    double snr_db, sharpness;
    unsigned n_before = q->n_profile;

    find_range(picture, &look);
    if (h->sample_type == OCT_SAMPLE_F32)
        count_f32(picture, &look);
    else
        count_u8(picture, &look);
    judge(&look, log, &snr_db, &sharpness);
    memcpy(before, q->profile, sizeof(before));
    take_profile(q, &look);
    bool follows = q->known && h->volume == q->volume && h->frame_num == q->frame_num + 1;
    q->frame_num = h->frame_num;
    q->volume = h->volume;
    bool was_blink = q->marks & OCT_VIEW_MARK_BLINK;
    q->marks = h->missing_lines ? OCT_VIEW_MARK_MISSING : 0;
    if (q->known && snr_db < q->level_db / 2)
        q->marks |= OCT_VIEW_MARK_BLINK;
    else if (follows && !was_blink && n_before == look.n_profile &&
             has_moved(before, q->profile, n_before))
        q->marks |= OCT_VIEW_MARK_MOTION;
    q->n_blinks += !was_blink && q->marks & OCT_VIEW_MARK_BLINK;
    q->n_motions += (q->marks & OCT_VIEW_MARK_MOTION) != 0;
    if (!q->known) {
        q->level_db = q->snr_db = snr_db;
        q->sharpness = sharpness;
    }
    q->known = true;
    q->snr_db += SMOOTH * (snr_db - q->snr_db);
    q->sharpness += SMOOTH * (sharpness - q->sharpness);
    /* Slowly also during a blink: what lasts is the new level. */
    double pace = q->marks & OCT_VIEW_MARK_BLINK ? 5 * LEVEL_BSCANS : LEVEL_BSCANS;
    q->level_db += (snr_db - q->level_db) / pace;
    note(q, picture->arrival_ns / OCT_VIEW_TIMELINE_BIN_NS, snr_db, sharpness);
}
