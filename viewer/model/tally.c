#include "viewer/model/archive.h"

#include "viewer/model/clock.h"

#include <string.h>

/* Long enough for a steady figure, short enough to follow a change of the scan. */
#define RATE_WINDOW_NS (OCT_NS_PER_S / 2)

static void count_gap(struct oct_view_tally *tally, const struct oct_picture_header *header)
{
    if (tally->n_received == 0 ||
        strncmp(tally->acquisition_id, header->acquisition_id, sizeof(tally->acquisition_id)) != 0)
        return;
    if (header->frame_num <= tally->last_frame_num)
        return;
    uint64_t gap = header->frame_num - tally->last_frame_num - 1;
    tally->n_skipped = gap > UINT64_MAX - tally->n_skipped ? UINT64_MAX : tally->n_skipped + gap;
}

static void measure_rate(struct oct_view_tally *tally, uint64_t now_ns)
{
    if (tally->n_received == 0) {
        tally->window_start_ns = now_ns;
        return;
    }
    tally->n_window++;
    uint64_t window_ns = now_ns - tally->window_start_ns;
    if (window_ns < RATE_WINDOW_NS)
        return;
    tally->rate_hz = (double)tally->n_window * (double)OCT_NS_PER_S / (double)window_ns;
    tally->window_start_ns = now_ns;
    tally->n_window = 0;
}

void oct_view_tally_add(struct oct_view_tally *tally, const struct oct_picture_header *header,
                        uint64_t now_ns)
{
    count_gap(tally, header);
    measure_rate(tally, now_ns);
    tally->n_received++;
    tally->last_frame_num = header->frame_num;
    tally->last_arrival_ns = now_ns;
    memcpy(tally->acquisition_id, header->acquisition_id, sizeof(tally->acquisition_id));
}

void oct_view_tally_add_bad(struct oct_view_tally *tally)
{
    tally->n_bad++;
}

double oct_view_tally_rate_hz(const struct oct_view_tally *tally)
{
    if (tally->rate_hz > 0)
        return tally->rate_hz;
    /* The first measurement still runs: say what it has so far. */
    uint64_t window_ns = tally->last_arrival_ns - tally->window_start_ns;
    if (tally->n_window == 0 || window_ns == 0)
        return 0;
    return (double)tally->n_window * (double)OCT_NS_PER_S / (double)window_ns;
}
