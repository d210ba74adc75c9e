#include "tools/progress.h"

#include "pipeline/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define BAR "########################################"
#define BAR_LENGTH ((int)sizeof(BAR) - 1)

double oct_progress_seconds(const struct oct_progress *p)
{
    return (double)(oct_clock_ns() - p->started_ns) * 1e-9;
}

static bool is_shown(const struct oct_progress *p)
{
    return !p->quiet && isatty(STDERR_FILENO);
}

/* ", 1:05 left" at the rate so far, or "". */
static const char *time_left(char text[32], uint64_t done, uint64_t all, double seconds)
{
    text[0] = '\0';
    if (done == 0 || done >= all)
        return text;
    const double left_s = ceil(seconds * (double)(all - done) / (double)done);
    const unsigned s = (unsigned)fmin(left_s, 3599999);
    if (s < 3600)
        snprintf(text, 32, ", %u:%02u left", s / 60, s % 60);
    else
        snprintf(text, 32, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    return text;
}

static void draw(const struct oct_progress *p, uint64_t done, uint64_t all, const char *end)
{
    if (!is_shown(p))
        return;
    const double seconds = oct_progress_seconds(p), rate = seconds > 0 ? (double)done / seconds : 0;
    char left[32];
    int filled = all ? (int)((double)done / (double)all * BAR_LENGTH) : BAR_LENGTH;
    fprintf(stderr, "\r[%-*.*s] %llu of %llu %s, %.*f a second%s\033[K%s", BAR_LENGTH, filled, BAR,
            (unsigned long long)done, (unsigned long long)all, p->what, rate < 10 ? 1 : 0, rate,
            time_left(left, done, all, seconds), end);
}

void oct_progress_say(const struct oct_progress *p, double share, const char *text)
{
    const int length = BAR_LENGTH / 2, filled = (int)(fmin(1, fmax(0, share)) * length);
    if (is_shown(p))
        fprintf(stderr, "\r[%-*.*s] %s\033[K", length, filled, BAR, text);
}

void oct_progress_clear(const struct oct_progress *p)
{
    if (is_shown(p))
        fprintf(stderr, "\r\033[K");
}

void oct_progress_show(void *progress, uint64_t done, uint64_t all)
{
    draw(progress, done, all, "");
}

void oct_progress_end(const struct oct_progress *p, uint64_t done, uint64_t all)
{
    draw(p, done, all, "\n");
}
