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

static void draw(const struct oct_progress *p, uint64_t done, uint64_t all, const char *end)
{
    if (!isatty(STDERR_FILENO))
        return;
    double seconds = oct_progress_seconds(p);
    int filled = all ? (int)(done * BAR_LENGTH / all) : BAR_LENGTH;
    fprintf(stderr, "\r[%-*.*s] %llu of %llu %s, %.0f a second%s", BAR_LENGTH, filled, BAR,
            (unsigned long long)done, (unsigned long long)all, p->what,
            seconds > 0 ? (double)done / seconds : 0, end);
}

void oct_progress_say(double share, const char *text)
{
    const int length = BAR_LENGTH / 2, filled = (int)(fmin(1, fmax(0, share)) * length);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r[%-*.*s] %s\033[K", length, filled, BAR, text);
}

void oct_progress_clear(void)
{
    if (isatty(STDERR_FILENO))
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
