/* Frame ids of a camera as line numbers: what was lost on the way becomes a gap, and never slides
 * what follows.
 *
 * A camera counts its frames, lost ones too; a frame is n_lines A-lines. GigE Vision counts with 16
 * bits, 1 to 65535 and then 1 again (0 is none), GigE Vision with extended ids and USB3 Vision with
 * 64. 16 bits are taken for as long as no id is larger.
 *
 * Between two frames that came, ids say how many were lost, but for whole turns of 65535. These are
 * taken from the camera's clock where it is sure: the frames so far came at a steady pace, and the
 * time since the last one fits some turns within 2 frames and 1 in 10,000. An external trigger that
 * pauses fits none, and nothing is added.
 *
 * An id that runs backward is a frame that is late (its time is not after the last one's): it is
 * left out; or the camera began to count anew: then time alone says how many were lost. Where its
 * clock began anew too, its frames look late; more of them in a row than late ones can be are a new
 * beginning, and those left out until then count as lost.
 *
 * Pure arithmetic; one thread. */
#ifndef OCT_TOOLS_GENICAM_NUMBERING_H
#define OCT_TOOLS_GENICAM_NUMBERING_H

#include <stdbool.h>
#include <stdint.h>

struct oct_numbering {
    bool is_wide; /* 64 bits */
    bool has_last;
    uint64_t last_id, last_ns;
    uint64_t first_ns, n_steps; /* of the steady run so far: n_steps frames since first_ns */
    uint64_t n_lost;            /* frames, since the beginning */
    uint64_t n_late, n_anew;    /* frames left out; how often the camera counted anew */
    uint64_t late_id, late_ns;  /* of the newest frame left out */
    uint64_t n_late_run;        /* frames left out one after another, forward by id and time */
};

enum oct_numbering_verdict {
    OCT_FRAME_NEXT, /* *n_lost frames were lost before this one */
    OCT_FRAME_LATE, /* it came before or twice: leave it out */
    OCT_FRAME_ANEW, /* as NEXT, but ids began anew: *n_lost is by the clock */
};

/* is_wide: the camera's ids are known to have 64 bits. */
void oct_numbering_init(struct oct_numbering *numbering, bool is_wide);

/* The next frame that came; time_ns: of its exposure by the camera's clock, 0: unknown. The first
 * one is where counting begins. */
enum oct_numbering_verdict oct_numbering_next(struct oct_numbering *numbering, uint64_t id,
                                              uint64_t time_ns, uint64_t *n_lost);

/* From frame to frame, 0: not known yet. */
double oct_numbering_period_ns(const struct oct_numbering *numbering);

#endif
