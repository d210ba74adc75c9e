/* Fixational eye movements and the axial motion of head and pulse. */
#include "synth/model.h"

#include <string.h>

/* Drift: a velocity whose correlation decays within VELOCITY_S, so that the position walks at
 * random on longer times, pulled back to the target within PULL_S. 1 arcmin on the retina is 4.9
 * um. */
static const double drift_um_s = 80.0, velocity_s = 0.1, pull_s = 1.5;
static const double saccade_hz = 1.6, saccade_s = 0.020;
static const double heart_hz = 1.15, heart_um = 3.5, breath_hz = 0.26, breath_um = 10.0;
static const double axial_um = 3.0, axial_s = 0.25;

struct eye_state {
    double position[2], velocity[2];    /* drift */
    double jump[2], from[2], offset[2]; /* microsaccade under way, and the sum of those done */
    double left_s;                      /* of the microsaccade; 0: none */
    double axial;
};

static double draw(uint64_t seed, uint64_t step, int64_t what)
{
    return oct_normal(oct_hash(seed, OCT_STREAM_MOTION, (int64_t)step, what));
}

/* Microsaccades bring the eye back towards the target more often than away from it. */
static void begin_saccade(struct eye_state *eye, uint64_t seed, uint64_t step)
{
    double u = oct_uniform(oct_hash(seed, OCT_STREAM_MOTION, (int64_t)step, 11));
    double away_x = eye->position[0] + eye->offset[0];
    double away_y = eye->position[1] + eye->offset[1];
    double angle = atan2(-away_y, -away_x) + 0.9 * draw(seed, step, 12);
    double length = 12.0 + 38.0 * u * u + 0.5 * hypot(away_x, away_y);
    eye->left_s = saccade_s;
    for (int i = 0; i < 2; i++)
        eye->from[i] = eye->offset[i];
    eye->jump[0] = length * cos(angle);
    eye->jump[1] = length * sin(angle);
}

static void step_lateral(struct eye_state *eye, uint64_t seed, uint64_t step, double dt)
{
    double keep = exp(-dt / velocity_s), pull = exp(-dt / pull_s);
    double chance = 1.0 - exp(-saccade_hz * dt);
    for (int i = 0; i < 2; i++) {
        eye->velocity[i] =
            keep * eye->velocity[i] + drift_um_s * sqrt(1.0 - keep * keep) * draw(seed, step, i);
        /* When a B-scan is longer than the correlation time, only that part of its time counts. */
        eye->position[i] = pull * (eye->position[i] + eye->velocity[i] * fmin(dt, velocity_s));
        eye->offset[i] *= pull;
        eye->from[i] *= pull;
    }
    if (eye->left_s <= 0 &&
        oct_uniform(oct_hash(seed, OCT_STREAM_MOTION, (int64_t)step, 10)) < chance)
        begin_saccade(eye, seed, step);
    if (eye->left_s > 0) {
        eye->left_s -= dt;
        double p = eye->left_s <= 0 ? 1.0 : 1.0 - eye->left_s / saccade_s;
        double done = p * p * p * (10.0 - 15.0 * p + 6.0 * p * p); /* least jerk */
        for (int i = 0; i < 2; i++)
            eye->offset[i] = eye->from[i] + done * eye->jump[i];
    }
}

/* Soft limit: leaves small offsets as they are and keeps all within the tissue that is modelled. */
static double bounded(double um)
{
    return OCT_MOTION_MAX_UM * tanh(um / OCT_MOTION_MAX_UM);
}

void oct_motion_trace(uint64_t seed, double bscan_s, uint64_t first, uint32_t n, double *xyz_um)
{
    struct eye_state eye;
    double heart = 2.0 * OCT_PI * oct_uniform(oct_hash(seed, OCT_STREAM_MOTION, -1, 0));
    double breath = 2.0 * OCT_PI * oct_uniform(oct_hash(seed, OCT_STREAM_MOTION, -1, 1));
    double keep = exp(-bscan_s / axial_s);
    memset(&eye, 0, sizeof(eye));
    for (uint64_t step = 0; step < first + n; step++) {
        double t = (double)step * bscan_s;
        double pulse = 2.0 * OCT_PI * heart_hz * t + heart;
        if (step > 0)
            step_lateral(&eye, seed, step, bscan_s);
        eye.axial = keep * eye.axial + axial_um * sqrt(1.0 - keep * keep) * draw(seed, step, 2);
        if (step < first)
            continue;
        double *out = xyz_um + 3 * (step - first);
        out[0] = bounded(eye.position[0] + eye.offset[0]);
        out[1] = bounded(eye.position[1] + eye.offset[1]);
        out[2] = heart_um * (sin(pulse) + 0.4 * sin(2.0 * pulse + 0.7)) +
                 breath_um * sin(2.0 * OCT_PI * breath_hz * t + breath) + eye.axial;
    }
}
