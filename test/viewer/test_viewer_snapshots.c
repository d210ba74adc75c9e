/* Snapshots: written by another thread, under their name only when they are whole. */
#include "test/rig/tap.h"
#include "viewer/draw/png.h"
#include "viewer/model/words.h"
#include "viewer/snapshots.h"

#include <SDL.h>
#include <SDL_image.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct oct_view_caption caption = {"-OD", "a line", "{}"};

/* How many pictures there are. */
static unsigned count_files(void)
{
    unsigned n = 0;
    DIR *dir = opendir(".");
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Noise, which takes long to compress. */
static SDL_Surface *noise(int width, int height)
{
    SDL_Surface *surface =
        SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_ARGB8888);
    uint32_t dice = 1;
    assert_non_null(surface);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            dice = dice * 1664525u + 1013904223u;
            ((uint32_t *)((uint8_t *)surface->pixels + y * surface->pitch))[x] = dice >> 8;
        }
    return surface;
}

static double cpu_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct oct_view_snapshot_done wait_for(struct oct_view_snapshots *s)
{
    struct oct_view_snapshot_done done = {.code = OCT_E_AGAIN};
    for (int i = 0; i < TEST_PATIENCE_MS / 5 && !oct_view_snapshots_take(s, &done); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return done;
}

/* What the folder saw, in order: names that came by being made are those of unfinished files. */
TEST(a_file_has_its_name_only_when_it_is_whole)
{
    char events[65536] __attribute__((aligned(8))), path[4200];
    SDL_Surface *surface = noise(300, 200);
    unsigned n_named = 0, n_made = 0;
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0 && inotify_add_watch(watch, ".", IN_CREATE | IN_MOVED_TO) >= 0);
    time_t now = time(NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(oct_png_save_new(surface, &caption, ".", now, path, sizeof(path), NULL),
                         OCT_OK);
    ssize_t n = read(watch, events, sizeof(events));
    assert_true(n > 0);
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *)(events + at);
        size_t length = strlen(event->name);
        bool is_final = length > 4 && strcmp(event->name + length - 4, ".png") == 0;
        assert_true(is_final == ((event->mask & IN_MOVED_TO) != 0));
        n_named += is_final;
        n_made += !is_final;
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    assert_true(n_named == 3 && n_made == 3 && count_files() == 3);
    close(watch);
    SDL_FreeSurface(surface);
}

TEST(the_caller_does_not_compress)
{
    struct oct_view_snapshots *s;
    must(oct_view_snapshots_create(&s, ".", NULL, NULL, &failure));
    SDL_Surface *surface = noise(1920, 1080);
    double process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID), own_s = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    must(oct_view_snapshots_add(s, surface, &caption, &failure));
    own_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - own_s;
    struct oct_view_snapshot_done done = wait_for(s);
    process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - process_s;
    assert_int_equal(done.code, OCT_OK);
    assert_true(process_s > 0.02 && own_s < 0.05 * process_s);
    SDL_Surface *back = IMG_Load(done.text);
    assert_true(back && back->w == 1920 && back->h == 1080);
    SDL_FreeSurface(back);
    oct_view_snapshots_destroy(s, 60);
}

TEST(an_end_waits_for_what_was_asked_for)
{
    struct oct_view_snapshots *s;
    unsigned before = count_files();
    must(oct_view_snapshots_create(&s, ".", NULL, NULL, &failure));
    for (int i = 0; i < OCT_VIEW_MOST_SNAPSHOTS; i++)
        must(oct_view_snapshots_add(s, noise(200, 100), &caption, &failure));
    must_fail(oct_view_snapshots_add(s, noise(200, 100), &caption, &failure), OCT_E_AGAIN,
              "is the disk slow");
    oct_view_snapshots_destroy(s, 60);
    assert_int_equal(count_files(), before + OCT_VIEW_MOST_SNAPSHOTS);
    oct_view_snapshots_destroy(NULL, 0);
}

TEST(a_failure_is_told)
{
    struct oct_view_snapshots *s;
    struct oct_error err = {0};
    assert_int_equal(oct_view_snapshots_create(&s, "/nonexistent", NULL, NULL, &err), OCT_OK);
    assert_int_equal(oct_view_snapshots_add(s, NULL, &caption, &err), OCT_E_NO_MEMORY);
    assert_int_equal(oct_view_snapshots_add(s, noise(20, 10), &caption, &err), OCT_OK);
    struct oct_view_snapshot_done done = wait_for(s);
    assert_int_equal(done.code, OCT_E_IO);
    assert_non_null(strstr(done.text, "/nonexistent/octview-"));
    assert_non_null(strstr(done.text, "No such file"));
    oct_view_snapshots_destroy(s, 60);
}

/* The user's mask, as for any file. */
TEST(a_picture_is_as_readable_as_any_file)
{
    SDL_Surface *surface = noise(20, 10);
    struct stat about;
    char path[4200];
    mode_t mask = umask(027);

    assert_int_equal(oct_png_save_new(surface, &caption, ".", time(NULL), path, sizeof(path), NULL),
                     OCT_OK);
    umask(mask);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    SDL_FreeSurface(surface);
}
