#include "viewer/model/daemon.h"

#include "numeric/order.h"

#include <string.h>

#define LEAST_S 1.0
#define MOST_S 5.0
#define LEAST_BSCANS 10.0 /* blocks of lines are at most about a B-scan: a tenth of an error */
#define ENOUGH 5u         /* measurements make a median worth the name */
#define LOW 0.8
#define LOW_IN_A_ROW 2u /* one alone may hold a short pause */

static double median(const double *values, unsigned n)
{
    double sorted[OCT_VIEW_LINE_RATES] = {0};

    memcpy(sorted, values, n * sizeof(*values));
    oct_doubles_sort(sorted, n);
    return sorted[n / 2];
}

static void finish(struct oct_view_line_rate *r, double rate_hz)
{
    r->rate_hz = rate_hz;
    r->n_low = r->usual_hz > 0 && rate_hz < LOW * r->usual_hz ? r->n_low + 1 : 0;
    r->fell = r->n_low >= LOW_IN_A_ROW;
    r->recent_hz[r->n_recent++ % OCT_VIEW_LINE_RATES] = rate_hz;
    unsigned n = r->n_recent < OCT_VIEW_LINE_RATES ? r->n_recent : OCT_VIEW_LINE_RATES;
    r->usual_hz = n >= ENOUGH ? median(r->recent_hz, n) : 0;
}

static void begin(struct oct_view_line_rate *r, double acquisitions, double lines, double time_s)
{
    r->runs = true;
    r->acquisitions = acquisitions;
    r->lines = lines;
    r->time_s = time_s;
}

void oct_view_line_rate_add(struct oct_view_line_rate *rate, double acquisitions, double lines,
                            double time_s, double lines_a_bscan)
{
    double n = lines - rate->lines, seconds = time_s - rate->time_s;

    if (!rate->runs || acquisitions != rate->acquisitions || n < 0 || seconds < 0) {
        memset(rate, 0, sizeof(*rate));
        begin(rate, acquisitions, lines, time_s);
        return;
    }
    if (n == 0) {
        rate->n_low = 0;
        rate->fell = false;
        begin(rate, acquisitions, lines, time_s);
        return;
    }
    if (seconds < LEAST_S || (n < LEAST_BSCANS * lines_a_bscan && seconds < MOST_S))
        return;
    finish(rate, n / seconds);
    begin(rate, acquisitions, lines, time_s);
}
