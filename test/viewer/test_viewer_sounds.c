/* Sounds: which are due and what they are, as SDL's `disk` device received them; a device that
 * hangs, and none at all. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "viewer/model/words.h"
#include "viewer/sound.h"

#include <SDL.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char heard[] = "heard"; /* what the device received */

static int make_place(void **state)
{
    return setenv("SDL_DISKAUDIOFILE", heard, 1);
}

/* ---- which ---- */

static struct oct_view_model *live_model(void)
{
    struct oct_view_model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    oct_view_model_init(model, "x", true);
    oct_view_model_tick(model, 100 * OCT_NS_PER_S);
    model->connected = model->daemon.known = model->daemon.reachable = true;
    model->has_control = true;
    snprintf(model->daemon.state, sizeof(model->daemon.state), "running");
    return model;
}

TEST(a_recording_begins_and_ends)
{
    struct oct_view_model *m = live_model();
    struct oct_view_sounds s = {.is_told = false};
    m->daemon.record.active = true;
    assert_int_equal(oct_view_sounds_due(&s, m), 0); /* it was recording when octview came */
    m->daemon.record.active = false;
    assert_int_equal(oct_view_sounds_due(&s, m), OCT_SOUND_RECORD_ENDS);
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    m->daemon.record.active = true;
    m->daemon.known = false; /* nobody said so */
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    m->daemon.known = true;
    assert_int_equal(oct_view_sounds_due(&s, m), OCT_SOUND_RECORD_BEGINS);
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    oct_view_model_finish(m);
    free(m);
}

TEST(an_alarm_sounds_once)
{
    struct oct_view_model *m = live_model();
    struct oct_view_sounds s = {.is_told = false};
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    snprintf(m->daemon.state, sizeof(m->daemon.state), "error");
    assert_int_equal(oct_view_sounds_due(&s, m), OCT_SOUND_ALARM);
    for (int i = 0; i < 100; i++) { /* it stands for a long time */
        oct_view_model_tick(m, m->now_ns + OCT_NS_PER_S);
        assert_int_equal(oct_view_sounds_due(&s, m), 0);
    }
    snprintf(m->daemon.state, sizeof(m->daemon.state), "running");
    oct_view_sounds_due(&s, m);
    oct_view_model_tick(m, m->now_ns + 3 * OCT_NS_PER_S);
    snprintf(m->daemon.state, sizeof(m->daemon.state), "error"); /* it flickers */
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    snprintf(m->daemon.state, sizeof(m->daemon.state), "running");
    oct_view_model_tick(m, m->now_ns + 20 * OCT_NS_PER_S);
    assert_int_equal(oct_view_sounds_due(&s, m), 0);
    snprintf(m->daemon.state, sizeof(m->daemon.state), "error"); /* a new one */
    assert_int_equal(oct_view_sounds_due(&s, m), OCT_SOUND_ALARM);
    oct_view_model_finish(m);
    free(m);
}

/* ---- what they are ---- */

/* How much of a frequency is in some samples (Goertzel), 1: all of a full sine. */
static double share_of(const int16_t *x, size_t n, double hz)
{
    double w = 2 * 3.14159265358979 * hz / OCT_VIEW_SOUND_HZ, re = 0, im = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        re += x[i] * cos(w * (double)i);
        im += x[i] * sin(w * (double)i);
        all += (double)x[i] * x[i];
    }
    return all > 0 ? (re * re + im * im) * 2 / ((double)n * all) : 0;
}

/* The pitches of the tones among samples: letters a (660), b (880), c (1320), ? (another). */
static void tones_of(const int16_t *x, size_t n, char text[16])
{
    static const double pitch[] = {660, 880, 1320};
    const size_t quiet = OCT_VIEW_SOUND_HZ / 50; /* a gap: 20 ms of silence */
    size_t n_tones = 0;
    for (size_t at = 0, end; at < n; at = end + 1) {
        size_t last = at, silent = 0;
        for (end = at; end < n && (x[at] == 0 ? end == at : silent < quiet); end++) {
            silent = x[end] == 0 ? silent + 1 : 0;
            last = x[end] ? end : last;
        }
        if (x[at] == 0 || last - at < quiet) {
            end = x[at] == 0 ? at : end;
            continue;
        }
        char letter = '?';
        for (size_t i = 0; i < 3; i++)
            if (share_of(x + at, last - at + 1, pitch[i]) > 0.8)
                letter = (char)('a' + i);
        if (n_tones < 15)
            text[n_tones++] = letter;
    }
    text[n_tones] = '\0';
}

TEST(sounds_are_told_apart)
{
    static int16_t x[OCT_VIEW_MOST_SOUND_SAMPLES];
    static const struct {
        enum oct_view_sound_of sound;
        const char *tones;
    } cases[] = {
        {OCT_SOUND_RECORD_BEGINS, "ab"}, {OCT_SOUND_RECORD_ENDS, "ba"}, {OCT_SOUND_ALARM, "ccc"}};
    char text[16];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = oct_view_sound_make(cases[i].sound, x);
        int loudest = 0;
        assert_true(n > 0 && n < OCT_VIEW_MOST_SOUND_SAMPLES && x[0] == 0 && x[n - 1] == 0);
        for (size_t k = 0; k < n; k++) {
            loudest = abs(x[k]) > loudest ? abs(x[k]) : loudest;
            assert_true(k == 0 || abs(x[k] - x[k - 1]) < 2200); /* no click */
        }
        assert_true(loudest > 9000 && loudest <= 10923);
        tones_of(x, n, text);
        assert_string_equal(text, cases[i].tones);
    }
}

/* ---- played ---- */

static int n_notes;

static void note(void *context)
{
    (void)context;
    __atomic_add_fetch(&n_notes, 1, __ATOMIC_SEQ_CST);
}

static struct oct_view_sound *open_sound(const char *driver)
{
    struct oct_view_sound *sound;
    setenv("SDL_AUDIODRIVER", driver, 1);
    assert_int_equal(oct_view_sound_create(&sound, note, NULL, NULL), OCT_OK);
    return sound;
}

static double now_s(void)
{
    return (double)oct_clock_ns() / 1e9;
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* What the device received, once it holds that many tones. */
static void wait_for_tones(const char *tones)
{
    const size_t most = 4 * OCT_VIEW_MOST_SOUND_SAMPLES;
    int16_t *x = malloc(most * sizeof(*x));
    char text[16] = "";
    assert_non_null(x);
    for (int i = 0; i < TEST_PATIENCE_MS / 50 && strcmp(text, tones) != 0; i++) {
        wait_ms(50);
        FILE *file = fopen(heard, "rb");
        assert_non_null(file);
        tones_of(x, fread(x, sizeof(*x), most, file), text);
        fclose(file);
    }
    assert_string_equal(text, tones);
    free(x);
}

TEST(a_device_hears_what_was_played)
{
    struct oct_view_sound *s = open_sound("disk");
    struct oct_error why;
    oct_view_sound_play(s, 0);
    double before_s = now_s();
    oct_view_sound_play(s, OCT_SOUND_ALARM | OCT_SOUND_RECORD_ENDS);
    assert_true(now_s() - before_s < 0.2);
    wait_for_tones("baccc");
    oct_view_sound_play(s, OCT_SOUND_RECORD_BEGINS); /* the device is opened anew */
    wait_for_tones("ab");
    assert_false(oct_view_sound_take_fault(s, &why));
    assert_true(oct_view_sound_destroy(s, TEST_PATIENCE_MS));
}

TEST(an_end_cuts_what_sounds)
{
    struct oct_view_sound *s = open_sound("disk");
    oct_view_sound_play(s, 7);
    wait_ms(100);
    assert_true(oct_view_sound_destroy(s, TEST_PATIENCE_MS));
    assert_true(oct_view_sound_destroy(NULL, 0));
    assert_true(oct_view_sound_destroy(open_sound("disk"), 0)); /* nothing was ever played */
}

TEST(without_a_device_it_says_so_once)
{
    struct oct_view_sound *s = open_sound("nonesuch");
    struct oct_error why = {0};
    __atomic_store_n(&n_notes, 0, __ATOMIC_SEQ_CST);
    for (int k = 0; k < 3; k++) {
        oct_view_sound_play(s, OCT_SOUND_ALARM);
        for (int i = 0; k == 0 && i < TEST_PATIENCE_MS / 5; i++) {
            if (oct_view_sound_take_fault(s, &why))
                break;
            wait_ms(5);
        }
        wait_ms(50);
    }
    assert_non_null(strstr(why.text, "no sound: "));
    assert_non_null(strstr(why.text, "nonesuch"));
    assert_false(oct_view_sound_take_fault(s, &why));
    assert_int_equal(__atomic_load_n(&n_notes, __ATOMIC_SEQ_CST), 1);
    assert_true(oct_view_sound_destroy(s, TEST_PATIENCE_MS));
}

static unsigned count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A pipe that nobody reads: opening it for writing waits for ever, as a sound server that hangs. */
TEST(a_device_that_hangs_holds_nobody_up)
{
    char pipe_path[4200], bytes[65536];
    unsigned n_threads = count_threads();
    snprintf(pipe_path, sizeof(pipe_path), "%s.pipe", heard);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    setenv("SDL_DISKAUDIOFILE", pipe_path, 1);
    struct oct_view_sound *s = open_sound("disk");
    double before_s = now_s();
    for (int i = 0; i < 50; i++)
        oct_view_sound_play(s, OCT_SOUND_ALARM);
    assert_true(now_s() - before_s < 1);
    wait_ms(300);
    assert_false(oct_view_sound_take_fault(s, &(struct oct_error){0})); /* it may yet come */
    before_s = now_s();
    assert_false(oct_view_sound_destroy(s, 200));
    assert_true(now_s() - before_s < 0.2 + TEST_PATIENCE_MS / 1000.0 / 4);
    assert_true(count_threads() > n_threads); /* it still hangs */
    /* Read at last, it goes on, and the thread frees everything. */
    int fd = open(pipe_path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    for (int i = 0; i < TEST_PATIENCE_MS / 5 && count_threads() > n_threads; i++) {
        while (read(fd, bytes, sizeof(bytes)) > 0)
            ;
        wait_ms(5);
    }
    assert_int_equal(count_threads(), n_threads);
    close(fd);
    remove(pipe_path);
    setenv("SDL_DISKAUDIOFILE", heard, 1);
}

TEST_GROUP(make_place, NULL);
