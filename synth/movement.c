/* The eye's movement at the time of every A-line: drift, tremor, saccades, heart and breath, and
 * the lids. motion.c has the eye that holds still during a B-scan. */
#include "synth/model.h"

#include <string.h>

/* Drift is a velocity whose correlation decays within VELOCITY_S, pulled back to the target within
 * PULL_S. Times between events and their durations are uniform between two bounds. */
static const double velocity_s = 0.1, pull_s = 1.5, step_least_s = 1e-3;
static const double heart_hz = 1.15, breath_hz = 0.26;

struct movement {
    double drift_um_s, drift_z_um_s; /* standard deviation of the velocity */
    double tremor_um;                /* amplitude of each of three waves around 80 Hz */
    double heart_um, breath_um;
    double saccade_gap_s[2], saccade_s[2], saccade_um[2], saccade_z_um;
    double blink_gap_s[2], blink_s[2]; /* gap 0: no blinks */
};

static const struct movement movements[] = {
    [OCT_EYE_FIXATION] = {.drift_um_s = 80,
                          .drift_z_um_s = 10,
                          .tremor_um = 0.25,
                          .heart_um = 3.5,
                          .breath_um = 10,
                          .saccade_gap_s = {0.3, 1.0},
                          .saccade_s = {0.020, 0.025},
                          .saccade_um = {10, 40},
                          .saccade_z_um = 1},
    [OCT_EYE_UNSTEADY] = {.drift_um_s = 200,
                          .drift_z_um_s = 60,
                          .tremor_um = 0.3,
                          .heart_um = 4,
                          .breath_um = 12,
                          .saccade_gap_s = {0.08, 0.35},
                          .saccade_s = {0.020, 0.050},
                          .saccade_um = {40, 130},
                          .saccade_z_um = 8,
                          .blink_gap_s = {0.2, 0.7},
                          .blink_s = {0.1, 0.3}},
};

/* Numbers of the stream that motion.c does not take. */
enum { DRAW_DRIFT = 100, DRAW_SACCADE = 110, DRAW_BLINK = 120, DRAW_PHASE = 130 };

struct event {
    int64_t n; /* how many there were before */
    double begin_s, end_s;
};

struct eye {
    const struct movement *movement;
    uint64_t seed;
    double step_s;
    int64_t step;           /* the position below is that at step * step_s */
    double now[3], next[3]; /* without the saccade under way; next: a step later */
    double velocity[3], jump[3];
    bool jumps;
    struct event saccade, blink;
    double phase[8]; /* of three waves of tremor in x, three in y, of pulse and breath */
};

static double uniform(const struct eye *eye, int64_t n, int64_t what, const double bounds[2])
{
    double u = oct_uniform(oct_hash(eye->seed, OCT_STREAM_MOTION, n, what));
    return bounds[0] + (bounds[1] - bounds[0]) * u;
}

static double normal(const struct eye *eye, int64_t n, int64_t what)
{
    return oct_normal(oct_hash(eye->seed, OCT_STREAM_MOTION, n, what));
}

/* The event that follows one which ended at t. */
static void schedule(const struct eye *eye, struct event *event, double t, int64_t what,
                     const double gap_s[2], const double lasts_s[2])
{
    event->n++;
    event->begin_s = t + uniform(eye, event->n, what, gap_s);
    event->end_s = event->begin_s + uniform(eye, event->n, what + 1, lasts_s);
    if (!(gap_s[1] > 0))
        event->begin_s = event->end_s = INFINITY;
}

/* Moves `next` on by a step of drift. */
static void drift(struct eye *eye)
{
    double keep = exp(-eye->step_s / velocity_s), pull = exp(-eye->step_s / pull_s);
    for (int i = 0; i < 3; i++) {
        double um_s = i < 2 ? eye->movement->drift_um_s : eye->movement->drift_z_um_s;
        eye->velocity[i] = keep * eye->velocity[i] +
                           um_s * sqrt(1.0 - keep * keep) * normal(eye, eye->step, DRAW_DRIFT + i);
        eye->next[i] = pull * (eye->now[i] + eye->velocity[i] * fmin(eye->step_s, velocity_s));
    }
}

/* A saccade aims at the target, and misses it by a third of its length or so. */
static void begin_saccade(struct eye *eye)
{
    int64_t n = eye->saccade.n;
    double angle = atan2(-eye->now[1], -eye->now[0]) + 0.6 * normal(eye, n, DRAW_SACCADE + 2);
    double length = uniform(eye, n, DRAW_SACCADE + 3, eye->movement->saccade_um);
    eye->jump[0] = length * cos(angle);
    eye->jump[1] = length * sin(angle);
    eye->jump[2] = eye->movement->saccade_z_um * normal(eye, n, DRAW_SACCADE + 4);
    eye->jumps = true;
}

/* Takes the step that ends at (step + 1) * step_s; events begin and end at steps, so that what is
 * seen does not depend on the A-lines that were asked for. */
static void step(struct eye *eye)
{
    double t = (double)++eye->step * eye->step_s;
    const struct movement *m = eye->movement;
    memcpy(eye->now, eye->next, sizeof(eye->now));
    if (eye->jumps && t >= eye->saccade.end_s) {
        for (int i = 0; i < 3; i++)
            eye->now[i] += eye->jump[i];
        eye->jumps = false;
        schedule(eye, &eye->saccade, t, DRAW_SACCADE, m->saccade_gap_s, m->saccade_s);
    } else if (!eye->jumps && t >= eye->saccade.begin_s) {
        eye->saccade.end_s += t - eye->saccade.begin_s;
        eye->saccade.begin_s = t;
        begin_saccade(eye);
    }
    if (t >= eye->blink.end_s)
        schedule(eye, &eye->blink, t, DRAW_BLINK, m->blink_gap_s, m->blink_s);
    drift(eye);
}

static void begin(struct eye *eye, uint64_t seed, enum oct_eye_motion motion, double line_s)
{
    const struct movement *m = &movements[motion];
    memset(eye, 0, sizeof(*eye));
    eye->movement = m;
    eye->seed = seed;
    eye->step_s = fmax(step_least_s, line_s);
    for (int i = 0; i < 8; i++)
        eye->phase[i] =
            2.0 * OCT_PI * oct_uniform(oct_hash(seed, OCT_STREAM_MOTION, i, DRAW_PHASE));
    schedule(eye, &eye->saccade, 0, DRAW_SACCADE, m->saccade_gap_s, m->saccade_s);
    schedule(eye, &eye->blink, 0, DRAW_BLINK, m->blink_gap_s, m->blink_s);
    drift(eye);
}

/* Soft limit: leaves small offsets as they are and keeps all within what is modelled. */
static double bounded(double um, double most_um)
{
    return most_um * tanh(um / most_um);
}

/* Three waves that beat, 1 um at most between them. */
static double tremor(const struct eye *eye, int axis, double t)
{
    static const double hz[3] = {73, 80, 91};
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += sin(2.0 * OCT_PI * hz[k] * t + eye->phase[3 * axis + k]);
    return eye->movement->tremor_um * sum;
}

static void look_at_time(const struct eye *eye, double t, double xyz_um[3])
{
    const struct movement *m = eye->movement;
    double part = t / eye->step_s - (double)eye->step, done = 0;
    double pulse = 2.0 * OCT_PI * heart_hz * t + eye->phase[6];
    double breath = 2.0 * OCT_PI * breath_hz * t + eye->phase[7];
    if (eye->jumps) {
        double p = (t - eye->saccade.begin_s) / (eye->saccade.end_s - eye->saccade.begin_s);
        p = fmin(p, 1.0);
        done = p * p * p * (10.0 - 15.0 * p + 6.0 * p * p); /* least jerk */
    }
    for (int i = 0; i < 3; i++)
        xyz_um[i] = eye->now[i] + part * (eye->next[i] - eye->now[i]) + done * eye->jump[i];
    for (int i = 0; i < 2; i++)
        xyz_um[i] = bounded(xyz_um[i] + tremor(eye, i, t), OCT_MOTION_MAX_UM);
    xyz_um[2] += m->heart_um * (sin(pulse) + 0.4 * sin(2.0 * pulse + 0.7));
    xyz_um[2] = bounded(xyz_um[2] + m->breath_um * sin(breath), OCT_MOTION_MAX_Z_UM);
}

void oct_movement_trace(uint64_t seed, enum oct_eye_motion motion, double line_s,
                        uint64_t first_line, size_t n_lines, double *xyz_um, double *blink)
{
    struct eye eye;
    begin(&eye, seed, motion, line_s);
    for (size_t j = 0; j < n_lines; j++) {
        double t = (double)(first_line + j) * line_s;
        while ((double)(eye.step + 1) * eye.step_s <= t)
            step(&eye);
        look_at_time(&eye, t, xyz_um + 3 * j);
        blink[j] = t >= eye.blink.begin_s && t < eye.blink.end_s ? 1 : 0;
    }
}
