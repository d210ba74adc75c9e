/* How large, and how many, the pictures are that one browser gets: by when it says that it has
 * drawn them. A picture may take as long as the way there and back always takes, which is that of
 * the quickest answer of late; what it takes longer is what waits before it, of its own bytes and
 * of others. Pictures are as good as they can be without waiting. Pure; one thread. */
#ifndef OCT_WEB_PACE_H
#define OCT_WEB_PACE_H

#include "web/view.h"

#define OCT_WEB_MOST_WAITING 8u

struct oct_web_pace {
    struct {
        uint32_t serial; /* 0: free */
        enum oct_web_kind kind;
        bool counts; /* else how long it takes says nothing */
        uint64_t sent_ns;
    } waiting[OCT_WEB_MOST_WAITING]; /* what it did not say it has drawn */
    unsigned level;
    double least_ms,
        least_before_ms; /* the quickest answer since since_ns, and of the time before */
    uint64_t since_ns;
    double late_ms; /* later than the quickest, smoothed */
    uint64_t level_ns, better_ns;
};

void oct_web_pace_init(struct oct_web_pace *pace, uint64_t now_ns);

/* Whether another picture of that kind may be sent. */
bool oct_web_pace_has_room(const struct oct_web_pace *pace, enum oct_web_kind kind,
                           uint64_t now_ns);

/* The level (web/view.h) of the next picture. */
unsigned oct_web_pace_level(struct oct_web_pace *pace, uint64_t now_ns);

void oct_web_pace_sent(struct oct_web_pace *pace, enum oct_web_kind kind, uint32_t serial,
                       bool counts, uint64_t now_ns);
void oct_web_pace_seen(struct oct_web_pace *pace, uint32_t serial, uint64_t now_ns);

/* Something short was answered after that time. */
void oct_web_pace_answered(struct oct_web_pace *pace, double ms, uint64_t now_ns);

/* What waits is of another model. */
void oct_web_pace_forget(struct oct_web_pace *pace);

#endif
