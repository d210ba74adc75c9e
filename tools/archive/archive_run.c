/* octctl archive run: empties the queue, one instance at a time. What fails is tried again after
 * 1 s, then after twice as long each time, 5 min at most, for as long as it takes. Where the
 * archive does not even answer C-ECHO it is the archive that is waited for, not the instance. */
#include "pipeline/base/clock.h"
#include "tools/commands.h"
#include "tools/dicom/peer.h"
#include "tools/dicom/queue.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_PAUSE_S 300u
#define IDLE_MS 500
#define TIDY_S 3600

struct sender {
    const struct oct_config *config;
    struct oct_queue queue;
    const volatile sig_atomic_t *cancel;
    unsigned n_away; /* times in a row that the archive was not there */
    time_t away_until;
    bool until_empty;
};

static unsigned pause_s(unsigned n_times)
{
    return n_times > 9 ? MOST_PAUSE_S : 1u << (n_times - 1);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* ---- one instance ---- */

struct asking {
    char uid[66], wanted[65];
    bool is_there;
};

static enum oct_err take_instance(void *context, bool is_whole, struct oct_error *err)
{
    struct asking *a = context;
    (void)is_whole;
    (void)err;
    a->is_there = a->is_there || strcmp(a->uid, a->wanted) == 0;
    return OCT_OK;
}

/* Whether the archive answers a question for this very instance by it. */
static bool is_stored(struct sender *s, const char *uid, const char *study, const char *series)
{
    struct asking a = {.is_there = false};
    char keys[3][100];
    bool is_cut;
    const struct oct_dicom_text answer = {0x00080018, 0, a.uid, sizeof(a.uid)};
    snprintf(a.wanted, sizeof(a.wanted), "%s", uid);
    snprintf(keys[0], sizeof(keys[0]), "0020,000d=%s", study);
    snprintf(keys[1], sizeof(keys[1]), "0020,000e=%s", series);
    snprintf(keys[2], sizeof(keys[2]), "0008,0018=%s", uid);
    const char *const query[] = {"-S",    "-k", "0008,0052=IMAGE", "-k", keys[0], "-k",
                                 keys[1], "-k", keys[2],           NULL};
    return !oct_dicom_find(s->config, OCT_DICOM_ARCHIVE, query, s->queue.folder, &answer, 1,
                           take_instance, &a, &is_cut, s->cancel, NULL) &&
           a.is_there;
}

/* The note first, then the file. On a full disk the file goes first, which makes room. */
static enum oct_err note_arrival(struct sender *s, struct oct_queue_note *note,
                                 struct oct_error *err)
{
    char path[OCT_CONFIG_STRING_BYTES];
    oct_queue_path(&s->queue, note->uid, ".dcm", path);
    snprintf(note->state, sizeof(note->state), "sent");
    note->done = time(NULL);
    note->next = 0;
    note->reason[0] = '\0';
    enum oct_err e = oct_queue_write(&s->queue, note, err);
    unlink(path);
    return e ? oct_queue_write(&s->queue, note, err) : OCT_OK;
}

static enum oct_err note_failure(struct sender *s, struct oct_queue_note *note,
                                 const struct oct_error *why, bool is_away, struct oct_error *err)
{
    note->tries++;
    s->n_away = is_away ? s->n_away + 1 : 0;
    const unsigned wait_s = pause_s(is_away ? s->n_away : note->tries);
    note->next = time(NULL) + (time_t)wait_s;
    s->away_until = is_away ? note->next : 0;
    snprintf(note->reason, sizeof(note->reason), "%.190s", why->text);
    say("%s: %s: again in %u s", note->uid, why->text, wait_s);
    return oct_queue_write(&s->queue, note, err);
}

/* Notes what became of it, unless it was dropped meanwhile. why: NULL: it has arrived. Nobody is
 * asked while the notes are locked: others add to the queue meanwhile. */
static enum oct_err note_end(struct sender *s, const char *uid, const struct oct_error *why,
                             struct oct_error *err)
{
    struct oct_queue_note note;
    const bool is_away =
        why && oct_dicom_echo(s->config, OCT_DICOM_ARCHIVE, s->cancel, NULL) != OCT_OK;
    enum oct_err e = oct_queue_lock(&s->queue, err);
    if (!e && !oct_queue_read(&s->queue, uid, &note, NULL))
        e = why ? note_failure(s, &note, why, is_away, err) : note_arrival(s, &note, err);
    oct_queue_unlock(&s->queue);
    return e;
}

static enum oct_err note_stored(struct sender *s, const char *uid, struct oct_error *err)
{
    struct oct_queue_note note;
    enum oct_err e = oct_queue_lock(&s->queue, err);
    if (!e && !oct_queue_read(&s->queue, uid, &note, NULL)) {
        snprintf(note.state, sizeof(note.state), "stored");
        e = oct_queue_write(&s->queue, &note, err);
    }
    oct_queue_unlock(&s->queue);
    return e;
}

/* Between the archive's answer and the note nothing is done: killed there it is sent once more. */
static enum oct_err send_one(struct sender *s, const char *uid, struct oct_error *err)
{
    const uint64_t began_ns = oct_clock_ns();
    char path[OCT_CONFIG_STRING_BYTES], study[66], series[66];
    struct oct_error why;
    const struct oct_dicom_text own[] = {{0x0020000d, 0, study, sizeof(study)},
                                         {0x0020000e, 0, series, sizeof(series)}};
    oct_queue_path(&s->queue, uid, ".dcm", path);
    enum oct_err e = oct_dicom_texts_read(path, own, 2, NULL, &why);
    e = e ? e : oct_dicom_store(s->config, path, s->cancel, &why);
    if (e == OCT_E_CLOSED || e == OCT_E_CONFIG || e == OCT_E_STATE) /* nobody was asked */
        return oct_fail(err, e, "%s", why.text);
    if (e)
        return note_end(s, uid, &why, err);
    s->n_away = 0;
    s->away_until = 0;
    e = note_end(s, uid, NULL, err);
    if (e)
        return e;
    const bool is_there = is_stored(s, uid, study, series);
    say("%s: %s, %.1f s", uid, is_there ? "stored" : "sent",
        (double)(oct_clock_ns() - began_ns) * 1e-9);
    return is_there ? note_stored(s, uid, err) : OCT_OK;
}

/* ---- all of them ---- */

/* The next that is to be tried now; an arrival whose file is left loses it. *n_waiting: of all. */
static bool choose(struct sender *s, char uid[65], unsigned *n_waiting, struct oct_error *err)
{
    struct oct_queue_note *notes;
    unsigned n;
    bool is_found = false;
    const time_t now = time(NULL);
    *n_waiting = 0;
    if (oct_queue_list(&s->queue, &notes, &n, err))
        return false;
    for (unsigned i = 0; i < n; i++) {
        char path[OCT_CONFIG_STRING_BYTES];
        oct_queue_path(&s->queue, notes[i].uid, ".dcm", path);
        if (notes[i].done && notes[i].bytes)
            unlink(path);
        if (notes[i].done || !notes[i].bytes)
            continue;
        ++*n_waiting;
        /* A clock that was set back must not make it wait for years. */
        const bool is_due = notes[i].next <= now || notes[i].next > now + MOST_PAUSE_S;
        if (is_found || !is_due || (notes[i].next && now < s->away_until))
            continue;
        snprintf(uid, 65, "%s", notes[i].uid);
        is_found = true;
    }
    free(notes);
    return is_found;
}

/* A fault of the disk is said once a pause, which grows as that for the archive does. */
static enum oct_err empty_queue(struct sender *s, struct oct_error *err)
{
    unsigned n_waiting, n_faults = 0;
    time_t tidied = 0;
    char uid[65];
    while (!*s->cancel) {
        if (time(NULL) - tidied > TIDY_S) {
            oct_queue_tidy(&s->queue);
            tidied = time(NULL);
        }
        enum oct_err e = OCT_OK;
        if (choose(s, uid, &n_waiting, err))
            e = send_one(s, uid, err);
        else if (s->until_empty && !n_waiting)
            break;
        else
            poll(NULL, 0, IDLE_MS);
        if (e == OCT_E_CONFIG || e == OCT_E_STATE)
            return e;
        n_faults = e && e != OCT_E_CLOSED ? n_faults + 1 : 0;
        if (!n_faults)
            continue;
        fprintf(stderr, "octctl archive run: %s\n", err->text);
        for (unsigned k = 0; k < 2 * pause_s(n_faults) && !*s->cancel; k++)
            poll(NULL, 0, IDLE_MS);
    }
    return OCT_OK;
}

struct running {
    bool until_empty;
};

static const struct oct_option options[] = {
    {"--until-empty", NULL, "end when nothing waits any more", OCT_OPTION_FLAG,
     .at = offsetof(struct running, until_empty)},
    {NULL},
};

static int run_run(struct oct_config *config, int argc, char **argv)
{
    struct running o = {false};
    struct sender s = {.config = config, .cancel = oct_interrupt_watch()};
    struct oct_error err;
    int sender = -1;
    const int status = oct_options_read(&oct_command_archive_run, &o, &argc, argv);
    if (status)
        return status;
    s.until_empty = o.until_empty;
    umask(0077);
    enum oct_err e =
        config->dicom.archive[0]
            ? OCT_OK
            : oct_fail(&err, OCT_E_CONFIG, "dicom.archive is empty: nothing leaves this machine");
    e = e ? e : oct_queue_open(&s.queue, config, &err);
    e = e ? e : oct_queue_be_sender(&s.queue, &sender, &err);
    e = e ? e : empty_queue(&s, &err);
    if (sender >= 0)
        close(sender);
    return e ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_archive_run = {
    .name = "archive run",
    .usage = "",
    .help = "sends what waits, again until it has arrived; octd-archive@.service runs it",
    .options = options,
    .words = OCT_WORDS_NONE,
    .run = run_run,
};
