/* The blocks of a recording on their way to the file, with a disk that waits and refuses when
 * told. */
#define _GNU_SOURCE /* O_DIRECT */
#include "pipeline/volume/queue.h"
#include "test/rig/disk_rig.h"
#include "test/rig/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES OCT_VOLUME_QUEUE_BYTES
#define N_BLOCKS 3u
#define TEST_MEMORY_MIB 64u /* a second file's and what malloc keeps */

/* ---- the disk ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;        /* writes do not begin */
    unsigned n_begun; /* writes that came, held or not */
    unsigned fail_at; /* the n-th fails; 0: none */
    unsigned n_written;
    off_t offset[64]; /* of those written */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static ssize_t write_when_told(int fd, const void *data, size_t bytes, off_t offset)
{
    pthread_mutex_lock(&disk.lock);
    unsigned number = ++disk.n_begun;
    pthread_cond_broadcast(&disk.changed);
    while (disk.held)
        pthread_cond_wait(&disk.changed, &disk.lock);
    bool fails = number == disk.fail_at;
    if (!fails)
        disk.offset[disk.n_written++ % 64] = offset;
    pthread_mutex_unlock(&disk.lock);
    if (fails) {
        errno = EIO;
        return -1;
    }
    return disk_pwrite(fd, data, bytes, offset);
}

static void hold(bool held)
{
    pthread_mutex_lock(&disk.lock);
    disk.held = held;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void await_begun(unsigned n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TEST_PATIENCE_MS / 1000;
    pthread_mutex_lock(&disk.lock);
    int status = 0;
    while (disk.n_begun < n && status == 0)
        status = pthread_cond_timedwait(&disk.changed, &disk.lock, &until);
    pthread_mutex_unlock(&disk.lock);
    assert_int_equal(status, 0);
}

/* ---- a file and its queue ---- */

struct scene {
    struct oct_volume_file file;
    struct oct_volume_queue *queue;
};

static void open_scene(struct scene *s)
{
    disk.held = false;
    disk.n_begun = disk.fail_at = disk.n_written = 0;
    must(oct_volume_file_draft(&s->file, "queue.h5", &failure));
    must(oct_volume_file_reserve(&s->file, 16 * BYTES, &failure));
    must(oct_volume_file_publish(&s->file, &failure));
    must(oct_volume_queue_create(&s->queue, &s->file, N_BLOCKS, &failure));
}

static void close_scene(struct scene *s)
{
    oct_volume_queue_destroy(s->queue);
    unlink(s->file.part);
    oct_volume_file_close(&s->file);
}

/* Every byte of block k follows from k and its place. */
static void fill(unsigned char *block, unsigned k)
{
    for (size_t i = 0; i < BYTES; i++)
        block[i] = (unsigned char)(k * 37 + i / 4096 + i);
}

static void expect(const struct scene *s, unsigned k, bool written)
{
    unsigned char *want = malloc(BYTES), *got = malloc(BYTES);
    assert_true(want && got);
    if (written)
        fill(want, k);
    else
        memset(want, 0, BYTES);
    assert_int_equal(pread(s->file.fd, got, BYTES, (off_t)(k * BYTES)), BYTES);
    assert_memory_equal(want, got, BYTES);
    free(want);
    free(got);
}

static enum oct_err send(struct scene *s, unsigned k, size_t n_new, struct oct_error *err)
{
    unsigned char *block;
    enum oct_err e = oct_volume_queue_take(s->queue, &block, err);
    if (e)
        return e;
    assert_int_equal((uintptr_t)block % OCT_VOLUME_BLOCK_BYTES, 0);
    fill(block, k);
    oct_volume_queue_put(s->queue, block, BYTES, k * BYTES, n_new);
    return OCT_OK;
}

static void *send_in_thread(void *argument)
{
    return (void *)(intptr_t)send(argument, N_BLOCKS, BYTES, NULL);
}

/* ---- the tests ---- */

TEST(blocks_arrive_whole_and_in_order)
{
    struct scene s;
    open_scene(&s);
    for (unsigned k = 0; k < 16; k++)
        must(send(&s, 15 - k, BYTES - k, &failure));
    must(oct_volume_queue_wait(s.queue, &failure));
    assert_int_equal(oct_volume_queue_bytes(s.queue), 16 * BYTES - 120);
    assert_int_equal(disk.n_written, 16);
    for (unsigned k = 0; k < 16; k++) {
        assert_int_equal(disk.offset[k], (15 - k) * BYTES);
        expect(&s, k, true);
    }
    close_scene(&s);
}

TEST(the_next_block_is_filled_while_one_is_written)
{
    struct scene s;
    pthread_t thread;
    void *got;
    open_scene(&s);
    hold(true);
    for (unsigned k = 0; k < N_BLOCKS; k++) /* with the disk at a stand none of them waits */
        must(send(&s, k, BYTES, &failure));
    await_begun(1);
    assert_int_equal(oct_volume_queue_bytes(s.queue), 0);
    /* One more has no block until the disk goes on. */
    assert_int_equal(pthread_create(&thread, NULL, send_in_thread, &s), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_not_equal(pthread_tryjoin_np(thread, &got), 0);
    hold(false);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_int_equal((intptr_t)got, OCT_OK);
    must(oct_volume_queue_wait(s.queue, &failure));
    for (unsigned k = 0; k <= N_BLOCKS; k++)
        expect(&s, k, true);
    close_scene(&s);
}

TEST(after_a_failure_nothing_more_is_written)
{
    struct scene s;
    struct oct_error err = {0};
    unsigned char *block;
    open_scene(&s);
    hold(true);
    disk.fail_at = 2;
    for (unsigned k = 0; k < N_BLOCKS; k++)
        assert_int_equal(send(&s, k, BYTES, &err), OCT_OK);
    hold(false);
    assert_int_equal(oct_volume_queue_wait(s.queue, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "queue.h5.part"));
    assert_non_null(strstr(err.text, strerror(EIO)));
    assert_int_equal(oct_volume_queue_bytes(s.queue), BYTES);
    assert_int_equal(disk.n_begun, 2); /* the third was not tried */
    expect(&s, 0, true);
    expect(&s, 1, false);
    expect(&s, 2, false);

    err = (struct oct_error){0};
    assert_int_equal(oct_volume_queue_take(s.queue, &block, &err), OCT_E_IO);
    assert_null(block);
    assert_non_null(strstr(err.text, strerror(EIO)));
    assert_int_equal(oct_volume_queue_wait(s.queue, NULL), OCT_E_IO);
    close_scene(&s);
}

TEST(who_waits_for_a_block_hears_of_the_failure)
{
    struct scene s;
    pthread_t thread;
    void *got;
    open_scene(&s);
    hold(true);
    disk.fail_at = 1;
    for (unsigned k = 0; k < N_BLOCKS; k++)
        assert_int_equal(send(&s, k, BYTES, NULL), OCT_OK);
    assert_int_equal(pthread_create(&thread, NULL, send_in_thread, &s), 0);
    await_begun(1);
    hold(false);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_int_equal((intptr_t)got, OCT_E_IO);
    assert_int_equal(oct_volume_queue_wait(s.queue, NULL), OCT_E_IO);
    assert_int_equal(oct_volume_queue_bytes(s.queue), 0);
    close_scene(&s);
}

TEST(what_was_put_is_written_before_the_queue_ends)
{
    struct scene s;
    unsigned char *lent;
    open_scene(&s);
    hold(true);
    for (unsigned k = 0; k < N_BLOCKS - 1; k++)
        assert_int_equal(send(&s, k, BYTES, NULL), OCT_OK);
    assert_int_equal(oct_volume_queue_take(s.queue, &lent, NULL), OCT_OK); /* never given back */
    fill(lent, 9);
    await_begun(1);
    hold(false);
    oct_volume_queue_destroy(s.queue);
    s.queue = NULL;
    for (unsigned k = 0; k < N_BLOCKS - 1; k++)
        expect(&s, k, true);
    expect(&s, 2, false);
    close_scene(&s);
}

static size_t resident_mib(void)
{
    size_t total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE) >> 20;
}

/* The queue of another file, all of whose blocks but one have been in use. */
static struct oct_volume_queue *use_queue(struct scene *s, unsigned n_blocks)
{
    struct oct_volume_queue *queue;
    unsigned char *block;
    assert_int_equal(oct_volume_queue_create(&queue, &s->file, n_blocks, NULL), OCT_OK);
    for (unsigned k = 1; k < n_blocks; k++) {
        assert_int_equal(oct_volume_queue_take(queue, &block, NULL), OCT_OK);
        memset(block, (int)k, BYTES);
    }
    return queue;
}

/* One file is made while the one before is closed, for hours, as octd uses malloc. */
TEST(memory_goes_back_with_its_queue)
{
    enum { N_FILES = 60, SMALL = 64 << 10 };
    struct scene s;
    void *kept[N_FILES];
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    open_scene(&s);
    struct oct_volume_queue *before = use_queue(&s, 13);
    size_t least = resident_mib(), most = 0;
    for (unsigned i = 0; i < N_FILES; i++) {
        struct oct_volume_queue *next = use_queue(&s, i % 3 ? 13 : 12);
        kept[i] = malloc(SMALL + i * 4096);
        assert_non_null(kept[i]);
        memset(kept[i], 1, SMALL);
        oct_volume_queue_destroy(before);
        before = next;
        most = resident_mib() > most ? resident_mib() : most;
    }
    oct_volume_queue_destroy(before);
    for (unsigned i = 0; i < N_FILES; i++)
        free(kept[i]);
    close_scene(&s);
    if (most > least + TEST_MEMORY_MIB)
        fail_msg("%zu MiB resident, %zu with one file", most, least);
}

int main(void)
{
    disk_calls = (struct disk_calls){.pwrite = write_when_told};
    return test_run();
}
