/* A function that long computations call every few tens of microseconds, on their own thread: a
 * worker of the pool gives way to pictures there. It must not use what computes. */
#ifndef OCT_ANALYSIS_CORRELATE_PAUSE_H
#define OCT_ANALYSIS_CORRELATE_PAUSE_H

struct oct_pause {
    void (*call)(void *context); /* NULL: nothing is called */
    void *context;
};

static inline void oct_pause_call(const struct oct_pause *pause)
{
    if (pause->call)
        pause->call(pause->context);
}

#endif
