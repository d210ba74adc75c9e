#include "tools/files/line_store.h"

#include "pipeline/base/thread.h"
#include "tools/alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Slots hold one B-scan each; B-scan k (counted over all loops) lies in slot k % n_slots.
 *
 *     n_used          n_read
 *       |  in memory    |
 *   ----+---------------+------------>  k        n_read <= n_used + n_slots
 */
struct oct_line_store {
    struct oct_recording *recording;
    uint64_t total;
    struct oct_scan scan;        /* of the camera that is played */
    uint32_t n_lines, n_samples; /* that it sends a B-scan; N */
    uint64_t n_slots;
    bool whole, loop;
    uint16_t *samples; /* [n_slots * M][N] */
    uint8_t *valid;    /* [n_slots * M] */
    uint16_t *bounce;  /* [window_lines][N], [window_lines]: a window across the ring's end */
    uint8_t *bounce_valid;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    uint64_t n_read, n_used;
    bool stop;
    enum oct_err status; /* of the reader */
    struct oct_error error;
};

static void turn_lines(const struct oct_line_store *s, struct oct_raw_frame *frame)
{
    const uint32_t n_samples = s->n_samples;
    for (uint32_t j = 0, k = s->scan.n_lines - 1; j < k; j++, k--) {
        uint16_t *a = frame->spectra + (size_t)j * n_samples;
        uint16_t *b = frame->spectra + (size_t)k * n_samples;
        for (uint32_t i = 0; i < n_samples; i++) {
            const uint16_t sample = a[i];
            a[i] = b[i];
            b[i] = sample;
        }
        const uint8_t is_valid = frame->line_valid[j];
        frame->line_valid[j] = frame->line_valid[k];
        frame->line_valid[k] = is_valid;
    }
}

/* What a camera sees while the mirrors return: the sweep once more, backwards and faster. */
static void fly_back(struct oct_line_store *s, uint64_t first)
{
    const uint32_t n = s->scan.n_lines, n_back = s->scan.flyback_lines;
    const uint32_t lag = oct_scan_lag(&s->scan);
    for (uint32_t i = 0; i < n_back; i++) {
        const uint32_t to = (lag + n + i) % s->n_lines;
        const uint32_t from = lag + n - 1 - (uint32_t)((uint64_t)i * n / n_back);
        memcpy(s->samples + (first + to) * s->n_samples, s->samples + (first + from) * s->n_samples,
               s->n_samples * sizeof(uint16_t));
        s->valid[first + to] = s->valid[first + from];
    }
}

/* Whether the k-th B-scan that is sent, in each round anew, comes backwards. */
static bool is_turned(const struct oct_line_store *s, uint64_t k)
{
    return s->scan.n_bscans && oct_scan_is_turned(&s->scan, (uint32_t)(k % s->scan.n_bscans));
}

static enum oct_err read_slot(struct oct_line_store *s, uint64_t k, struct oct_error *err)
{
    const uint64_t first = k % s->n_slots * s->n_lines, aline = first + oct_scan_lag(&s->scan);
    struct oct_raw_frame frame = {.spectra = s->samples + aline * s->n_samples,
                                  .line_valid = s->valid + aline};
    bool valid;
    const enum oct_err e = oct_recording_read(s->recording, k % s->total, &frame, &valid, err);
    if (!e && is_turned(s, k))
        turn_lines(s, &frame);
    if (!e)
        fly_back(s, first);
    return e;
}

static void *read_ahead(void *argument)
{
    struct oct_line_store *s = argument;
    pthread_mutex_lock(&s->lock);
    for (uint64_t k = 0; s->loop || k < s->total; k++) {
        while (!s->stop && k >= s->n_used + s->n_slots)
            pthread_cond_wait(&s->wake, &s->lock);
        if (s->stop)
            break;
        pthread_mutex_unlock(&s->lock);
        struct oct_error err = {0};
        enum oct_err code = read_slot(s, k, &err);
        pthread_mutex_lock(&s->lock);
        s->n_read = code ? k : k + 1;
        s->status = code;
        s->error = err;
        pthread_cond_broadcast(&s->wake);
        if (code)
            break;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static enum oct_err wait_read(struct oct_line_store *s, uint64_t n_bscans, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    pthread_mutex_lock(&s->lock);
    while (s->n_read < n_bscans && s->status == OCT_OK)
        pthread_cond_wait(&s->wake, &s->lock);
    if (s->n_read < n_bscans)
        code = oct_fail(err, s->status, "%s", s->error.text);
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* Returns false when out of memory: the recording is streamed then instead of held whole. */
static bool allocate(struct oct_line_store *s, uint64_t n_slots)
{
    uint64_t n_lines = n_slots * s->n_lines;
    s->n_slots = n_slots;
    s->samples = malloc(n_lines * s->n_samples * sizeof(uint16_t));
    s->valid = malloc(n_lines);
    if (s->samples && s->valid)
        return true;
    free(s->samples);
    free(s->valid);
    s->samples = NULL;
    s->valid = NULL;
    return false;
}

static enum oct_err read_whole(struct oct_line_store *s, struct oct_error *err)
{
    for (uint64_t k = 0; k < s->total; k++) {
        enum oct_err code = read_slot(s, k, err);
        if (code)
            return code;
    }
    return OCT_OK;
}

static enum oct_err start_reader(struct oct_line_store *s, uint32_t window_lines,
                                 uint64_t ahead_bytes, struct oct_error *err)
{
    uint64_t bscan_bytes = (uint64_t)s->n_lines * s->n_samples * sizeof(uint16_t);
    uint64_t least = window_lines / s->n_lines + 2;
    uint64_t most = ahead_bytes / bscan_bytes;
    s->bounce = oct_alloc((size_t)window_lines * s->n_samples, sizeof(uint16_t));
    s->bounce_valid = oct_alloc(window_lines, 1);
    if (!allocate(s, most > least ? most : least))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for reading ahead");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    enum oct_err e = oct_thread_start(&s->thread, NULL, read_ahead, s,
                                      "cannot start a thread for reading ahead", err);
    s->has_thread = e == OCT_OK;
    if (e)
        return e;
    return wait_read(s, s->n_slots < s->total || s->loop ? s->n_slots : s->total, err);
}

enum oct_err oct_line_store_create(struct oct_line_store **store, struct oct_recording *recording,
                                   const struct oct_scan *scan, uint32_t window_lines, bool loop,
                                   uint64_t whole_bytes, uint64_t ahead_bytes,
                                   struct oct_error *err)
{
    *store = NULL;
    struct oct_line_store *s = oct_alloc(1, sizeof(*s));
    s->recording = recording;
    s->total = oct_recording_n_bscans(recording);
    s->scan.n_lines = oct_recording_n_lines(recording);
    s->scan = scan ? *scan : s->scan;
    s->n_lines = oct_scan_sent_lines(&s->scan);
    s->n_samples = oct_recording_n_samples(recording);
    s->loop = loop;
    uint64_t bscan_bytes = (uint64_t)s->n_lines * s->n_samples * sizeof(uint16_t);
    /* In the next round all go the other way? */
    const bool is_alike = s->total % 2 == 0 || !loop || is_turned(s, s->total) == is_turned(s, 0);
    s->whole = is_alike && s->total <= whole_bytes / bscan_bytes && allocate(s, s->total);
    enum oct_err code =
        s->whole ? read_whole(s, err) : start_reader(s, window_lines, ahead_bytes, err);
    if (code)
        oct_line_store_destroy(s);
    else
        *store = s;
    return code;
}

void oct_line_store_destroy(struct oct_line_store *store)
{
    struct oct_line_store *s = store;
    if (!s)
        return;
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->lock);
    }
    free(s->bounce_valid);
    free(s->bounce);
    free(s->valid);
    free(s->samples);
    free(s);
}

enum oct_err oct_line_store_window(struct oct_line_store *store, uint64_t line, uint32_t n_lines,
                                   uint16_t **samples, const uint8_t **valid, struct oct_error *err)
{
    struct oct_line_store *s = store;
    if (!s->whole) {
        pthread_mutex_lock(&s->lock);
        s->n_used = line / s->n_lines;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
        enum oct_err code = wait_read(s, (line + n_lines - 1) / s->n_lines + 1, err);
        if (code)
            return code;
    }
    uint64_t ring_lines = s->n_slots * s->n_lines;
    uint64_t at = line % ring_lines;
    *samples = s->samples + at * s->n_samples;
    *valid = s->valid + at;
    if (at + n_lines <= ring_lines)
        return OCT_OK;
    size_t line_bytes = s->n_samples * sizeof(uint16_t);
    size_t n_before = (size_t)(ring_lines - at), n_after = n_lines - n_before;
    memcpy(s->bounce, *samples, n_before * line_bytes);
    memcpy(s->bounce + n_before * s->n_samples, s->samples, n_after * line_bytes);
    memcpy(s->bounce_valid, *valid, n_before);
    memcpy(s->bounce_valid + n_before, s->valid, n_after);
    *samples = s->bounce;
    *valid = s->bounce_valid;
    return OCT_OK;
}

bool oct_line_store_is_whole(const struct oct_line_store *store)
{
    return store->whole;
}
