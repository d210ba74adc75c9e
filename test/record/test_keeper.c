#define _GNU_SOURCE /* MAP_ANONYMOUS, RTLD_NEXT */
/* The keeper between two rings that the test feeds and a recorder that it plays. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/record/keeper.h"
#include "test/rig/fake_engine.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { N = 40, M = 3, V = 6, D = 20, SLOTS = 16, BUFFER = 10, HISTORY = 20 };

struct rig {
    struct oct_plan plan;
    struct oct_ring *raw, *images;
    struct oct_ring_reader *publisher; /* must never be held up */
    struct oct_loss_log *losses;
    struct oct_keeper *keeper;
};

static void open_rig(struct rig *r, uint32_t history)
{
    r->plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    r->raw = open_ring(SLOTS, oct_raw_slot_bytes(&r->plan.geometry));
    r->images = open_ring(SLOTS, oct_image_slot_bytes(&r->plan.geometry));
    r->publisher = add_reader(r->images, true, 0);
    r->losses = oct_loss_log_create(0);
    const struct oct_keeper_options options = {.plan = &r->plan,
                                               .raw = r->raw,
                                               .images = r->images,
                                               .losses = r->losses,
                                               .buffer_bscans = BUFFER,
                                               .history_bscans = history};
    must(oct_keeper_create(&r->keeper, &options, &failure));
}

static void close_rig(struct rig *r)
{
    oct_ring_close(r->raw);
    oct_ring_close(r->images);
    oct_keeper_destroy(r->keeper);
    oct_ring_destroy(r->raw);
    oct_ring_destroy(r->images);
    oct_loss_log_destroy(r->losses);
}

/* Puts B-scan `number` through both rings; the publisher takes it at once. */
static void put(struct rig *r, uint64_t number)
{
    uint64_t slot, read;
    assert_int_equal(oct_ring_acquire(r->raw, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *raw = oct_raw_slot(r->raw, slot, &r->plan.geometry);
    raw->info = (struct oct_bscan_info){
        .id = slot, .acquisition = 1, .number = number, .arrival_ns = number * 1000};
    memset(raw->line_valid, 1, M);
    for (uint32_t i = 0; i < M * N; i++)
        raw->spectra[i] = (uint16_t)(number * 31 + i);
    oct_ring_publish(r->raw);
    assert_int_equal(oct_ring_acquire(r->images, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *image = oct_image_slot(r->images, slot);
    image->info = raw->info;
    image->status = OCT_OK;
    memset(image->pixels, (int)(number & 0xff), M * D);
    oct_ring_publish(r->images);
    assert_int_equal(oct_ring_read(r->publisher, 0, &read), OCT_OK);
    oct_ring_release(r->publisher);
}

static void expect_bscan(const struct oct_kept *kept, uint64_t number)
{
    assert_int_equal(kept->raw.info.number, number);
    assert_true(kept->has_payload);
    for (uint32_t i = 0; i < M * N; i++)
        assert_int_equal(kept->raw.spectra[i], (uint16_t)(number * 31 + i));
    for (uint32_t i = 0; i < M * D; i++)
        assert_int_equal(((uint8_t *)kept->image.pixels)[i], number & 0xff);
}

/* Reads as the recorder does until `most` have come, or until slot `end` has passed and there is no
 * more; returns how many. */
static unsigned read_all(struct rig *r, uint64_t *numbers, unsigned most, uint64_t end,
                         uint64_t *passed)
{
    const struct oct_kept *kept;
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    unsigned n = 0;
    while (n < most) {
        enum oct_err e = oct_keeper_read(r->keeper, 200000, &kept, passed);
        if (e == OCT_E_AGAIN && *passed >= end)
            break;
        assert_true(oct_clock_ns() < until_ns);
        if (e)
            continue;
        expect_bscan(kept, kept->raw.info.number);
        numbers[n++] = kept->raw.info.number;
        oct_keeper_release(r->keeper);
    }
    return n;
}

/* The clock by which the keeper sees pauses stands still but for what a test adds. */
static atomic_uint_fast64_t boot_ns = UINT64_C(1000000000);

/* A thread that has read the clock and does not run until this is 0 again. */
static _Thread_local atomic_uint *stops_at_clock;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (clock == CLOCK_BOOTTIME) {
        uint64_t ns = atomic_load(&boot_ns);
        *now = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                                 .tv_nsec = (long)(ns % 1000000000u)};
        if (stops_at_clock) {
            atomic_store(stops_at_clock, 1);
            while (atomic_load(stops_at_clock))
                sleep_us(200);
        }
        return 0;
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

/* So much time goes by while the keeper, which looks every 100 ms, does not run. */
static void pause_all(struct rig *r, uint64_t ms)
{
    struct oct_keeper_status before, now;
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    oct_keeper_get_status(r->keeper, &before);
    atomic_fetch_add(&boot_ns, ms * 1000000u);
    do {
        assert_true(oct_clock_ns() < until_ns);
        oct_keeper_get_status(r->keeper, &now);
    } while (now.n_pauses == before.n_pauses);
    assert_int_equal(now.pause_ns, ms * 1000000u);
    assert_true(now.catches_up);
}

/* Puts so many that some are dropped; the reason why, OCT_LOSS_NONE if there are two. */
static enum oct_loss overflow(struct rig *r, uint64_t *next)
{
    struct oct_keeper_status before, now;
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    oct_keeper_get_status(r->keeper, &before);
    for (unsigned i = 0; i < BUFFER + 2 * SLOTS; i++)
        put(r, (*next)++);
    do {
        assert_true(oct_clock_ns() < until_ns);
        oct_keeper_get_status(r->keeper, &now);
    } while (now.n_dropped < before.n_dropped + SLOTS);
    uint64_t n_dropped = now.n_dropped - before.n_dropped;
    uint64_t n_paused = now.n_paused - before.n_paused;
    return n_paused == n_dropped ? OCT_LOSS_PAUSED
           : n_paused == 0       ? OCT_LOSS_DISK_SLOW
                                 : OCT_LOSS_NONE;
}

static void read_one(struct rig *r)
{
    uint64_t number, passed;
    assert_int_equal(read_all(r, &number, 1, UINT64_MAX, &passed), 1);
}

TEST(what_comes_at_once_after_a_pause_is_no_slow_disk)
{
    struct rig r;
    uint64_t next = 0;
    struct oct_keeper_status s;
    open_rig(&r, 0);
    oct_keeper_want(r.keeper, true);
    put(&r, next++); /* it has looked at the clock when this one has come */
    read_one(&r);
    pause_all(&r, 3000);
    assert_int_equal(overflow(&r, &next), OCT_LOSS_PAUSED);
    struct oct_gap lost = {
        .acquisition = 1, .first_line = (1 + BUFFER) * M, .n_lines = M, .reason = OCT_LOSS_SOURCE};
    assert_int_equal(oct_loss_log_explain(r.losses, &lost).reason, OCT_LOSS_PAUSED);

    /* The recorder gives nothing back for half a second: that is the disk, pause or not. */
    atomic_fetch_add(&boot_ns, UINT64_C(499000000));
    assert_int_equal(overflow(&r, &next), OCT_LOSS_PAUSED);
    atomic_fetch_add(&boot_ns, UINT64_C(1000000));
    assert_int_equal(overflow(&r, &next), OCT_LOSS_DISK_SLOW);

    /* Nor is what comes later the pause's: as long again and a second, no more. */
    pause_all(&r, 600);
    assert_int_equal(overflow(&r, &next), OCT_LOSS_PAUSED);
    for (int i = 0; i < 4; i++) { /* steps that are no pauses, and a recorder that moves */
        oct_keeper_get_status(r.keeper, &s);
        assert_true(s.catches_up);
        atomic_fetch_add(&boot_ns, UINT64_C(400000000));
        read_one(&r);
        assert_int_equal(overflow(&r, &next), i < 3 ? OCT_LOSS_PAUSED : OCT_LOSS_DISK_SLOW);
    }
    oct_keeper_get_status(r.keeper, &s);
    assert_false(s.catches_up);
    assert_int_equal(s.n_pauses, 2);
    oct_keeper_want(r.keeper, false);
    while (oct_keeper_read(r.keeper, 100000, &(const struct oct_kept *){NULL}, &next) == OCT_OK)
        oct_keeper_release(r.keeper);
    close_rig(&r);
}

struct release {
    struct rig *rig;
    atomic_uint stopped;
};

static void *release_across_a_pause(void *argument)
{
    struct release *release = argument;
    const struct oct_kept *kept;
    uint64_t passed;
    assert_int_equal(oct_keeper_read(release->rig->keeper, TEST_PATIENCE_US, &kept, &passed),
                     OCT_OK);
    stops_at_clock = &release->stopped;
    oct_keeper_release(release->rig->keeper);
    return NULL;
}

TEST(a_release_that_a_pause_cut_in_two_is_no_slow_disk)
{
    struct rig r;
    struct release release = {.rig = &r};
    pthread_t thread;
    uint64_t next = 0;
    open_rig(&r, 0);
    oct_keeper_want(r.keeper, true);
    put(&r, next++);
    assert_int_equal(pthread_create(&thread, NULL, release_across_a_pause, &release), 0);
    while (!atomic_load(&release.stopped))
        sleep_us(200);
    pause_all(&r, 3000);
    atomic_store(&release.stopped, 0);
    pthread_join(thread, NULL);
    assert_int_equal(overflow(&r, &next), OCT_LOSS_PAUSED);
    oct_keeper_want(r.keeper, false);
    while (oct_keeper_read(r.keeper, 100000, &(const struct oct_kept *){NULL}, &next) == OCT_OK)
        oct_keeper_release(r.keeper);
    close_rig(&r);
}

TEST(a_recorder_that_stalls_loses_bscans_with_a_reason_and_nobody_waits)
{
    struct rig r;
    uint64_t numbers[200], passed;
    open_rig(&r, 0);
    oct_keeper_want(r.keeper, true);
    for (uint64_t i = 0; i < 100; i++)
        put(&r, i); /* fails if a ring is held */
    unsigned n = read_all(&r, numbers, 200, 100, &passed);
    assert_in_range(n, BUFFER, BUFFER + SLOTS);
    assert_int_equal(passed, 100);
    uint64_t lost = 0, next = 0;
    for (unsigned i = 0; i <= n; next = numbers[i++] + 1) {
        uint64_t end = i < n ? numbers[i] : 100;
        assert_true(end >= next);
        if (end == next)
            continue;
        struct oct_gap piece =
            oct_loss_log_explain(r.losses, &(struct oct_gap){.acquisition = 1,
                                                             .first_line = next * M,
                                                             .n_lines = (end - next) * M,
                                                             .reason = OCT_LOSS_SOURCE});
        assert_int_equal(piece.n_lines, (end - next) * M);
        assert_int_equal(piece.reason, OCT_LOSS_DISK_SLOW);
        lost += end - next;
    }
    struct oct_keeper_status s;
    oct_keeper_get_status(r.keeper, &s);
    assert_int_equal(s.n_dropped, lost);
    assert_int_equal(n + lost, 100);
    close_rig(&r);
}

/* Waits until `n` wait for the recorder. */
static void expect_waiting(struct rig *r, uint32_t n)
{
    struct oct_keeper_status s;
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    do {
        sleep_us(200);
        oct_keeper_get_status(r->keeper, &s);
    } while (s.n_waiting < n && oct_clock_ns() < until_ns);
    assert_int_equal(s.n_waiting, n);
}

TEST(memory_is_taken_only_for_what_has_to_wait)
{
    enum { MOST = 3, ROUNDS = 40 };
    struct rig r;
    const struct oct_kept *kept;
    const void *places[MOST] = {NULL};
    unsigned n_places = 0;
    uint64_t number = 0, next = 0, passed;
    open_rig(&r, 0);
    oct_keeper_want(r.keeper, true);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = 1 + round % MOST;
        for (unsigned i = 0; i < n; i++)
            put(&r, number++);
        expect_waiting(&r, n);
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(oct_keeper_read(r.keeper, TEST_PATIENCE_US, &kept, &passed), OCT_OK);
            expect_bscan(kept, next++);
            unsigned at = 0;
            while (at < n_places && places[at] != kept->raw.spectra)
                at++;
            assert_true(at < MOST); /* a fourth place: one that nobody needed */
            places[at] = kept->raw.spectra;
            n_places = at == n_places ? n_places + 1 : n_places;
            oct_keeper_release(r.keeper);
        }
    }
    assert_int_equal(n_places, MOST);
    for (uint64_t i = 0; i < BUFFER; i++) /* and all of it is still there */
        put(&r, number++);
    expect_waiting(&r, BUFFER);
    while (next < number) {
        assert_int_equal(oct_keeper_read(r.keeper, TEST_PATIENCE_US, &kept, &passed), OCT_OK);
        expect_bscan(kept, next++);
        oct_keeper_release(r.keeper);
    }
    close_rig(&r);
}

static void *read_slowly(void *argument)
{
    struct rig *r = argument;
    const struct oct_kept *kept;
    uint64_t passed, next = 0;
    while (oct_keeper_read(r->keeper, TEST_PATIENCE_US, &kept, &passed) == OCT_OK) {
        sleep_us(3000);
        expect_bscan(kept, next++);
        oct_keeper_release(r->keeper);
        if (next == 60)
            break;
    }
    assert_int_equal(next, 60);
    return NULL;
}

TEST(a_keeper_that_drains_drops_nothing)
{
    struct rig r;
    pthread_t reader;
    struct oct_keeper_status s;
    open_rig(&r, 0);
    oct_keeper_want(r.keeper, true);
    oct_keeper_drain(r.keeper);
    assert_int_equal(pthread_create(&reader, NULL, read_slowly, &r), 0);
    for (uint64_t i = 0; i < 60; i++)
        put(&r, i);
    pthread_join(reader, NULL);
    oct_keeper_get_status(r.keeper, &s);
    assert_int_equal(s.n_dropped, 0);
    close_rig(&r);
}

TEST(unwanted_bscans_pass_without_their_pixels)
{
    struct rig r;
    const struct oct_kept *kept;
    uint64_t passed;
    open_rig(&r, 0);
    put(&r, 7);
    assert_int_equal(oct_keeper_read(r.keeper, TEST_PATIENCE_US, &kept, &passed), OCT_OK);
    assert_int_equal(kept->raw.info.number, 7);
    assert_false(kept->has_payload);
    oct_keeper_release(r.keeper);
    oct_keeper_wake(r.keeper);
    uint64_t began_ns = oct_clock_ns();
    assert_int_equal(oct_keeper_read(r.keeper, TEST_PATIENCE_US, &kept, &passed), OCT_E_AGAIN);
    assert_true(oct_clock_ns() - began_ns < TEST_PATIENCE_NS / 2);
    assert_int_equal(oct_keeper_hold(r.keeper, NULL, NULL), 0);
    close_rig(&r);
}

static void feed(struct oct_pipeline *pipeline, const struct oct_plan *plan, uint64_t number)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(oct_pipeline_raw(pipeline), TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *raw = oct_raw_slot(oct_pipeline_raw(pipeline), slot, &plan->geometry);
    raw->info = (struct oct_bscan_info){.id = slot, .acquisition = 1, .number = number};
    memset(raw->line_valid, 1, M);
    memset(raw->spectra, (int)number, M * N * sizeof(uint16_t));
    oct_ring_publish(oct_pipeline_raw(pipeline));
}

/* Whether the next B-scan is kept, with its complex values. */
static bool is_kept(struct oct_keeper *keeper, uint64_t number)
{
    const struct oct_kept *kept;
    uint64_t passed;
    assert_int_equal(oct_keeper_read(keeper, TEST_PATIENCE_US, &kept, &passed), OCT_OK);
    assert_int_equal(kept->raw.info.number, number);
    const bool has_payload = kept->has_payload;
    for (size_t i = 0; has_payload && i < 2 * (size_t)M * D; i++)
        assert_true(kept->image.complex_values[i] ==
                    fake_value(kept->raw.spectra[0], kept->image.lo, i) + 0.25F);
    oct_keeper_release(keeper);
    return has_payload;
}

/* They are made while B-scans are wanted. What the engine had been given before has none: it is as
 * if it had passed before. */
TEST(complex_values_are_kept_of_bscans_that_were_asked_for_them)
{
    const struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    const struct fake_script script = {.plan = &plan, .depth = 1, .max_batch = 1, .job_us = 200000};
    struct fake_watch watch = {.n_wrong = 0};
    struct oct_pipeline_setup setup = {.plan = &plan,
                                       .ops = &fake_engine,
                                       .engine = fake_engine_create(&script, &watch),
                                       .display = {.range = OCT_RANGE_MANUAL, .lo = 1, .hi = 2},
                                       .ring_bscans = SLOTS};
    struct oct_pipeline *pipeline;
    struct oct_keeper *keeper;
    setup.lends[OCT_LENT_COMPLEX] = true;
    must(oct_pipeline_create(&pipeline, &setup, &failure));
    const struct oct_keeper_options options = {.plan = &plan,
                                               .raw = oct_pipeline_raw(pipeline),
                                               .images = oct_pipeline_images(pipeline),
                                               .complex_of = pipeline};
    must(oct_keeper_create(&keeper, &options, &failure));
    feed(pipeline, &plan, 7);
    while (atomic_load(&watch.n_submitted) == 0)
        sleep_us(200);
    oct_keeper_want(keeper, true);
    assert_false(is_kept(keeper, 7));
    for (uint64_t number = 8; number < 10; number++)
        feed(pipeline, &plan, number);
    assert_true(is_kept(keeper, 8));
    assert_true(is_kept(keeper, 9));
    oct_keeper_want(keeper, false);
    feed(pipeline, &plan, 10);
    assert_false(is_kept(keeper, 10));
    assert_int_equal(watch.n_with_complex, 2);
    assert_int_equal(watch.n_wrong, 0);
    oct_pipeline_drain(pipeline);
    oct_keeper_destroy(keeper);
    oct_pipeline_destroy(pipeline);
}

static struct oct_kept new_frame(void)
{
    struct oct_kept kept = {.raw = {.spectra = calloc(M * N, 2), .line_valid = calloc(M, 1)}};
    kept.image.pixels = calloc(M, D);
    return kept;
}

TEST(the_history_is_held_while_new_bscans_come_and_gives_way_to_them)
{
    struct rig r;
    uint64_t numbers[200], passed;
    struct oct_kept kept = new_frame();
    struct oct_keeper_status s;
    struct oct_bscan_info infos[HISTORY];
    uint32_t index;
    open_rig(&r, HISTORY);
    for (uint64_t i = 0; i < 50; i++) {
        put(&r, i);
        read_all(&r, numbers, 1, i + 1, &passed);
    }
    oct_keeper_get_status(r.keeper, &s);
    assert_int_equal(s.n_history, HISTORY);
    assert_int_equal(s.history_ns, (HISTORY - 1) * 1000);
    assert_int_equal(oct_keeper_hold(r.keeper, infos, NULL), HISTORY);
    for (uint64_t i = 0; i < HISTORY; i++)
        assert_int_equal(infos[i].number, 30 + i);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(oct_keeper_copy(r.keeper, &kept, &index), OCT_OK);
        assert_int_equal(index, i);
        expect_bscan(&kept, 30 + i);
    }
    for (uint64_t i = 50; i < 65; i++) { /* 15 more: 10 fit, 2 take those copied, 2 or 3 are lost */
        put(&r, i);
        read_all(&r, numbers, 1, i + 1, &passed);
    }
    assert_int_equal(passed, 65);
    unsigned n = 0;
    uint64_t last = 0;
    while (oct_keeper_copy(r.keeper, &kept, &index) == OCT_OK) {
        assert_int_equal(infos[index].number, kept.raw.info.number); /* those skipped are known */
        expect_bscan(&kept, kept.raw.info.number);
        assert_true(kept.raw.info.number > last);
        last = kept.raw.info.number;
        n++;
    }
    assert_int_equal(index, HISTORY);
    assert_int_equal(last, 49); /* what came after the hold is not part of it */
    assert_in_range(n, HISTORY - 3 - 3, HISTORY - 3 - 2);
    oct_keeper_get_status(r.keeper, &s);
    assert_int_equal(s.n_dropped, 0);
    assert_int_equal(oct_keeper_hold(r.keeper, NULL, NULL), HISTORY);
    oct_keeper_let_go(r.keeper);
    assert_int_equal(oct_keeper_copy(r.keeper, &kept, &index), OCT_E_CLOSED);
    free(kept.raw.spectra);
    free(kept.raw.line_valid);
    free(kept.image.pixels);
    close_rig(&r);
}

TEST(memory_that_is_not_there_is_refused)
{
    struct rig r;
    struct oct_error err = {.text = ""};
    struct oct_keeper *keeper;
    open_rig(&r, 0);
    const struct oct_plan plan =
        volume_plan(N, 10, V, 2000, OCT_SAMPLE_U8); /* beyond all addresses */
    const struct oct_keeper_options options = {.plan = &plan,
                                               .raw = r.raw,
                                               .images = r.images,
                                               .buffer_bscans = UINT32_MAX,
                                               .history_bscans = UINT32_MAX};
    assert_int_equal(oct_keeper_create(&keeper, &options, &err), OCT_E_NO_MEMORY);
    assert_null(keeper);
    assert_non_null(strstr(err.text, "record.last_s"));
    close_rig(&r);
}

/* How long the main thread and this one were ready to run and had no processor: the machine's
 * doing, whoever of them holds the lock. */
static uint64_t waited_ns(void)
{
    char own[64];
    snprintf(own, sizeof(own), "/proc/self/task/%d/schedstat", (int)getpid());
    const char *const paths[] = {own, "/proc/thread-self/schedstat"};
    unsigned long long ran, waited, sum = 0;
    for (int k = 0; k < 2; k++) {
        FILE *file = fopen(paths[k], "r");
        if (file && fscanf(file, "%llu %llu", &ran, &waited) == 2)
            sum += waited;
        if (file)
            fclose(file);
    }
    return sum;
}

struct probe {
    pthread_t thread;
    atomic_bool ending;
    uint64_t worst_ns;
};

/* Takes a page and gives it back, as malloc() does now and then. */
static void *ask_for_memory(void *argument)
{
    struct probe *probe = argument;
    while (!atomic_load(&probe->ending)) {
        uint64_t waited = waited_ns(), begin = oct_clock_ns();
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *(volatile char *)page = 1;
        munmap(page, 4096);
        uint64_t took = oct_clock_ns() - begin;
        waited = waited_ns() - waited;
        if (took > waited && took - waited > probe->worst_ns)
            probe->worst_ns = took - waited;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

static void begin_probe(struct probe *probe)
{
    atomic_store(&probe->ending, false);
    probe->worst_ns = 0;
    assert_int_equal(pthread_create(&probe->thread, NULL, ask_for_memory, probe), 0);
}

static uint64_t end_probe(struct probe *probe)
{
    atomic_store(&probe->ending, true);
    pthread_join(probe->thread, NULL);
    return probe->worst_ns;
}

/* The main loop asks for memory with every reply: it must not wait for all of the history's, as it
 * does beside memory that is taken in one piece. */
TEST(much_memory_is_taken_and_given_back_without_holding_up_other_threads)
{
    enum { MUCH = 40000 };
    struct probe probe;
    uint64_t one_piece_ns = 0, worst_ns = UINT64_MAX;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* a sanitizer's own work on each mapping is all that is seen */
#endif
    for (int tries = 0; tries < 5 && worst_ns > one_piece_ns / 5; tries++) {
        struct rig r;
        const struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
        const size_t bytes = (size_t)oct_kept_bytes(&plan.geometry, false) * MUCH; /* half a GB */
        begin_probe(&probe);
        void *piece = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        assert_true(piece != MAP_FAILED);
        munmap(piece, bytes);
        one_piece_ns = end_probe(&probe);
        begin_probe(&probe);
        open_rig(&r, MUCH);
        close_rig(&r);
        worst_ns = end_probe(&probe);
        print_message("# the longest wait for a page: %.2f ms, beside one piece %.2f ms\n",
                      (double)worst_ns * 1e-6, (double)one_piece_ns * 1e-6);
    }
    assert_true(worst_ns <= one_piece_ns / 5);
}
