#include "viewer/sound.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "viewer/model/words.h"

#include <SDL.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_SAMPLES 1024
#define LOOK_US 20000
/* A device that did not take a sound so long after its end stands still. */
#define LATE_S 2.0

struct oct_view_sound {
    pthread_mutex_t mutex; /* guards all that is not constant */
    pthread_cond_t changed;
    pthread_t thread;
    void (*notify)(void *context);
    void *context;
    unsigned wanted; /* what waits to be played */
    struct oct_error why;
    bool has_fault;      /* `why` waits to be taken */
    bool was_told;       /* of a fault, and nothing was played since */
    bool started, ended; /* the thread */
    bool ending;
    bool abandoned; /* nobody waits for the thread, which then frees everything itself */
    int16_t samples[OCT_VIEW_MOST_SOUND_SAMPLES]; /* the thread's */
};

static void free_all(struct oct_view_sound *s)
{
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* Returns the device, 0: there is none. */
static SDL_AudioDeviceID open_device(void)
{
    const SDL_AudioSpec wanted = {.freq = OCT_VIEW_SOUND_HZ,
                                  .format = AUDIO_S16SYS,
                                  .channels = 1,
                                  .samples = BUFFER_SAMPLES};
    SDL_AudioSpec given;
    if (!SDL_WasInit(SDL_INIT_AUDIO) && SDL_InitSubSystem(SDL_INIT_AUDIO) < 0)
        return 0;
    return SDL_OpenAudioDevice(NULL, 0, &wanted, &given, 0);
}

/* Waits until the device took everything, or until the end. Called with the mutex held. False: it
 * took nothing for too long. */
static bool wait_until_taken(struct oct_view_sound *s, SDL_AudioDeviceID device)
{
    double all_s = (double)SDL_GetQueuedAudioSize(device) / sizeof(int16_t) / OCT_VIEW_SOUND_HZ;
    const uint64_t until_ns = oct_clock_ns() + (uint64_t)((all_s + LATE_S) * 1e9);
    while (!s->ending && SDL_GetQueuedAudioSize(device) > 0) {
        if (oct_clock_ns() > until_ns)
            return false;
        oct_condition_wait_us(&s->changed, &s->mutex, LOOK_US);
    }
    return true;
}

/* Called without the mutex. */
static enum oct_err play(struct oct_view_sound *s, unsigned set, struct oct_error *why)
{
    static const enum oct_view_sound_of all[] = {OCT_SOUND_RECORD_ENDS, OCT_SOUND_RECORD_BEGINS,
                                                 OCT_SOUND_ALARM};
    SDL_AudioDeviceID device = open_device();
    if (device == 0)
        return oct_fail(why, OCT_E_IO, "no sound: %s; Ctrl+S does without", SDL_GetError());
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (set & all[i]) {
            size_t n = oct_view_sound_make(all[i], s->samples);
            SDL_QueueAudio(device, s->samples, (Uint32)(n * sizeof(s->samples[0])));
        }
    SDL_PauseAudioDevice(device, 0);
    pthread_mutex_lock(&s->mutex);
    bool taken = wait_until_taken(s, device);
    pthread_mutex_unlock(&s->mutex);
    SDL_CloseAudioDevice(device); /* it plays the last buffers */
    return taken ? OCT_OK : oct_fail(why, OCT_E_IO, "no sound: the audio device stands still");
}

static void *run_player(void *context)
{
    struct oct_view_sound *s = context;
    struct oct_error why = {0};
    pthread_mutex_lock(&s->mutex);
    while (!s->ending) {
        if (s->wanted == 0) {
            pthread_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        unsigned set = s->wanted;
        s->wanted = 0;
        pthread_mutex_unlock(&s->mutex);
        enum oct_err code = play(s, set, &why);
        pthread_mutex_lock(&s->mutex);
        if (code && !s->was_told) {
            s->why = why;
            s->has_fault = true;
            if (s->notify && !s->ending)
                s->notify(s->context);
        }
        s->was_told = code != OCT_OK;
    }
    pthread_mutex_unlock(&s->mutex);
    if (SDL_WasInit(SDL_INIT_AUDIO))
        SDL_QuitSubSystem(SDL_INIT_AUDIO);
    pthread_mutex_lock(&s->mutex);
    bool abandoned = s->abandoned;
    s->ended = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (abandoned)
        free_all(s);
    return NULL;
}

enum oct_err oct_view_sound_create(struct oct_view_sound **sound, void (*notify)(void *context),
                                   void *context, struct oct_error *err)
{
    struct oct_view_sound *s = *sound = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "sound: out of memory");
    s->notify = notify;
    s->context = context;
    pthread_mutex_init(&s->mutex, NULL);
    oct_condition_init(&s->changed);
    return OCT_OK;
}

void oct_view_sound_play(struct oct_view_sound *s, unsigned set)
{
    if (set == 0)
        return;
    pthread_mutex_lock(&s->mutex);
    s->wanted |= set;
    if (!s->started &&
        oct_thread_start(&s->thread, NULL, run_player, s, "sound: no thread", &s->why))
        s->has_fault = true;
    else
        s->started = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

bool oct_view_sound_take_fault(struct oct_view_sound *s, struct oct_error *why)
{
    pthread_mutex_lock(&s->mutex);
    bool has_fault = s->has_fault;
    if (has_fault)
        *why = s->why;
    s->has_fault = false;
    pthread_mutex_unlock(&s->mutex);
    return has_fault;
}

bool oct_view_sound_destroy(struct oct_view_sound *s, int wait_ms)
{
    struct timespec until = oct_clock_deadline((uint64_t)wait_ms * 1000);
    bool in_time = true;
    if (!s)
        return true;
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_cond_signal(&s->changed);
    while (s->started && !s->ended && in_time)
        in_time = oct_condition_wait_until(&s->changed, &s->mutex, &until);
    bool ended = s->ended || !s->started, joins = s->started && ended;
    s->abandoned = !ended;
    pthread_t thread = s->thread;
    pthread_mutex_unlock(&s->mutex);
    if (!ended) {
        pthread_detach(thread);
        return false;
    }
    if (joins)
        pthread_join(thread, NULL);
    free_all(s);
    return true;
}
