#include "pipeline/record/results.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NS UINT64_C(1000000000) /* a result has been pending for long */

/* How long a file waits for a source: so many times as long as it took last. */
#define TIMES 4u
#define MOST_NS UINT64_C(600000000000)
#define CUT_NS UINT64_C(250000000) /* for the image of a volume that was cut off */

struct feed {
    const struct oct_image_source *source; /* of the results' */
    struct oct_ring_reader *reader;
    struct oct_image_frame pending; /* its pixels are the feed's own */
    uint64_t pending_since_ns;
    uint64_t next_slot;           /* of the ring */
    struct oct_bscan_info newest; /* of the newest result read, whatever became of it */
    struct oct_record_file due;   /* a file that waits for it; number 0: none */
    uint64_t took_ns;             /* the last one that it dealt with waited so long; 0: none yet */
    atomic_uint_fast64_t written, missed, refused; /* only the recorder's thread adds */
    bool has_pending;
    bool ended;                /* the ring is closed and read */
    bool any, newest_is_whole; /* a result was read; the newest one is whole */
    bool any_written;          /* the newest: */
    uint64_t written_id;
    bool late, told_late, told_refused;
};

struct oct_record_results {
    unsigned n;
    struct feed *feeds;
    struct oct_image_source sources[OCT_VOLUME_MAX_FORMS];
    const struct oct_image_form *forms[OCT_VOLUME_MAX_FORMS]; /* theirs */
};

/* ---- life ---- */

enum oct_err oct_record_results_create(struct oct_record_results **out,
                                       const struct oct_image_source *sources, unsigned n_sources,
                                       struct oct_error *err)
{
    *out = NULL;
    struct oct_record_results *r = calloc(1, sizeof(*r));
    struct feed *feeds = calloc(OCT_VOLUME_MAX_FORMS, sizeof(*feeds));
    if (!r || !feeds) {
        free(r);
        free(feeds);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the recorder");
    }
    r->feeds = feeds;
    for (unsigned i = 0; i < n_sources && i < OCT_VOLUME_MAX_FORMS; i++)
        r->forms[i] = sources[i].form;
    enum oct_err e = oct_volume_forms_check(r->forms, n_sources, err);
    for (unsigned i = 0; i < n_sources && e == OCT_OK; i++) {
        struct feed *feed = &r->feeds[r->n++];
        feed->source = &r->sources[i];
        r->sources[i] = sources[i];
        feed->pending.pixels = malloc(oct_image_form_bytes(sources[i].form));
        feed->reader =
            oct_ring_reader_create(sources[i].ring, false, oct_ring_n_slots(sources[i].ring) / 2);
        feed->next_slot = feed->reader ? oct_ring_next(feed->reader) : 0;
        if (!feed->pending.pixels || !feed->reader)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the results of %s",
                         sources[i].form->name);
    }
    if (e) {
        oct_record_results_destroy(r);
        return e;
    }
    *out = r;
    return OCT_OK;
}

void oct_record_results_destroy(struct oct_record_results *results)
{
    if (!results)
        return;
    for (unsigned i = 0; i < results->n; i++) {
        oct_ring_reader_destroy(results->feeds[i].reader);
        free(results->feeds[i].pending.pixels);
    }
    free(results->feeds);
    free(results);
}

void oct_record_results_describe(const struct oct_record_results *results,
                                 struct oct_volume_about *about)
{
    about->forms = results->forms;
    about->n_forms = results->n;
}

double oct_record_sources_bytes(const struct oct_image_source *sources, unsigned n_sources,
                                uint32_t n_bscans)
{
    double bytes = 0;
    for (unsigned i = 0; i < n_sources; i++)
        bytes += (double)oct_volume_form_bytes(sources[i].form, n_bscans);
    return bytes;
}

double oct_record_results_bytes(const struct oct_record_results *results, uint32_t n_bscans)
{
    return oct_record_sources_bytes(results->sources, results->n, n_bscans);
}

unsigned oct_record_results_n(const struct oct_record_results *results)
{
    return results->n;
}

struct oct_record_result_counts oct_record_results_count(const struct oct_record_results *results,
                                                         unsigned i)
{
    const struct feed *feed = &results->feeds[i];
    struct oct_record_result_counts counts = {
        .written = atomic_load(&feed->written),
        .missed = atomic_load(&feed->missed),
        .refused = atomic_load(&feed->refused),
    };
    memcpy(counts.name, results->forms[i]->name, sizeof(counts.name));
    return counts;
}

/* ---- from the ring ---- */

static void refuse(struct feed *feed, const char *why)
{
    atomic_fetch_add(&feed->refused, 1);
    if (!feed->told_refused)
        oct_log(OCT_LOG_WARNING, "a result of %s is not recorded, nor will others like it be: %s",
                feed->source->form->name, why);
    feed->told_refused = true;
}

/* Results that the ring overwrote before they were read lie between two that were. */
static void count_overwritten(struct feed *feed, uint64_t n, uint64_t id,
                              const struct oct_record_position *at)
{
    bool some_before_end = !feed->any || feed->newest.id + 1 < at->end;
    if (n > 0 && at->first < at->end && id > at->first && some_before_end)
        atomic_fetch_add(&feed->missed, n);
}

/* The frame is lent. False: it can be no result of this source. */
static bool copy(struct feed *feed, const struct oct_image_frame *frame)
{
    const struct oct_image_form *form = feed->source->form;
    void *pixels = feed->pending.pixels;
    if (frame->status != OCT_OK || !oct_volume_result_fits(form, frame))
        return false;
    feed->pending = *frame;
    feed->pending.pixels = pixels;
    feed->pending.values = feed->pending.values_room = NULL;
    memcpy(pixels, frame->pixels, oct_image_form_bytes(form) / form->dims[0] * frame->dims[0]);
    return true;
}

/* Reads the next result into `pending`. False: there is none. */
static bool read_next(struct feed *feed, const struct oct_record_position *at)
{
    uint64_t slot;
    while (!feed->has_pending) {
        enum oct_err e = oct_ring_read(feed->reader, 0, &slot);
        feed->ended |= e == OCT_E_CLOSED;
        if (e)
            return false;
        const struct oct_image_frame *frame = oct_image_held(feed->reader);
        const struct oct_bscan_info info = frame->info;
        const bool whole = frame->whole;
        feed->has_pending = copy(feed, frame);
        oct_ring_release(feed->reader);
        count_overwritten(feed, slot - feed->next_slot, info.id, at);
        feed->next_slot = slot + 1;
        feed->newest = info;
        feed->newest_is_whole = whole;
        feed->any = true;
        feed->late = false;
        feed->pending_since_ns = oct_clock_ns();
        if (!feed->has_pending)
            refuse(feed, "it has another form than its dataset");
    }
    return true;
}

/* ---- into the file ---- */

static bool is_of(const struct oct_bscan_info *info, const struct oct_record_file *file)
{
    return file->writer && info->acquisition == file->acquisition && info->volume == file->volume;
}

/* NULL: none that is not closed. */
static const struct oct_record_file *find_file(const struct oct_bscan_info *info,
                                               const struct oct_record_position *at)
{
    if (info->id >= atomic_load(at->stop_at))
        return NULL;
    if (is_of(info, at->open))
        return at->open;
    for (unsigned i = 0; i < at->n_waiting; i++)
        if (is_of(info, &at->waiting[i]))
            return &at->waiting[i];
    return NULL;
}

/* Its B-scan has not passed the recorder: the file may be opened yet. A B-scan that nobody has seen
 * for a second although none waits will not come. */
static bool is_early(const struct feed *feed, const struct oct_record_position *at)
{
    return feed->pending.info.id >= at->next &&
           !(at->keeps_up && oct_clock_ns() - feed->pending_since_ns > LONG_NS);
}

static enum oct_err write_pending(struct feed *feed, unsigned i, const struct oct_record_file *file,
                                  struct oct_error *err)
{
    struct oct_error why = {0};
    enum oct_err e = oct_volume_write_result(file->writer, i, &feed->pending, &why);
    if (e == OCT_OK) {
        atomic_fetch_add(&feed->written, 1);
        feed->any_written = true;
        feed->written_id = feed->pending.info.id;
    } else if (e == OCT_E_ARG)
        refuse(feed, why.text);
    else if (err)
        *err = why;
    return e == OCT_E_ARG ? OCT_OK : e;
}

static bool has_dealt_with(const struct feed *feed, const struct oct_record_file *file)
{
    const struct oct_image_form *form = feed->source->form;
    const struct oct_bscan_info *newest = &feed->newest;
    if (feed->ended ||
        (feed->source->dealt_below && atomic_load(feed->source->dealt_below) > file->last_slot))
        return true;
    if (!feed->any)
        return false;
    /* A volume's is the last one when it is whole, although it lacks B-scans of the volume. */
    if (form->of_volume)
        return newest->id > file->last_id || (feed->newest_is_whole && is_of(newest, file));
    return newest->id >= file->last_id;
}

static void note_dealt(struct feed *feed)
{
    if (!feed->due.number || !has_dealt_with(feed, &feed->due))
        return;
    feed->took_ns = oct_clock_ns() - feed->due.ended_ns;
    feed->due.number = 0;
    feed->late = false;
}

/* The last image of a volume that was cut off may come once more when the next volume begins. */
static bool is_written(const struct feed *feed)
{
    return feed->source->form->of_volume && feed->any_written &&
           feed->written_id == feed->pending.info.id;
}

static enum oct_err poll_one(struct feed *feed, unsigned i, const struct oct_record_position *at,
                             struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    /* No more than the ring holds: a source that is faster than the disk must not keep the thread.
     */
    for (unsigned n = oct_ring_n_slots(feed->source->ring); n > 0 && e == OCT_OK; n--) {
        if (!feed->has_pending && !read_next(feed, at))
            return OCT_OK;
        const struct oct_bscan_info *info = &feed->pending.info;
        const struct oct_record_file *file = find_file(info, at);
        if (file)
            e = write_pending(feed, i, file, err);
        else if (is_early(feed, at))
            return OCT_OK;
        else if (info->id >= at->first && info->id < at->end && !is_written(feed))
            atomic_fetch_add(&feed->missed, 1);
        feed->has_pending = false;
    }
    return e;
}

enum oct_err oct_record_results_poll(struct oct_record_results *results,
                                     const struct oct_record_position *at, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < results->n && e == OCT_OK; i++) {
        e = poll_one(&results->feeds[i], i, at, err);
        note_dealt(&results->feeds[i]);
    }
    return e;
}

bool oct_record_results_wait_long(const struct oct_record_results *results)
{
    for (unsigned i = 0; i < results->n; i++) {
        const struct feed *feed = &results->feeds[i];
        if (feed->has_pending && oct_clock_ns() - feed->pending_since_ns > LONG_NS)
            return true;
    }
    return false;
}

/* ---- files that wait ---- */

static uint64_t bound_ns(const struct feed *feed, uint64_t least_ns)
{
    const uint64_t bound = feed->took_ns < MOST_NS / TIMES ? TIMES * feed->took_ns : MOST_NS;
    return bound > least_ns ? bound : least_ns;
}

static void give_up(struct feed *feed)
{
    feed->late = true;
    if (!feed->told_late)
        oct_log(OCT_LOG_WARNING, "%s was late: a recording was closed without its last results",
                feed->source->form->name);
    feed->told_late = true;
}

/* Whether the file has to wait for it. */
static bool is_due(struct feed *feed, const struct oct_record_file *file, uint64_t least_ns,
                   uint64_t now_ns)
{
    const uint64_t waited_ns = now_ns - file->ended_ns;
    if (has_dealt_with(feed, file) ||
        (feed->source->form->of_volume && file->is_cut && waited_ns > CUT_NS))
        return false;
    if (!feed->due.number)
        feed->due = *file;
    if (!feed->late && waited_ns > bound_ns(feed, least_ns))
        give_up(feed);
    return !feed->late;
}

bool oct_record_results_await(struct oct_record_results *results,
                              const struct oct_record_file *file, uint64_t least_ns)
{
    const uint64_t now_ns = oct_clock_ns();
    bool any = false;
    for (unsigned i = 0; i < results->n; i++)
        any |= is_due(&results->feeds[i], file, least_ns, now_ns);
    return any;
}
