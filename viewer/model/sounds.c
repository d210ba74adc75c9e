#include "viewer/model/words.h"

#include "pipeline/base/clock.h"

#include <math.h>

#define PI 3.14159265358979323846
#define LOUDNESS (32767 / 3.0)
/* A tone that begins at once clicks. */
#define EDGE_S 0.01
#define GAP_S 0.06

/* ---- which ---- */

/* Numbers in an alarm count on; its other letters say which one it is. */
static uint32_t words_of(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        if (!(*text >= '0' && *text <= '9') && *text != '.' && *text != ',')
            hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash ? hash : 1;
}

/* Notes that the alarm is there. True: it is new. */
static bool is_new(struct oct_view_sounds *sounds, uint32_t words, uint64_t now_ns)
{
    const size_t n = sizeof(sounds->alarm) / sizeof(sounds->alarm[0]);
    size_t place = 0;
    for (size_t i = 0; i < n; i++) {
        if (sounds->alarm[i].words == words) {
            place = i;
            break;
        }
        if (sounds->alarm[i].seen_ns < sounds->alarm[place].seen_ns)
            place = i; /* the one not seen for the longest */
    }
    bool is_same =
        sounds->alarm[place].words == words && (double)(now_ns - sounds->alarm[place].seen_ns) <
                                                   OCT_VIEW_SAME_ALARM_S * (double)OCT_NS_PER_S;
    sounds->alarm[place].words = words;
    sounds->alarm[place].seen_ns = now_ns;
    return !is_same;
}

unsigned oct_view_sounds_due(struct oct_view_sounds *sounds, const struct oct_view_model *model)
{
    const struct oct_view_daemon *d = &model->daemon;
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms), due = 0;
    for (unsigned i = 0; i < n; i++)
        if (alarms[i].what.tone == OCT_TONE_BAD &&
            is_new(sounds, words_of(alarms[i].what.text), model->now_ns))
            due |= OCT_SOUND_ALARM;
    if (!d->known || !d->reachable)
        return due;
    if (sounds->is_told && d->record.active != sounds->records)
        due |= d->record.active ? OCT_SOUND_RECORD_BEGINS : OCT_SOUND_RECORD_ENDS;
    sounds->is_told = true;
    sounds->records = d->record.active;
    return due;
}

/* ---- what they are ---- */

struct tone {
    double hz, s;
};

static size_t add_silence(int16_t *samples, size_t n, double s)
{
    for (size_t i = 0; i < (size_t)(s * OCT_VIEW_SOUND_HZ) && n < OCT_VIEW_MOST_SOUND_SAMPLES; i++)
        samples[n++] = 0;
    return n;
}

static size_t add_tone(int16_t *samples, size_t n, struct tone tone)
{
    size_t length = (size_t)(tone.s * OCT_VIEW_SOUND_HZ);
    for (size_t i = 0; i < length && n < OCT_VIEW_MOST_SOUND_SAMPLES; i++) {
        double t = (double)i / OCT_VIEW_SOUND_HZ, to_edge = fmin(t, tone.s - t) / EDGE_S;
        double loud = to_edge < 1 ? 0.5 - 0.5 * cos(PI * to_edge) : 1;
        samples[n++] = (int16_t)lround(LOUDNESS * loud * sin(2 * PI * tone.hz * t));
    }
    return n;
}

size_t oct_view_sound_make(enum oct_view_sound_of sound,
                           int16_t samples[OCT_VIEW_MOST_SOUND_SAMPLES])
{
    static const struct tone begins[] = {{660, 0.12}, {880, 0.16}, {0, 0}};
    static const struct tone ends[] = {{880, 0.12}, {660, 0.30}, {0, 0}};
    static const struct tone alarm[] = {{1320, 0.14}, {1320, 0.14}, {1320, 0.14}, {0, 0}};
    const struct tone *tone = sound == OCT_SOUND_ALARM           ? alarm
                              : sound == OCT_SOUND_RECORD_BEGINS ? begins
                                                                 : ends;
    size_t n = add_silence(samples, 0, GAP_S);
    for (; tone->hz > 0; tone++) {
        n = add_tone(samples, n, *tone);
        n = add_silence(samples, n, GAP_S);
    }
    return n;
}
