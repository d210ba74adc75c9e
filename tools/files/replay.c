/* replay: plays a recording into a daemon as a camera would.
 *
 * The schedule is absolute: a block of lines p .. q - 1 leaves when a camera would have exposed
 * them all, at start + q / rate, so no error adds up. Lines that the recording lacks become gaps
 * in the numbering, as with a camera that lost them. */
#include "config/apply.h"
#include "formats/recording.h"
#include "formats/recording_plan.h"
#include "numeric/samples.h"
#include "octd/client.h"
#include "pipeline/base/clock.h"
#include "pipeline/net/curve.h"
#include "tools/commands.h"
#include "tools/files/followed.h"
#include "tools/files/line_store.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHOLE_BYTES (UINT64_C(512) << 20) /* recordings up to this are read before the start */
#define AHEAD_BYTES (UINT64_C(256) << 20) /* of larger ones this much is kept ahead */
#define SLICE_MS 100u                     /* every wait looks for a signal this often */
#define SILENT_NS UINT64_C(2000000000)    /* a daemon that takes no block for so long is told of */
#define STUCK_NS UINT64_C(10000000000)    /* and after this it is gone */
#define LINGER_MS 10000u
#define SECOND_NS UINT64_C(1000000000)
#define RATE_NEEDS "lines per second, 1 to 1e9, or 0"
#define LEAST_LATE_NS UINT64_C(10000000) /* 1 % of a second, the precision that is promised */

struct replay_options {
    const char *path, *endpoint;
    struct oct_curve_files keys;
    double rate;         /* lines per second; 0: as fast as it goes */
    double wait_s;       /* for the daemon */
    uint64_t block;      /* lines a message; 0: one B-scan */
    const char *as;      /* name of a sample format */
    const char *publish; /* octd's publish.endpoint */
    bool loop, strict, json, follows;
};

static const struct oct_option options_table[] = {
    {"--rate", "R", "A-lines a second (scan.line_rate_hz); 0: as fast as it goes",
     OCT_OPTION_NUMBER, .at = offsetof(struct replay_options, rate), .least = 0, .most = 1e9,
     .needs = RATE_NEEDS},
    {"--loop", NULL, "start again at the end, until interrupted", OCT_OPTION_FLAG,
     .at = offsetof(struct replay_options, loop)},
    {"--block", "LINES", "A-lines a message (one B-scan)", OCT_OPTION_COUNT,
     .at = offsetof(struct replay_options, block), .least = 1, .most = 0x1p64},
    {"--as", "FORMAT", "send samples as u16, u8 or mono12p (12 bits packed) (u16)", OCT_OPTION_TEXT,
     .at = offsetof(struct replay_options, as), .words = "u16 u8 mono12p"},
    {"--to", "ENDPOINT", "where the daemon takes lines (ingest.endpoint)", OCT_OPTION_TEXT,
     .at = offsetof(struct replay_options, endpoint)},
    {"--wait", "S", "wait at most S seconds for the daemon", OCT_OPTION_NUMBER,
     .at = offsetof(struct replay_options, wait_s), .least = 0, .most = 1e9, .standard = "10"},
    {"--follow", NULL,
     "the mirrors do what octd asks: a recorded raster scanned as octd's scan says",
     OCT_OPTION_FLAG, .at = offsetof(struct replay_options, follows)},
    {"--from", "ENDPOINT", "where octd announces its scan, of --follow (publish.endpoint)",
     OCT_OPTION_TEXT, .at = offsetof(struct replay_options, publish)},
    {"--strict", NULL, "exit status 1 if the rate could not be kept", OCT_OPTION_FLAG,
     .at = offsetof(struct replay_options, strict)},
    {"--json", NULL, "print the summary as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct replay_options, json)},
    {NULL},
};

struct replay {
    const struct replay_options *options;
    struct oct_client *client;
    struct oct_line_store *store;
    uint32_t bscan_lines;   /* sent of a B-scan */
    uint64_t n_lines_total; /* sent of the recording */
    uint32_t n_samples;
    uint16_t format;     /* enum oct_lines_format */
    unsigned char *room; /* a block of lines in a format other than u16; else NULL */
    uint32_t block;
    uint64_t start_ns;
    bool late, ended, interrupted, stuck;
    bool silent; /* the daemon was, for SILENT_NS, and what it held up is late */
    bool worst_by_silence;
    uint64_t n_late, worst_ns;
    double elapsed_s;
    struct oct_client_counters counters; /* at the end */
    struct oct_followed_scan followed;   /* of --follow, as the rest */
    struct oct_scanned_eye eye;
    uint16_t *lines; /* [block][N] */
    uint64_t line;   /* of the acquisition, the next */
    bool runs;       /* an acquisition is under way */
};

/* ---- signals: they stay blocked and are polled, without a handler or a global ---- */

static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* True once for each SIGINT or SIGTERM. */
static bool take_signal(void)
{
    const struct timespec at_once = {0};
    sigset_t set;
    stop_signals(&set);
    return sigtimedwait(&set, NULL, &at_once) > 0;
}

/* ---- the pace ---- */

/* Returns when the first n lines are due. Whole seconds and the rest are added apart, which stays
 * exact for days. */
static uint64_t due_ns(const struct replay *r, uint64_t n_lines)
{
    double seconds = (double)n_lines / r->options->rate;
    double whole = floor(seconds);
    return r->start_ns + (uint64_t)whole * SECOND_NS + (uint64_t)((seconds - whole) * 1e9);
}

static void sleep_until(struct replay *r, uint64_t until_ns)
{
    uint64_t now;
    while (!r->interrupted && (now = oct_clock_ns()) < until_ns) {
        uint64_t slice_end = now + SLICE_MS * UINT64_C(1000000);
        uint64_t to = until_ns < slice_end ? until_ns : slice_end;
        const struct timespec at = {.tv_sec = (time_t)(to / SECOND_NS),
                                    .tv_nsec = (long)(to % SECOND_NS)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        r->interrupted = take_signal();
    }
}

static const char *why_late(bool silent)
{
    return silent ? "octd took no lines" : "the receiver or this machine is too slow";
}

static void note_lateness(struct replay *r, uint64_t due)
{
    uint64_t now = oct_clock_ns();
    uint64_t behind = now > due ? now - due : 0;
    uint64_t period = (uint64_t)(r->block * 1e9 / r->options->rate);
    bool late = behind > (period > LEAST_LATE_NS ? period : LEAST_LATE_NS);
    if (late && r->n_late == 0)
        fprintf(stderr, "octctl replay: behind schedule by %.3f s: %s\n", (double)behind / 1e9,
                why_late(r->silent));
    if (late && !r->late)
        r->n_late++;
    if (late && behind > r->worst_ns) {
        r->worst_ns = behind;
        r->worst_by_silence = r->silent;
    }
    r->silent = r->silent && late; /* until what the silence held up has been caught up with */
    r->late = late;
}

/* ---- sending ---- */

static enum oct_err connect_client(struct replay *r, struct oct_error *err)
{
    const struct replay_options *o = r->options;
    const struct oct_client_options client_options = {.linger_ms = LINGER_MS,
                                                      .wait_ms = SLICE_MS,
                                                      .client_key = o->keys.client_key,
                                                      .server_public = o->keys.server_public,
                                                      .format = (enum oct_client_format)r->format};
    char why[OCT_ERROR_TEXT_BYTES / 2];
    if (oct_client_connect(&r->client, o->endpoint, r->n_samples, &client_options, why,
                           sizeof(why)))
        return oct_fail(err, OCT_E_CONFIG, "ingest.endpoint: %s", why);
    uint64_t end_ns = oct_clock_ns() + (uint64_t)(o->wait_s * 1e9);
    while (oct_client_wait_connected(r->client, SLICE_MS) != OCT_CLIENT_OK) {
        r->interrupted = r->interrupted || take_signal();
        if (r->interrupted)
            return oct_fail(err, OCT_E_CLOSED, "interrupted before a daemon was there");
        if (oct_clock_ns() >= end_ns)
            return oct_fail(err, OCT_E_IO,
                            "no daemon takes lines at %s after %g s (is octd running? --to "
                            "ENDPOINT or --set ingest.endpoint=...)",
                            o->endpoint, o->wait_s);
    }
    return OCT_OK;
}

/* *lines: as they are sent. */
static enum oct_err pack_run(struct replay *r, void **lines, uint32_t n_lines,
                             struct oct_error *err)
{
    if (!r->room)
        return OCT_OK;
    const size_t n_beyond =
        oct_samples_pack(r->room, *lines, (size_t)n_lines * r->n_samples, r->format);
    *lines = r->room;
    return n_beyond == 0 ? OCT_OK
                         : oct_fail(err, OCT_E_FORMAT,
                                    "--as %s: %zu samples of %u lines are beyond its %u bits",
                                    oct_samples_name(r->format), n_beyond, n_lines,
                                    oct_samples_bits(r->format));
}

/* Sends a run of lines of which none is missing. */
static enum oct_err send_run(struct replay *r, void *lines, uint32_t n_lines, uint64_t time_ns,
                             struct oct_error *err)
{
    uint64_t since_ns = oct_clock_ns();
    const enum oct_err e = pack_run(r, &lines, n_lines, err);
    if (e)
        return e;
    for (;;) {
        enum oct_client_result result =
            r->store && oct_line_store_is_whole(r->store) && !r->room
                ? oct_client_send_owned(r->client, lines, n_lines, time_ns, NULL, NULL)
                : oct_client_send(r->client, lines, n_lines, time_ns);
        if (result == OCT_CLIENT_OK)
            return OCT_OK;
        r->interrupted = r->interrupted || take_signal();
        if (result == OCT_CLIENT_DROPPED && r->interrupted)
            return OCT_OK; /* the client dropped the rest of a huge block */
        if (result != OCT_CLIENT_TIMEOUT && result != OCT_CLIENT_INTERRUPTED)
            return oct_fail(err, OCT_E_IO, "%s: %s", r->options->endpoint,
                            oct_client_error(r->client));
        if (r->interrupted)
            return OCT_OK;
        const uint64_t waited_ns = oct_clock_ns() - since_ns;
        if (!r->silent && waited_ns > SILENT_NS)
            fprintf(stderr, "octctl replay: octd takes no lines at %s\n", r->options->endpoint);
        r->silent = r->silent || waited_ns > SILENT_NS;
        r->stuck = waited_ns > STUCK_NS;
        if (r->stuck)
            return oct_fail(err, OCT_E_IO, "the daemon at %s has taken no lines for %.0f s",
                            r->options->endpoint, (double)STUCK_NS / 1e9);
    }
}

/* Sends the lines that the recording has, run by run. last: no block follows this one. */
static enum oct_err send_block(struct replay *r, uint16_t *samples, const uint8_t *valid,
                               uint32_t n_lines, uint64_t time_ns, bool last, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    uint32_t n_after = n_lines; /* lines up to the last that the recording has, and with it */
    while (n_after > 0 && !valid[n_after - 1])
        n_after--;
    for (uint32_t j = 0; j < n_after && !code && !r->interrupted;) {
        uint32_t end = j + 1;
        while (end < n_after && valid[end] == valid[j])
            end++;
        if (!valid[j]) {
            oct_client_skip(r->client, end - j);
        } else {
            uint64_t line_ns = r->options->rate > 0 ? (uint64_t)(j * 1e9 / r->options->rate) : 0;
            if (last && end == n_after) {
                oct_client_end_with_next(r->client);
                r->ended = true;
            }
            code = send_run(r, samples + (size_t)j * r->n_samples, end - j, time_ns + line_ns, err);
        }
        j = end;
    }
    if (!r->interrupted)
        oct_client_skip(r->client, n_lines - n_after);
    return code;
}

static enum oct_err play(struct replay *r, struct oct_error *err)
{
    const struct replay_options *o = r->options;
    enum oct_err code = OCT_OK;
    oct_client_start(r->client);
    r->start_ns = oct_clock_ns();
    for (uint64_t line = 0; !code && !r->interrupted;) {
        uint64_t position = line % r->n_lines_total;
        uint64_t left = r->n_lines_total - position;
        uint32_t n = left < r->block ? (uint32_t)left : r->block;
        uint16_t *samples;
        const uint8_t *valid;
        code = oct_line_store_window(r->store, line, n, &samples, &valid, err);
        if (code)
            break;
        uint64_t time_ns = o->rate > 0 ? due_ns(r, line) : oct_clock_ns();
        if (o->rate > 0)
            sleep_until(r, due_ns(r, line + n));
        r->interrupted = r->interrupted || take_signal();
        if (r->interrupted)
            break;
        bool last = !o->loop && left == n;
        code = send_block(r, samples, valid, n, time_ns, last, err);
        if (!code && o->rate > 0)
            note_lateness(r, due_ns(r, line + n));
        /* The time that delivery takes after the last block does not count for the pace. */
        r->elapsed_s = (double)(oct_clock_ns() - r->start_ns) / 1e9;
        line += n;
        if (last)
            break;
    }
    return code;
}

/* ---- blocks ---- */

/* The default is a B-scan a message, or less where the daemon accepts less. */
static enum oct_err choose_block(struct replay *r, const struct oct_config *config,
                                 struct oct_error *err)
{
    uint64_t most = ((uint64_t)config->ingest.max_message_mb << 20) / (r->n_samples * 2u);
    uint64_t block = r->options->block;
    if (block > most)
        return oct_fail(err, OCT_E_ARG,
                        "--block: %" PRIu64 " lines of %u samples are more than "
                        "ingest.max_message_mb (%u MB): at most %" PRIu64,
                        block, r->n_samples, config->ingest.max_message_mb, most);
    if (block == 0)
        block = r->bscan_lines < most ? r->bscan_lines : most;
    r->block = (uint32_t)(block < r->n_lines_total ? block : r->n_lines_total);
    return OCT_OK;
}

static enum oct_err choose_format(struct replay *r, struct oct_error *err)
{
    r->format = r->options->as ? oct_samples_named(r->options->as) : (uint16_t)OCT_LINES_U16;
    if (!oct_samples_fit(r->format, r->n_samples))
        return oct_fail(err, OCT_E_ARG, "--as %s: takes an even number of samples a line, not %u",
                        r->options->as, r->n_samples);
    return OCT_OK;
}

/* For a block in another format than the recording's. */
static enum oct_err make_room(struct replay *r, struct oct_error *err)
{
    free(r->room);
    r->room = NULL;
    if (r->format == OCT_LINES_U16)
        return OCT_OK;
    r->room = malloc(r->block * (size_t)oct_samples_bytes(r->format, r->n_samples));
    return r->room ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a block");
}

/* ---- following ---- */

/* Another scan is asked for: its acquisition begins, in an epoch of its own. */
static enum oct_err begin_followed(struct replay *r, const struct oct_followed_scan *next,
                                   const struct oct_config *config, struct oct_error *err)
{
    if (r->runs)
        oct_client_end(r->client);
    r->runs = false;
    if (next->ends)
        return OCT_OK;
    r->followed = *next;
    r->bscan_lines = oct_scan_sent_lines(&next->scan);
    r->n_lines_total = (uint64_t)r->bscan_lines * next->scan.n_bscans;
    enum oct_err e = choose_block(r, config, err);
    e = e ? e : make_room(r, err);
    free(r->lines);
    r->lines = malloc((size_t)r->block * r->n_samples * sizeof(uint16_t));
    if (!e && !r->lines)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a block");
    oct_client_follow(r->client, next->first_epoch, next->last_epoch);
    r->runs = !e;
    r->line = 0;
    r->start_ns = oct_clock_ns();
    if (!e)
        fprintf(stderr, "octctl replay: scan %" PRIu32 ": %s, %" PRIu32 " x %" PRIu32 "\n",
                next->number, oct_scan_pattern_names[next->scan.pattern], next->scan.n_lines,
                next->scan.n_bscans);
    return e;
}

/* Sends the next lines of the scan, when a camera would have exposed them. */
static enum oct_err send_followed(struct replay *r, struct oct_error *err)
{
    const uint64_t end = r->followed.n_volumes * r->n_lines_total; /* 0: none */
    const uint32_t n = end && end - r->line < r->block ? (uint32_t)(end - r->line) : r->block;
    const bool is_paced = r->options->rate > 0;
    for (uint32_t i = 0; i < n; i++)
        memcpy(r->lines + (size_t)i * r->n_samples,
               oct_scanned_eye_sent(&r->eye, &r->followed.scan, r->line + i),
               r->n_samples * sizeof(uint16_t));
    const uint64_t time_ns = is_paced ? due_ns(r, r->line) : oct_clock_ns();
    if (is_paced)
        sleep_until(r, due_ns(r, r->line + n));
    if (r->interrupted)
        return OCT_OK;
    r->line += n;
    if (r->line == end) {
        oct_client_end_with_next(r->client);
        r->runs = false;
    }
    const enum oct_err e = send_run(r, r->lines, n, time_ns, err);
    if (!e && is_paced)
        note_lateness(r, due_ns(r, r->line));
    return e;
}

static enum oct_err play_followed(struct replay *r, const struct oct_config *config,
                                  struct oct_error *err)
{
    struct oct_scan_follower *follower;
    struct oct_followed_scan next;
    enum oct_err e =
        oct_scan_follower_create(&follower, r->options->publish, &r->options->keys, err);
    const uint64_t begun_ns = oct_clock_ns();
    while (!e && !r->interrupted) {
        if (oct_scan_follower_look(follower, r->runs ? 0 : (int)SLICE_MS, &next))
            e = begin_followed(r, &next, config, err);
        else if (r->runs)
            e = send_followed(r, err);
        r->interrupted = r->interrupted || take_signal();
    }
    r->ended = !r->runs;
    r->elapsed_s = (double)(oct_clock_ns() - begun_ns) / 1e9;
    oct_scan_follower_destroy(follower);
    return e;
}

/* ---- the end ---- */

/* Ends the acquisition and waits until the network has everything. */
static enum oct_err end_acquisition(struct replay *r, struct oct_error *err)
{
    uint64_t end_ns = oct_clock_ns() + LINGER_MS * UINT64_C(1000000);
    /* The end flag also goes out where a signal kept back the block that was to carry it. */
    if (!r->stuck && (!r->ended || r->interrupted))
        oct_client_end(r->client);
    while (!r->stuck && oct_client_flush(r->client, SLICE_MS) != OCT_CLIENT_OK)
        if (oct_clock_ns() >= end_ns || take_signal())
            break;
    if (r->options->rate <= 0) /* without a pace, the time until all has arrived counts */
        r->elapsed_s = (double)(oct_clock_ns() - r->start_ns) / 1e9;
    oct_client_get_counters(r->client, &r->counters);
    oct_client_give_up(r->client);
    if (r->counters.messages_queued == 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_IO,
                    "%" PRIu64 " messages (%" PRIu64 " lines) were not delivered to %s within %u s",
                    r->counters.messages_queued, r->counters.lines_queued, r->options->endpoint,
                    LINGER_MS / 1000);
}

/* ---- the summary ---- */

static void print_json(const struct replay *r, double rate)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "lines_sent", (double)r->counters.lines_sent);
    cJSON_AddNumberToObject(o, "lines_missing", (double)r->counters.lines_skipped);
    cJSON_AddNumberToObject(o, "lines_undelivered", (double)r->counters.lines_queued);
    cJSON_AddNumberToObject(o, "messages_sent", (double)r->counters.messages_sent);
    cJSON_AddNumberToObject(o, "elapsed_s", r->elapsed_s);
    cJSON_AddNumberToObject(o, "lines_per_s", rate);
    cJSON_AddNumberToObject(o, "asked_lines_per_s", r->options->rate);
    cJSON_AddNumberToObject(o, "behind_s", (double)r->worst_ns / 1e9);
    cJSON_AddNumberToObject(o, "behind_times", (double)r->n_late);
    cJSON_AddBoolToObject(o, "interrupted", r->interrupted);
    char *text = cJSON_PrintUnformatted(o);
    printf("%s\n", text ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(o);
}

static void print_summary(const struct replay *r)
{
    /* Lines that the recording lacks count: their time was waited for. */
    double n_lines = (double)(r->counters.lines_sent + r->counters.lines_skipped);
    double rate = r->elapsed_s > 0 ? n_lines / r->elapsed_s : 0;
    if (r->options->json) {
        print_json(r, rate);
        return;
    }
    printf("replay: sent %" PRIu64 " lines in %.3f s: %.0f lines/s", r->counters.lines_sent,
           r->elapsed_s, rate);
    if (r->options->rate > 0)
        printf(" (asked for %.0f)", r->options->rate);
    if (r->counters.lines_skipped > 0)
        printf("; %" PRIu64 " lines missing in the recording left out", r->counters.lines_skipped);
    if (r->n_late > 0)
        printf("; fell behind by %.3f s, %" PRIu64 " time%s: %s", (double)r->worst_ns / 1e9,
               r->n_late, r->n_late == 1 ? "" : "s", why_late(r->worst_by_silence));
    printf("%s\n", r->interrupted ? "; interrupted" : "");
}

/* ---- the command ---- */

/* Returns 0, or the exit status when the command line is wrong. */
static int read_options(struct replay_options *o, const struct oct_config *config, int argc,
                        char **argv)
{
    *o = (struct replay_options){
        .endpoint = config->ingest.endpoint,
        .publish = config->publish.endpoint,
        .keys = {config->security.client_key, config->security.server_public},
        .rate = -1,
    };
    int status = oct_options_read(&oct_command_replay, o, &argc, argv);
    if (status)
        return status;
    if (o->follows && o->loop)
        return oct_command_misuse(argv[0], "--follow goes on by itself: leave out --loop");
    if (o->as && !oct_samples_named(o->as))
        return oct_command_misuse(argv[0], "--as %s: it is u16, u8 or mono12p", o->as);
    o->path = argv[1];
    bool given = o->rate >= 0;
    o->rate = given ? o->rate : config->scan.line_rate_hz;
    if (o->rate == 0 || (o->rate >= 1 && o->rate <= 1e9))
        return 0;
    return given ? oct_command_misuse(argv[0], "--rate needs " RATE_NEEDS)
                 : oct_command_misuse(argv[0], "scan.line_rate_hz is %g: use --rate", o->rate);
}

/* What became of the lines; `code` and err: of sending them. */
static enum oct_err finish(struct replay *r, enum oct_err code, struct oct_error *err)
{
    struct oct_error second;
    const enum oct_err ending = end_acquisition(r, code ? &second : err);
    print_summary(r);
    code = code ? code : ending;
    return !code && r->options->strict && r->n_late > 0
               ? oct_fail(err, OCT_E_IO, "the rate was not kept (--strict)")
               : code;
}

/* How the camera of the recording sent its lines. */
static enum oct_err find_scan(struct oct_scan *scan, struct oct_recording *recording,
                              const struct oct_config *config, struct oct_error *err)
{
    struct oct_config its = *config;
    const enum oct_err e = oct_recording_config(&its, recording, err);
    *scan = oct_config_way(&its);
    scan->n_lines = oct_recording_n_lines(recording);
    return e;
}

static enum oct_err replay_followed(struct replay *r, struct oct_recording *recording,
                                    const struct oct_scan *scan, const struct oct_config *config,
                                    struct oct_error *err)
{
    r->n_samples = oct_recording_n_samples(recording);
    enum oct_err e = oct_scanned_eye_read(&r->eye, recording, scan, WHOLE_BYTES, err);
    e = e ? e : choose_format(r, err);
    e = e ? e : connect_client(r, err);
    e = e ? e : play_followed(r, config, err);
    return r->client ? finish(r, e, err) : e;
}

static enum oct_err replay_recording(struct replay *r, struct oct_recording *recording,
                                     const struct oct_config *config, struct oct_error *err)
{
    struct oct_scan scan;
    enum oct_err code = find_scan(&scan, recording, config, err);
    if (!code && r->options->follows)
        return replay_followed(r, recording, &scan, config, err);
    if (scan.pattern != OCT_SCAN_RASTER_BOTH) /* where its A-lines lay does not matter here */
        scan.pattern = OCT_SCAN_RASTER;
    code = code ? code : oct_scan_check(&scan, err);
    if (code)
        return code;
    r->n_samples = oct_recording_n_samples(recording);
    r->bscan_lines = oct_scan_sent_lines(&scan);
    r->n_lines_total = oct_recording_n_bscans(recording) * r->bscan_lines;
    if ((code = choose_block(r, config, err)) || (code = choose_format(r, err)) ||
        (code = make_room(r, err)) ||
        (code = oct_line_store_create(&r->store, recording, &scan, r->block, r->options->loop,
                                      WHOLE_BYTES, AHEAD_BYTES, err)) ||
        (code = connect_client(r, err)))
        return code;
    return finish(r, play(r, err), err);
}

static int run_replay(struct oct_config *config, int argc, char **argv)
{
    struct replay_options options;
    int status = read_options(&options, config, argc, argv);
    if (status)
        return status;
    /* Block the signals before any thread starts: all threads inherit the mask. */
    sigset_t set, before;
    stop_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    struct oct_error err = {0};
    struct oct_recording *recording = NULL;
    struct replay replay = {.options = &options};
    enum oct_err code = oct_recording_open(&recording, options.path, config, &err);
    code = code ? code : replay_recording(&replay, recording, config, &err);
    /* Close the client first: it may still hold lines of the store. */
    oct_client_close(replay.client);
    oct_line_store_destroy(replay.store);
    oct_scanned_eye_finish(&replay.eye);
    free(replay.lines);
    free(replay.room);
    oct_recording_close(recording);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? oct_command_fail(argv[0], &err) : 0;
}

const struct oct_command oct_command_replay = {
    .name = "replay",
    .usage = "IN",
    .help = "plays a recording into a daemon as a camera would",
    .options = options_table,
    .n_least = 1,
    .n_most = 1,
    .too_few = "which recording?",
    .run = run_replay,
};
