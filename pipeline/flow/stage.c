#include "pipeline/flow/stage.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/event.h"
#include "pipeline/base/latest.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_US 100000u
/* The result ring: two readers, one writer, and what may come while the recorder waits for a disk.
 */
#define LEAST_RESULTS 8u
#define MOST_RESULTS 1024u
#define RESULTS_BYTES (16u << 20)
#define GIVE_UP_MS 2000u
#define MORE_VALUES 4u               /* asked for beyond what is under way: none is missed */
#define MOST_TAKES 64u               /* results of one B-scan; more is a fault */
#define SLOW_NS UINT64_C(1000000000) /* one B-scan: worth a line in the log */
#define OWES_NS UINT64_C(1000000000) /* a block that lacks B-scans waits for the next so long */
#define TELL_EVERY_NS UINT64_C(60000000000)

const char *const oct_stage_skip_names[OCT_STAGE_N_SKIPS] = {
    [OCT_STAGE_LATE] = "late",
    [OCT_STAGE_LOST] = "lost",
    [OCT_STAGE_NO_VALUES] = "no_values",
    [OCT_STAGE_FAILED] = "failed",
};

/* Whose the rings that the stage reads, and the pipeline, are. A thread at work touches neither, so
 * it may be left to itself; one that was left does so never again. */
enum state { WAITS, AT_WORK, LEFT };

/* What others want of the thread. The numbers say which of it is new. */
struct wish {
    uint64_t n_configured, n_rests;
    bool rests;
    max_align_t settings[]; /* settings_bytes */
};

/* The group of B-scans that was read last. */
struct group {
    bool any;
    uint32_t acquisition, number; /* of the volume's */
    uint64_t volume;
    bool is_left_out; /* from the B-scan read last on */
};

/* The thread yields to all others, so it shares no lock with any: what others want and what it
 * counts changes hands as a whole (latest.h). By owner, not by size.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct oct_stage {
    struct oct_stage_setup setup;
    struct oct_image_source source; /* setup.in, where that is not NULL */
    struct oct_image_form form, input;
    struct oct_ring *in, *results;
    struct oct_ring_reader *reader; /* NULL once the stage was left to itself */
    struct oct_ring_reader *keepers[OCT_STAGE_MOST_KEPT]; /* of the newest pushed, in turn */
    unsigned n_keepers;
    pthread_t thread;
    bool draining; /* its owner's own, as is this: when it is left to itself */
    uint64_t deadline_ns;

    /* The thread's own. */
    struct oct_image_frame bscan; /* what is pushed of the slot that is held */
    struct wish *wish;            /* as obeyed last */
    bool rests;                   /* it was sent to rest */
    bool is_on_device;            /* its complex values are asked for there */
    bool has_slot;                /* of the results: acquired, not published */
    uint64_t slot;
    bool any; /* a B-scan was pushed since the last reset; the newest: */
    struct oct_bscan_info newest;
    uint64_t pushed_ns;
    bool took_newest;    /* and a result of it was published */
    bool failed;         /* at the newest */
    uint64_t read_below; /* slots that were read */
    uint64_t pushed_below;
    uint64_t n_late; /* that the reader had skipped at the last look */
    struct group group;
    unsigned most_behind; /* at the beginning of a group */
    bool passed;          /* B-scans passed by since the last that was handled */
    uint64_t n_kept;      /* since it began */

    struct oct_stage_counts counts;
    uint64_t told_ns, n_untold; /* faults: the newest in the log, and those since */

    /* Between the thread and others. */
    struct oct_latest counted, wished;
    atomic_int state; /* enum state */
    atomic_bool has_ended;
    struct oct_event changed;           /* state, has_ended */
    atomic_uint_fast64_t busy_since_ns; /* 0: it waits */
    atomic_uint_fast64_t cancelled_ns;  /* when; 0: it was not */
    atomic_uint_fast64_t dealt_below;
    atomic_uint n_holders; /* who joins the thread, and its owner: the last frees it */

    pthread_mutex_t lock; /* of all but the thread; guards what follows, `wished` and `counted` */
    bool is_joined;       /* or left to itself: */
    bool holds_memory;    /* of the ring that it reads */
    struct wish *next_wish;
};

/* ---- faults and counts ---- */

/* Faults come with every B-scan or not at all: the log gets the first, then one a minute. */
static void note_fault(struct oct_stage *s, const struct oct_error *why)
{
    uint64_t now_ns = oct_clock_ns();
    bool tell = s->told_ns == 0 || now_ns - s->told_ns > TELL_EVERY_NS;
    uint64_t n = s->n_untold + 1;
    s->told_ns = tell ? now_ns : s->told_ns;
    s->n_untold = tell ? 0 : n;
    s->counts.failure = *why;
    oct_latest_write(&s->counted, &s->counts);
    if (tell && n > 1)
        oct_log(OCT_LOG_WARNING, "analysis %s: %s (%llu faults since the last such line)",
                s->form.name, why->text, (unsigned long long)n);
    else if (tell)
        oct_log(OCT_LOG_WARNING, "analysis %s: %s", s->form.name, why->text);
}

static void count_skips(struct oct_stage *s, enum oct_stage_skip reason, uint64_t n)
{
    s->counts.seen += n;
    s->counts.skipped[reason] += n;
    s->counts.failing = s->counts.failing || reason == OCT_STAGE_FAILED;
    oct_latest_write(&s->counted, &s->counts);
}

static void count_done(struct oct_stage *s)
{
    s->counts.seen++;
    s->counts.done++;
    s->counts.failing = false;
    oct_latest_write(&s->counted, &s->counts);
}

/* ---- a B-scan comes in ---- */

static bool is_at_rest(const struct oct_stage *s)
{
    return s->rests || (s->setup.ops->is_at_rest && s->setup.ops->is_at_rest(s->setup.analysis));
}

static const char *const lent_names[OCT_N_LENT] = {[OCT_LENT_VALUES] = "float values",
                                                   [OCT_LENT_COMPLEX] = "complex values",
                                                   [OCT_LENT_DEVICE] =
                                                       "complex values of a device"};

static enum oct_lent lent_of(enum oct_stage_input input)
{
    return input == OCT_STAGE_COMPLEX ? OCT_LENT_COMPLEX : OCT_LENT_VALUES;
}

void oct_stage_note_lent(enum oct_stage_input input, bool lends[OCT_N_LENT])
{
    if (input != OCT_STAGE_PICTURES)
        lends[lent_of(input)] = true;
    if (input == OCT_STAGE_COMPLEX)
        lends[OCT_LENT_DEVICE] = true;
}

/* Asks for the next n B-scans on the device, where both are there, and else not. */
static bool ask_device(struct oct_stage *s, unsigned n)
{
    const struct oct_stage_ops *ops = s->setup.ops;
    if (s->setup.input != OCT_STAGE_COMPLEX)
        return false;
    const bool is_there = ops->running && strcmp(ops->running(s->setup.analysis), "cuda") == 0;
    return oct_pipeline_ask(s->setup.pipeline, OCT_LENT_DEVICE, s->setup.asker, is_there ? n : 0) &&
           is_there;
}

/* Enough that the values of every B-scan come while the stage keeps up, and no more. Not while it
 * is at work: the pipeline may be gone. */
static void ask_values(struct oct_stage *s)
{
    unsigned n = 0;
    if (s->setup.input == OCT_STAGE_PICTURES || !s->setup.pipeline)
        return;
    if (!is_at_rest(s))
        n = s->setup.guaranteed
                ? UINT32_MAX
                : oct_pipeline_depth(s->setup.pipeline) + MORE_VALUES + 2 * s->form.bscans_an_image;
    s->is_on_device = ask_device(s, n);
    n = s->is_on_device ? 0 : n;
    if (oct_pipeline_ask(s->setup.pipeline, lent_of(s->setup.input), s->setup.asker, n))
        return;
    struct oct_error err; /* it lends them, or the stage would not have begun */
    oct_fail(&err, OCT_E_NO_MEMORY, "no memory for %s of B-scans: lower pipeline.ring_bscans",
             lent_names[lent_of(s->setup.input)]);
    note_fault(s, &err);
}

/* What the analysis asked for of the slot. False, with the reason: not to be used. */
static bool borrow(struct oct_stage *s, const struct oct_image_frame *frame,
                   enum oct_stage_skip *reason)
{
    const enum oct_stage_input input = s->setup.input;
    const bool is_on_device = s->is_on_device && frame->complex_device;
    const void *from = input == OCT_STAGE_PICTURES ? frame->pixels
                       : input == OCT_STAGE_VALUES ? frame->values
                       : is_on_device              ? frame->complex_device
                                                   : frame->complex_values;
    if (frame->status != OCT_OK || !from) {
        *reason = frame->status != OCT_OK ? OCT_STAGE_LOST : OCT_STAGE_NO_VALUES;
        return false;
    }
    s->bscan = *frame;
    s->bscan.form = &s->input;
    s->bscan.pixels = input == OCT_STAGE_PICTURES ? frame->pixels : NULL;
    s->bscan.values = input == OCT_STAGE_VALUES || s->setup.in ? frame->values : NULL;
    s->bscan.complex_values =
        input == OCT_STAGE_COMPLEX && !is_on_device ? frame->complex_values : NULL;
    s->bscan.complex_device = is_on_device ? frame->complex_device : NULL;
    s->bscan.values_room = s->bscan.complex_room = s->bscan.device_room = NULL;
    return true;
}

/* Live, whether the B-scan's group is left out: of which another was skipped, or that would begin
 * too late. skipped: B-scans right before this one. */
static bool leaves_out(struct oct_stage *s, const struct oct_bscan_info *info, bool skipped)
{
    const uint32_t n = s->form.bscans_an_image;
    struct group *group = &s->group;
    if (n <= 1 || s->setup.guaranteed || s->setup.in)
        return false;
    if (group->any && group->acquisition == info->acquisition && group->volume == info->volume &&
        group->number == info->bscan / n)
        group->is_left_out = group->is_left_out || skipped;
    else
        *group = (struct group){.any = true,
                                .acquisition = info->acquisition,
                                .number = info->bscan / n,
                                .volume = info->volume,
                                .is_left_out = (skipped && info->bscan % n > 0) ||
                                               oct_ring_behind(s->reader) > s->most_behind};
    return group->is_left_out;
}

/* Settings may send the analysis to rest, or wake it. At rest it has no newest result. */
static void note_rest(struct oct_stage *s)
{
    bool at_rest = is_at_rest(s);
    s->counts.at_rest = at_rest;
    s->counts.failing = s->counts.failing && !at_rest;
    for (unsigned i = 0; at_rest && i < OCT_IMAGE_MAX_NUMBERS; i++)
        s->counts.numbers[i] = NAN;
    oct_latest_write(&s->counted, &s->counts);
}

static void obey_rest(struct oct_stage *s, bool rests)
{
    if (rests && !s->rests && s->any) {
        s->setup.ops->reset(s->setup.analysis);
        s->any = false;
    }
    s->rests = rests;
}

/* Returns whether there was any; the caller asks for values anew once it is not at work. */
static bool obey_wish(struct oct_stage *s)
{
    struct oct_error err;
    const uint64_t n_configured = s->wish->n_configured, n_rests = s->wish->n_rests;
    if (!oct_latest_read(&s->wished, s->wish))
        return false;
    if (s->wish->n_configured != n_configured && s->setup.ops->configure &&
        s->setup.ops->configure(s->setup.analysis, s->wish->settings, &err))
        note_fault(s, &err);
    if (s->wish->n_rests != n_rests)
        obey_rest(s, s->wish->rests);
    note_rest(s);
    return true;
}

/* ---- its results go out ---- */

static bool is_left(struct oct_stage *s)
{
    return atomic_load(&s->state) == LEFT;
}

static bool is_cancelled(struct oct_stage *s)
{
    return atomic_load(&s->cancelled_ns) != 0;
}

/* Offline a reader may hold the ring for as long as it needs. */
static enum oct_err acquire_slot(struct oct_stage *s)
{
    while (!s->has_slot) {
        enum oct_err e = oct_ring_acquire(s->results, POLL_US, &s->slot);
        if (e == OCT_E_CLOSED || is_left(s))
            return OCT_E_CLOSED;
        s->has_slot = e == OCT_OK;
    }
    return OCT_OK;
}

static enum oct_err check_result(const struct oct_stage *s, const struct oct_image_frame *result,
                                 struct oct_error *err)
{
    const struct oct_image_form *form = &s->form;
    for (unsigned i = 0; i < form->rank; i++)
        if (i == 0 ? result->dims[i] > form->dims[i] : result->dims[i] != form->dims[i])
            return oct_fail(err, OCT_E_ARG,
                            "it returned an image of nonsense size: axis '%s' has %u, its form %u",
                            form->axes[i], result->dims[i], form->dims[i]);
    if (!isfinite(result->lo) || !isfinite(result->hi))
        return oct_fail(err, OCT_E_ARG, "it returned limits that are no numbers");
    /* An image of a block or a volume may name any B-scan of it that has come. */
    const struct oct_bscan_info *of = &result->info, *newest = &s->newest;
    if (of->acquisition != newest->acquisition)
        return oct_fail(err, OCT_E_ARG,
                        "it returned an image of acquisition %u after a B-scan of %u",
                        of->acquisition, newest->acquisition);
    if (of->number > newest->number)
        return oct_fail(err, OCT_E_ARG,
                        "it returned an image of B-scan %llu, which has not come yet: the newest "
                        "is %llu",
                        (unsigned long long)of->number, (unsigned long long)newest->number);
    return OCT_OK;
}

/* OCT_E_AGAIN: there is no further result. */
static enum oct_err publish_one(struct oct_stage *s, struct oct_error *err)
{
    enum oct_err e = acquire_slot(s);
    if (e)
        return oct_fail(err, e, "the results are closed");
    struct oct_image_frame *result = oct_image_slot_begin(s->results, s->slot, &s->form, NULL);
    void *pixels = result->pixels;
    result->info = s->newest;
    result->lo = 0;
    result->hi = 1;
    for (unsigned i = 0; i < OCT_IMAGE_MAX_NUMBERS; i++)
        result->numbers[i] = NAN;
    e = s->setup.ops->take(s->setup.analysis, result, err);
    result->pixels = pixels; /* and the form is ours, whatever it did with them */
    result->form = &s->form;
    if (!e)
        e = check_result(s, result, err);
    if (e)
        return e;
    s->has_slot = false;
    s->took_newest = s->took_newest || result->info.number == s->newest.number;
    s->counts.results++; /* before a reader can count it: none has more than there are */
    memcpy(s->counts.numbers, result->numbers, sizeof(s->counts.numbers));
    oct_latest_write(&s->counted, &s->counts);
    oct_ring_publish(s->results);
    return OCT_OK;
}

static enum oct_err publish_all(struct oct_stage *s, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned n = 0; n < MOST_TAKES && !e; n++)
        e = publish_one(s, err);
    if (e == OCT_E_AGAIN)
        return OCT_OK;
    return e ? e : oct_fail(err, OCT_E_ARG, "it returns results without end");
}

/* ---- the thread ---- */

static void begin_work(struct oct_stage *s)
{
    atomic_store(&s->busy_since_ns, oct_clock_ns());
    atomic_store(&s->state, AT_WORK);
}

/* False: it was left to itself meanwhile. */
static bool end_work(struct oct_stage *s)
{
    int state = AT_WORK;
    const bool is_ours = atomic_compare_exchange_strong(&s->state, &state, WAITS);
    if (is_ours)
        atomic_store(&s->busy_since_ns, 0);
    oct_event_notify(&s->changed);
    return is_ours;
}

/* What the analysis still has of the acquisition before. */
static void end_acquisition(struct oct_stage *s)
{
    struct oct_error err;
    if (s->any && s->setup.ops->end) {
        s->setup.ops->end(s->setup.analysis);
        if (!is_left(s) && publish_all(s, &err))
            note_fault(s, &err);
    }
    s->any = false;
}

static enum oct_err push(struct oct_stage *s, struct oct_error *err)
{
    const struct oct_stage_ops *ops = s->setup.ops;
    if (s->any && s->newest.acquisition != s->bscan.info.acquisition) {
        end_acquisition(s);
        ops->reset(s->setup.analysis);
    }
    s->any = true;
    s->pushed_below = s->read_below;
    s->newest = s->bscan.info;
    s->pushed_ns = oct_clock_ns();
    s->took_newest = false;
    enum oct_err e = ops->push(s->setup.analysis, &s->bscan, err);
    return e || is_left(s) ? e : publish_all(s, err);
}

static void work_on_images(struct oct_stage *s)
{
    struct oct_error err;
    uint64_t begun_ns = oct_clock_ns();
    enum oct_err e = push(s, &err);
    uint64_t took_ns = oct_clock_ns() - begun_ns;
    s->failed = e != OCT_OK;
    s->counts.work_ns += took_ns;
    if (e == OCT_OK)
        count_done(s);
    else
        count_skips(s, OCT_STAGE_FAILED, 1);
    if (e && e != OCT_E_CLOSED) {
        note_fault(s, &err);
    } else if (!s->setup.guaranteed && took_ns > SLOW_NS) {
        oct_fail(&err, OCT_E_AGAIN,
                 "it took %.1f s for one B-scan; it skips those that come meanwhile",
                 (double)took_ns * 1e-9);
        note_fault(s, &err);
    }
}

/* Of a block of B-scans of which more may come. Its B-scans take no more slots than they count. */
static bool is_within_block(const struct oct_stage *s)
{
    const uint32_t n = s->form.bscans_an_image;
    return n > 1 && s->any && !s->setup.in && s->newest.bscan % n + 1 < n;
}

/* Slots of the image ring below this are dealt with as far as what was read tells. Another stage
 * publishes a result before it has dealt with its B-scans. */
static uint64_t find_dealt(const struct oct_stage *s)
{
    if (!s->setup.in)
        return s->read_below;
    const uint64_t below = s->source.dealt_below ? atomic_load(s->source.dealt_below) : 0;
    return oct_ring_behind(s->reader) == 0 ? below : 0;
}

static void raise_dealt(struct oct_stage *s, uint64_t below)
{
    if (below > atomic_load(&s->dealt_below))
        atomic_store(&s->dealt_below, below);
}

/* An image of a volume or of a block that has not taken up the newest B-scan yet is still owed: it
 * comes when nothing has come for a while, of a block also when the next begins. One that fails may
 * never come, and nobody waits for it. */
static void note_dealt(struct oct_stage *s)
{
    if (s->took_newest || s->failed || !(s->form.of_volume || is_within_block(s))) {
        raise_dealt(s, find_dealt(s));
    } else if (!s->form.of_volume) {
        const uint64_t n_of_block = s->newest.bscan % s->form.bscans_an_image + 1;
        raise_dealt(s, s->pushed_below > n_of_block ? s->pushed_below - n_of_block : 0);
    }
}

/* Obeys what others want while there is nothing to do. False: it was left to itself meanwhile. */
static bool wake_up(struct oct_stage *s)
{
    begin_work(s);
    const bool changed = obey_wish(s);
    if (!end_work(s))
        return false;
    if (changed)
        ask_values(s);
    return true;
}

/* A B-scan that comes while there is nothing to do, or after cancel, is not the stage's. */
static void pass_by(struct oct_stage *s, uint64_t slot)
{
    s->n_late = oct_ring_skipped(s->reader);
    oct_ring_release(s->reader);
    s->read_below = slot + 1;
    s->passed = true;
    if (!is_cancelled(s) && !wake_up(s))
        return;
    raise_dealt(s, find_dealt(s));
}

/* The slot that was read stays held after it is released, in place of the oldest that was kept. */
static void keep_slot(struct oct_stage *s)
{
    if (s->n_keepers == 0)
        return;
    struct oct_ring_reader *keeper = s->keepers[s->n_kept++ % s->n_keepers];
    oct_ring_release(keeper);
    oct_ring_keep(s->reader, keeper);
}

static void handle(struct oct_stage *s, uint64_t slot)
{
    enum oct_stage_skip reason = OCT_STAGE_LOST;
    /* Another stage's results come of what was wanted of both at once. */
    if (s->setup.in && is_at_rest(s) && !is_cancelled(s) && !wake_up(s))
        return;
    if (is_at_rest(s) || is_cancelled(s)) {
        pass_by(s, slot);
        return;
    }
    const struct oct_image_frame *held = oct_image_held(s->reader);
    uint64_t n_late = oct_ring_skipped(s->reader);
    const bool skipped = n_late != s->n_late;
    if (skipped)
        count_skips(s, OCT_STAGE_LATE, n_late - s->n_late);
    s->n_late = n_late;
    bool good = !leaves_out(s, &held->info, skipped || s->passed);
    s->passed = false;
    if (!good)
        reason = OCT_STAGE_LATE;
    else
        good = borrow(s, held, &reason);
    s->group.is_left_out = s->group.is_left_out || reason == OCT_STAGE_NO_VALUES;
    s->read_below = slot + 1;
    ask_values(s);
    if (!good) {
        oct_ring_release(s->reader);
        count_skips(s, reason, 1);
        note_dealt(s);
        return;
    }
    keep_slot(s);
    begin_work(s);
    const bool changed = obey_wish(s);
    if (!is_at_rest(s))
        work_on_images(s);
    if (!end_work(s))
        return;
    oct_ring_release(s->reader);
    if (changed || s->bscan.complex_device) /* the analysis may have gone over to the CPU */
        ask_values(s);
    note_dealt(s);
}

/* Nothing has come for a while: what the analysis owes is published. */
static void look_again(struct oct_stage *s)
{
    struct oct_error err;
    begin_work(s);
    const bool changed = obey_wish(s);
    if (s->any && (changed || !s->took_newest) && publish_all(s, &err))
        note_fault(s, &err);
    if (!end_work(s))
        return;
    if (changed)
        ask_values(s);
    const bool owes = s->any && !s->took_newest && !s->failed && is_within_block(s);
    if (!owes || oct_clock_ns() - s->pushed_ns > OWES_NS)
        raise_dealt(s, find_dealt(s));
}

static void free_stage(struct oct_stage *s)
{
    s->setup.ops->destroy(s->setup.analysis);
    oct_ring_destroy(s->results);
    oct_latest_finish(&s->counted);
    oct_latest_finish(&s->wished);
    pthread_mutex_destroy(&s->lock);
    if (s->holds_memory)
        oct_ring_destroy(s->in);
    free(s->wish);
    free(s->next_wish);
    free(s);
}

static void let_go(struct oct_stage *s)
{
    if (atomic_fetch_sub(&s->n_holders, 1) == 1)
        free_stage(s);
}

/* Joins a thread that was left to itself. It does not free the stage itself: what that takes locks
 * of, FFTW's planner and libraries' own, threads that do not yield wait for. */
static void *join_and_let_go(void *argument)
{
    struct oct_stage *s = argument;
    pthread_join(s->thread, NULL);
    let_go(s);
    return NULL;
}

static void *run_stage(void *argument)
{
    struct oct_stage *s = argument;
    uint64_t slot;
    if (!s->setup.guaranteed)
        oct_thread_yield_to_others();
    while (!is_left(s)) {
        enum oct_err e = oct_ring_read(s->reader, POLL_US, &slot);
        if (e == OCT_E_CLOSED)
            break;
        if (e == OCT_OK)
            handle(s, slot);
        else if (!s->setup.guaranteed)
            look_again(s);
    }
    if (!is_left(s) && !is_cancelled(s)) {
        begin_work(s);
        end_acquisition(s);
        end_work(s);
    }
    raise_dealt(s, s->setup.in ? UINT64_MAX : s->read_below);
    oct_ring_close(s->results);
    atomic_store(&s->has_ended, true);
    oct_event_notify(&s->changed);
    return NULL;
}

/* ---- from outside ---- */

static unsigned count_results(const struct oct_image_form *form)
{
    size_t n = RESULTS_BYTES / oct_image_slot_bytes_of(form, NULL);
    return n < LEAST_RESULTS ? LEAST_RESULTS : n < MOST_RESULTS ? (unsigned)n : MOST_RESULTS;
}

static enum oct_err alloc_stage(struct oct_stage *s, struct oct_error *err)
{
    const struct oct_stage_setup *setup = &s->setup;
    s->in = setup->in ? setup->in->ring : oct_pipeline_images(setup->pipeline);
    const size_t wish_bytes = sizeof(struct wish) + setup->settings_bytes;
    s->wish = calloc(1, wish_bytes);
    s->next_wish = calloc(1, wish_bytes);
    if (!s->wish || !s->next_wish || !oct_latest_init(&s->wished, wish_bytes) ||
        !oct_latest_init(&s->counted, sizeof(s->counts)))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the analysis %s", s->form.name);
    enum oct_err e = oct_ring_create(&s->results, count_results(&s->form),
                                     oct_image_slot_bytes_of(&s->form, NULL), NULL, NULL, err);
    if (e)
        return e;
    const unsigned half = oct_ring_n_slots(s->in) / 2, most = setup->most_behind;
    s->most_behind = most && most < half / 2 ? most : half / 2;
    s->reader = oct_ring_reader_create(s->in, setup->guaranteed,
                                       most && s->form.bscans_an_image <= 1 ? most : half);
    bool is_whole = s->reader != NULL;
    assert(setup->keeps <= OCT_STAGE_MOST_KEPT && !(setup->keeps && setup->guaranteed));
    for (; is_whole && s->n_keepers < setup->keeps; s->n_keepers += is_whole) {
        s->keepers[s->n_keepers] = oct_ring_reader_create(s->in, false, half);
        is_whole = s->keepers[s->n_keepers] != NULL;
    }
    return is_whole ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for readers");
}

static void destroy_readers(struct oct_stage *s)
{
    while (s->n_keepers > 0)
        oct_ring_reader_destroy(s->keepers[--s->n_keepers]);
    oct_ring_reader_destroy(s->reader); /* NOLINT(clang-analyzer-unix.Malloc): it is still held */
    s->reader = NULL;
}

/* What is pushed: the pipeline's pictures, their values, or another stage's results. */
static enum oct_err find_input(struct oct_stage *s, struct oct_error *err)
{
    const struct oct_stage_setup *setup = &s->setup;
    s->input = setup->in ? *setup->in->form : *oct_pipeline_form(setup->pipeline);
    if (setup->input == OCT_STAGE_PICTURES)
        return OCT_OK;
    const enum oct_lent what = lent_of(setup->input);
    s->input.type = OCT_SAMPLE_F32;
    if (setup->in || !oct_pipeline_ask(setup->pipeline, what, setup->asker, 0))
        return oct_fail(err, OCT_E_STATE, "analysis %s wants %s, which are not lent here",
                        s->form.name, lent_names[what]);
    return OCT_OK;
}

static enum oct_err start_thread(struct oct_stage *s, struct oct_error *err)
{
    char name[16], what[64];
    snprintf(name, sizeof(name), "octd-%.10s", s->form.name);
    snprintf(what, sizeof(what), "thread of the analysis %s", s->form.name);
    note_rest(s);
    ask_values(s); /* a B-scan may be computed before the thread runs */
    atomic_store(&s->n_holders, 2);
    enum oct_err e = oct_thread_start(&s->thread, name, run_stage, s, what, err);
    if (e && s->setup.input != OCT_STAGE_PICTURES) {
        oct_pipeline_ask(s->setup.pipeline, lent_of(s->setup.input), s->setup.asker, 0);
        oct_pipeline_ask(s->setup.pipeline, OCT_LENT_DEVICE, s->setup.asker, 0);
    }
    return e;
}

enum oct_err oct_stage_create(struct oct_stage **out, const struct oct_stage_setup *setup,
                              struct oct_error *err)
{
    *out = NULL;
    struct oct_stage *s = calloc(1, sizeof(*s));
    if (!s) {
        setup->ops->destroy(setup->analysis);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for an analysis");
    }
    pthread_mutex_init(&s->lock, NULL);
    s->setup = *setup;
    if (setup->in) {
        s->source = *setup->in;
        s->setup.in = &s->source;
    }
    s->form = *setup->form;
    s->rests = setup->rests;
    for (unsigned i = 0; i < OCT_IMAGE_MAX_NUMBERS; i++)
        s->counts.numbers[i] = NAN;
    if (s->setup.give_up_ms == 0)
        s->setup.give_up_ms = GIVE_UP_MS;
    enum oct_err e = oct_image_form_check(&s->form, err);
    if (!e)
        e = find_input(s, err);
    if (!e)
        e = alloc_stage(s, err);
    if (!e)
        e = start_thread(s, err);
    if (e) {
        destroy_readers(s);
        free_stage(s);
        return e;
    }
    *out = s;
    return OCT_OK;
}

void oct_stage_configure(struct oct_stage *s, const void *settings)
{
    if (!s->setup.settings_bytes)
        return;
    pthread_mutex_lock(&s->lock);
    memcpy(s->next_wish->settings, settings, s->setup.settings_bytes);
    s->next_wish->n_configured++;
    oct_latest_write(&s->wished, s->next_wish);
    pthread_mutex_unlock(&s->lock);
}

void oct_stage_rest(struct oct_stage *s, bool rests)
{
    pthread_mutex_lock(&s->lock);
    s->next_wish->rests = rests;
    s->next_wish->n_rests++;
    oct_latest_write(&s->wished, s->next_wish);
    pthread_mutex_unlock(&s->lock);
}

const char *oct_stage_name(const struct oct_stage *s)
{
    return s->form.name;
}

struct oct_image_source oct_stage_results(const struct oct_stage *s)
{
    return (struct oct_image_source){
        .form = &s->form, .ring = s->results, .dealt_below = &s->dealt_below};
}

void oct_stage_count(struct oct_stage *s, struct oct_stage_counts *counts)
{
    const struct oct_stage_ops *ops = s->setup.ops;
    const uint64_t since_ns = atomic_load(&s->busy_since_ns);
    pthread_mutex_lock(&s->lock);
    oct_latest_read(&s->counted, counts);
    pthread_mutex_unlock(&s->lock);
    counts->busy_ns = since_ns ? oct_clock_ns() - since_ns : 0;
    snprintf(counts->running, sizeof(counts->running), "%s",
             ops->running ? ops->running(s->setup.analysis) : "cpu");
}

/* The analysis does not return: its thread keeps what it may still use, and nobody else waits. It
 * touches the ring that it read no more. False: it has returned after all. Lock held. */
static bool leave(struct oct_stage *s)
{
    const uint64_t since_ns = atomic_load(&s->busy_since_ns);
    int state = AT_WORK;
    if (s->is_joined || !atomic_compare_exchange_strong(&s->state, &state, LEFT))
        return false;
    oct_log(OCT_LOG_WARNING,
            "analysis %s has been at work at one B-scan for %.1f s: it is left to itself",
            s->form.name, (double)(oct_clock_ns() - since_ns) * 1e-9);
    oct_ring_hold(s->in); /* it may still read the slots that it holds */
    s->holds_memory = true;
    destroy_readers(s);
    if (oct_thread_start_detached(NULL, join_and_let_go, s, "thread that frees an analysis", NULL))
        pthread_detach(s->thread); /* and it stays in memory */
    s->is_joined = true;
    oct_ring_close(s->results);
    oct_event_notify(&s->changed);
    return true;
}

void oct_stage_begin_drain(struct oct_stage *s)
{
    if (!s->draining)
        s->deadline_ns = oct_clock_ns() + (uint64_t)s->setup.give_up_ms * 1000000;
    s->draining = true;
}

void oct_stage_cancel(struct oct_stage *s)
{
    uint64_t now_ns = oct_clock_ns(), cancelled_ns = 0;
    if (atomic_compare_exchange_strong(&s->cancelled_ns, &cancelled_ns, now_ns))
        cancelled_ns = now_ns;
    if (now_ns - cancelled_ns < (uint64_t)s->setup.give_up_ms * 1000000)
        return;
    pthread_mutex_lock(&s->lock);
    leave(s);
    pthread_mutex_unlock(&s->lock);
}

/* The thread has ended or was left to itself. Lock not held. */
static void wait_for_end(struct oct_stage *s)
{
    for (bool in_time = true; !atomic_load(&s->has_ended) && !is_left(s);) {
        const struct timespec soon = oct_clock_deadline(POLL_US);
        const bool is_bounded = !s->setup.guaranteed && atomic_load(&s->state) == AT_WORK;
        if (is_bounded && !in_time) {
            pthread_mutex_lock(&s->lock);
            leave(s);
            pthread_mutex_unlock(&s->lock);
        }
        unsigned n = oct_event_prepare(&s->changed);
        if (!atomic_load(&s->has_ended) && !is_left(s))
            oct_event_wait_until(&s->changed, n, &soon);
        oct_event_end(&s->changed);
        in_time = oct_clock_ns() < s->deadline_ns;
    }
}

bool oct_stage_drain(struct oct_stage *s)
{
    oct_stage_begin_drain(s);
    wait_for_end(s);
    pthread_mutex_lock(&s->lock);
    const bool join = !s->is_joined;
    s->is_joined = true;
    pthread_mutex_unlock(&s->lock);
    const bool is_whole = !is_left(s);
    if (join)
        join_and_let_go(s);
    return is_whole;
}

void oct_stage_destroy(struct oct_stage *s)
{
    if (!s)
        return;
    oct_stage_drain(s);
    destroy_readers(s);
    let_go(s);
}
