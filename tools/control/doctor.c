/* octctl doctor: watches the status of a running daemon for some seconds, and says what the camera
 * driver does right and wrong, one line each. */
#include "pipeline/base/clock.h"
#include "pipeline/ingest/sample_look.h"
#include "tools/commands.h"
#include "tools/control/control.h"
#include "tools/dicom/peer.h"
#include "tools/interrupt.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_S 0.2
#define LEAST_S 0.5
#define MOST_S 3600.0

/* octview has the same limit. Pauses while the scanner flies back make the rate lower. */
#define MORE_THAN_SET 1.05
#define LESS_THAN_SET 0.5

enum { MOST_CHECKS = 40, MOST_FAULTS = 8 };

/* What the statuses so far have shown. */
struct seen {
    cJSON *first, *last; /* owned */
    unsigned n_looks;    /* at lines of messages, and what was seen in them: */
    double sample_min, sample_max;
    unsigned n_samples_like[OCT_N_SAMPLE_FAULTS];
    double look, camera_ns;   /* the newest */
    unsigned n_stood, n_back; /* of the camera's clock */
    cJSON *faults;            /* by reason, one of each, as last told; owned */
};

/* ---- reading ---- */

static const cJSON *item(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *value = item(object, key);
    double x = cJSON_IsNumber(value) ? value->valuedouble : 0;
    return isfinite(x) && x > 0 ? x : 0;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(item(object, key));
    return text ? text : "";
}

static double rise(const struct seen *seen, const char *key)
{
    return number(seen->last, key) - number(seen->first, key);
}

static void watch_fault(struct seen *seen, const cJSON *fault)
{
    const char *reason = text_of(fault, "reason");
    const bool is_known = item(seen->faults, reason) != NULL;
    if (!reason[0] || (!is_known && cJSON_GetArraySize(seen->faults) == MOST_FAULTS))
        return;
    if (is_known)
        cJSON_ReplaceItemInObjectCaseSensitive(seen->faults, reason, cJSON_Duplicate(fault, true));
    else
        cJSON_AddItemToObject(seen->faults, reason, cJSON_Duplicate(fault, true));
}

static void watch_look(struct seen *seen, const cJSON *now)
{
    double look = number(now, "looks"), camera_ns = number(now, "camera_ns");
    double least = number(now, "sample_min"), most = number(now, "sample_max");
    bool first = seen->n_looks == 0;
    if (look <= seen->look)
        return;
    /* The look before the first status may be at the lines of another driver. */
    if (seen->look > 0) {
        seen->sample_min = first || least < seen->sample_min ? least : seen->sample_min;
        seen->sample_max = first || most > seen->sample_max ? most : seen->sample_max;
        for (unsigned f = 0; f < OCT_N_SAMPLE_FAULTS; f++)
            seen->n_samples_like[f] +=
                strcmp(text_of(now, "samples"), oct_sample_fault_names[f]) == 0;
        seen->n_stood += !first && camera_ns == seen->camera_ns;
        seen->n_back += !first && camera_ns < seen->camera_ns;
        seen->n_looks++;
    }
    seen->look = look;
    seen->camera_ns = camera_ns;
}

/* Copies what is judged from the status. */
static void take_status(struct seen *seen, cJSON *status)
{
    const cJSON *source = item(status, "source");
    if (!seen->first) {
        seen->first = status;
        seen->look = number(item(source, "seen"), "looks");
        seen->look = seen->look > 0 ? seen->look : 0.5; /* the first look from now on counts too */
    } else {
        cJSON_Delete(seen->last);
        seen->last = status;
    }
    watch_fault(seen, item(source, "fault"));
    watch_look(seen, item(source, "seen"));
}

static void forget(struct seen *seen)
{
    cJSON_Delete(seen->first);
    cJSON_Delete(seen->last);
    cJSON_Delete(seen->faults);
}

/* ---- judging ---- */

/* Adds {"name", "ok", "text", "cure"} to the report; cure: "" where there is nothing to be done. */
__attribute__((format(printf, 5, 6))) static void say(cJSON *report, const char *name, bool ok,
                                                      const char *cure, const char *format, ...)
{
    char text[320];
    va_list args;
    if (cJSON_GetArraySize(report) == MOST_CHECKS)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cJSON *check = cJSON_CreateObject();
    cJSON_AddStringToObject(check, "name", name);
    cJSON_AddBoolToObject(check, "ok", ok);
    cJSON_AddStringToObject(check, "text", text);
    cJSON_AddStringToObject(check, "cure", cure);
    cJSON_AddItemToArray(report, check);
}

/* Returns whether there is a stream that can be judged. */
static bool judge_daemon(const struct seen *seen, cJSON *r)
{
    const char *phase = text_of(seen->last, "phase");
    double seconds = rise(seen, "uptime_s"), ignored = rise(seen, "messages_ignored");
    if (strcmp(phase, "idle") == 0)
        say(r, "octd", false, "octctl start", "is stopped: %.0f messages came and were thrown away",
            ignored);
    else if (strcmp(phase, "error") == 0)
        say(r, "octd", false, "then octctl start", "has failed: %.250s",
            text_of(seen->last, "last_error"));
    else if (!(seconds > 0) || rise(seen, "messages_received") < 0 ||
             rise(seen, "acquisitions") < 0)
        say(r, "octd", false, "run octctl doctor again", "was started anew meanwhile");
    else
        return true;
    return false;
}

static double rise_within(const struct seen *seen, const char *object, const char *key)
{
    return number(item(seen->last, object), key) - number(item(seen->first, object), key);
}

static double refused(const struct seen *seen)
{
    const cJSON *count;
    double sum = 0;
    cJSON_ArrayForEach(count, item(seen->last, "messages_bad"))
    {
        sum += count->string ? rise_within(seen, "messages_bad", count->string) : 0;
    }
    return sum;
}

static void judge_messages(const struct seen *seen, cJSON *r)
{
    double n = rise(seen, "messages_received"), bad = refused(seen);
    const char *endpoint = text_of(item(seen->last, "endpoints"), "ingest");
    double knocks = number(item(seen->last, "source"), "connections_refused");
    if (n + bad == 0 && knocks > 0)
        say(r, "messages", false,
            "a driver connects a PUSH socket (not PUB, REQ, plain TCP), and keeps it open",
            "none came to %s; %.0f connections since octd's start were no PUSH socket", endpoint,
            knocks);
    else if (n + bad == 0)
        say(r, "messages", false,
            "is the driver running, its endpoint this one, its queue not dropped at its end "
            "(linger)? With keys: see security in octctl status --all",
            "none came to %s", endpoint);
    else if (n == 0)
        say(r, "messages", false, "see below", "%.0f came, all of them were refused", bad);
    else
        say(r, "messages", true, "", "%.1f a second came to %s", n / rise(seen, "uptime_s"),
            endpoint);
}

/* Whether most of the lines that were looked at had this fault. */
static bool samples_are(const struct seen *seen, unsigned fault)
{
    return seen->n_samples_like[fault] * 2 > seen->n_looks;
}

static bool is_said_of_samples(const struct seen *seen, const char *reason)
{
    static const unsigned faults[] = {OCT_SAMPLES_FLOAT, OCT_SAMPLES_SWAPPED};
    for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (strcmp(reason, oct_sample_fault_names[faults[i]]) == 0)
            return samples_are(seen, faults[i]);
    return false;
}

static void judge_faults(const struct seen *seen, cJSON *r)
{
    const cJSON *count, *fault;
    cJSON_ArrayForEach(fault, seen->faults)
    {
        if (!is_said_of_samples(seen, fault->string))
            say(r, "driver", false, text_of(fault, "cure"), "%s", text_of(fault, "text"));
    }
    cJSON_ArrayForEach(count, item(seen->last, "messages_bad"))
    {
        const double n = count->string ? rise_within(seen, "messages_bad", count->string) : 0;
        if (n > 0 && !item(seen->faults, count->string))
            say(r, "refused", false,
                "docs/camera-drivers.md has a table of the reasons; octd's log says more if it "
                "goes on",
                "%.0f message%s, reason %.60s", n, n == 1 ? "" : "s", count->string);
    }
    if (refused(seen) == 0)
        say(r, "refused", true, "", "no message");
}

/* Whole B-scans of another length a message: octd cuts lines where scan.lines says, and cannot see
 * where the scanner turns. */
static void judge_message_lines(cJSON *r, double lines, double mb, double m, double flyback)
{
    char cure[96];
    const bool is_other = lines > m + flyback && fmod(lines, m + flyback) != 0;
    snprintf(cure, sizeof(cure), "where the scanner turns after %.0f lines, set scan.lines=%.0f",
             lines, lines);
    say(r, "lines a message", !is_other, is_other ? cure : "",
        "%.0f (%.3g MB), a B-scan has %.0f%s", lines, mb, m,
        lines == m      ? ": best"
        : lines * 8 < m ? ": larger messages cost less"
                        : "");
}

static void judge_shape(const struct seen *seen, cJSON *r)
{
    const cJSON *now = item(item(seen->last, "source"), "seen");
    const cJSON *geometry = item(seen->last, "geometry");
    double lines = number(now, "lines_a_message"), m = number(geometry, "lines");
    double mb = lines * number(now, "samples_a_line") * number(now, "sample_bits") / 8e6;
    if (seen->n_looks == 0)
        return;
    const double samples = number(now, "samples_a_line"), bits = number(now, "sample_bits");
    if (bits == 12 && number(item(seen->last, "pixels"), "saturation") > 4095)
        say(r, "samples a line", false, "set camera.bits=12: saturation is not seen else",
            "%.0f of 12 bits packed, camera.bits is more", samples);
    else
        say(r, "samples a line", true, "", "%.0f of %.0f bits%s, as camera.samples says", samples,
            bits, bits == 12 ? " packed" : "");
    judge_message_lines(r, lines, mb, m, number(item(seen->last, "scan"), "flyback_lines"));
    say(r, "check sums", true, "", "%s",
        cJSON_IsTrue(item(now, "crc")) ? "every payload is guarded by a CRC-32C, all were right"
                                       : "none are sent, which is fine on one machine");
}

static void judge_rate(const struct seen *seen, cJSON *r)
{
    const cJSON *scan = item(seen->last, "scan");
    double set = number(scan, "line_rate_hz"), seconds = rise(seen, "uptime_s");
    double came =
        (rise(seen, "lines_received") + rise(seen, "lines_missing") + rise(seen, "lines_dropped")) /
        seconds;
    bool configured = strcmp(text_of(scan, "line_rate_from"), "config") == 0;
    bool ok = !configured || (came <= MORE_THAN_SET * set && came >= LESS_THAN_SET * set);
    char cure[120] = "";
    if (!ok)
        snprintf(cure, sizeof(cure), "set scan.line_rate_hz=%.0f, or look at the camera's trigger",
                 came);
    say(r, "line rate", ok, cure, "%.6g A-lines a second, scan.line_rate_hz is %s%.6g", came,
        configured ? "" : "not set, taken is ", set);
    say(r, "B-scans", rise(seen, "bscans_done") > 0,
        rise(seen, "bscans_done") > 0 ? "" : "see what else is wrong",
        "%.4g a second reconstructed", rise(seen, "bscans_done") / seconds);
}

static void judge_loss(const struct seen *seen, cJSON *r)
{
    double missing = rise(seen, "lines_missing"), received = rise(seen, "lines_received");
    /* The number of a message that was refused is missed, too. */
    double never = rise(seen, "messages_missed") - rise(seen, "messages_reordered") - refused(seen);
    double twice = rise(seen, "messages_duplicate"), n = rise(seen, "messages_received");
    double late = rise(seen, "lines_late") + rise(seen, "lines_duplicate");
    if (missing > 0)
        say(r, "missing lines", false, "look at camera, cable and driver: is its queue full?",
            "%.0f, %.3g %% of all; %.0f messages never came", missing,
            100 * missing / (missing + received), never > 0 ? never : 0);
    else
        say(r, "missing lines", true, "", "none");
    bool ok = twice <= n / 100 && late <= received / 100;
    say(r, "too late, twice", ok, ok ? "" : "see driver; each line comes once, in order",
        late + twice > 0 ? "%.0f A-lines too late or come before, %.0f messages come before"
                         : "none",
        late, twice);
}

/* Acquisitions that cut another off point to a driver that sets its start flag wrongly. It is fine
 * to make every volume, or every B-scan, an acquisition of its own. */
static void judge_starts(const struct seen *seen, cJSON *r)
{
    double n = rise(seen, "acquisitions"), seconds = rise(seen, "uptime_s");
    double n_cut = rise_within(seen, "source", "starts_again");
    double epoch = number(item(seen->last, "source"), "epoch");
    if (n == 0)
        say(r, "acquisitions", true, "", "one went on throughout (epoch %.0f)", epoch);
    else if (n_cut > 1 + seconds / 2)
        say(r, "acquisitions", false, "one epoch a start of the driver, flag 1 once",
            "%.0f began meanwhile, %.0f of them while another had not ended; the last in epoch "
            "%.0f",
            n, fmin(n, n_cut), epoch);
    else
        say(r, "acquisitions", true, "", "%.0f began meanwhile, the last in epoch %.0f", n, epoch);
}

/* Names the unit that the driver took for nanoseconds, by the ratio of octd's clock to the
 * camera's. */
static const char *unit_of(double ratio)
{
    return ratio > 0.5e-9 && ratio < 2e-9 ? "time_ns seems to count seconds: nanoseconds are wanted"
           : ratio > 0.5e-6 && ratio < 2e-6
               ? "time_ns seems to count milliseconds: nanoseconds are wanted"
           : ratio > 0.5e-3 && ratio < 2e-3
               ? "time_ns seems to count microseconds: nanoseconds are wanted"
               : "write the time of the first line in nanoseconds";
}

static void judge_clock(const struct seen *seen, cJSON *r)
{
    static const char name[] = "camera's clock";
    static const char cure[] = "write the camera's time of the first line, in nanoseconds, at "
                               "offset 16 of the header";
    const cJSON *now = item(item(seen->last, "source"), "seen");
    double camera = number(now, "by_camera_hz"), octd = number(now, "by_octd_hz");
    double ratio = camera > 0 ? octd / camera : 0;
    if (seen->n_looks < 2)
        return;
    if (seen->n_stood + 1 == seen->n_looks)
        say(r, name, false, cure, "stands still at %.0f ns", seen->camera_ns);
    else if (seen->n_back > 0 && rise(seen, "acquisitions") == 0)
        say(r, name, false, cure, "went back %u times", seen->n_back);
    else if (ratio > 0 && (ratio < 0.5 || ratio > 2))
        say(r, name, false, unit_of(ratio), "runs %.3g times as fast as octd's", ratio);
    else
        say(r, name, true, "", ratio > 0 ? "moves, %.4g times as fast as octd's" : "moves", ratio);
}

static const char *const sample_cures[OCT_N_SAMPLE_FAULTS] = {
    [OCT_SAMPLES_ZERO] = "is the light on, the buffer filled before it is sent?",
    [OCT_SAMPLES_STUCK] = "is the light on, the buffer filled before it is sent?",
    [OCT_SAMPLES_FLOAT] = "convert to unsigned 16 bit (Python: .astype(\"<u2\"))",
    [OCT_SAMPLES_SWAPPED] = "samples are little-endian (Python: .astype(\"<u2\"))",
};

static void judge_samples(const struct seen *seen, cJSON *r)
{
    static const char *const words[OCT_N_SAMPLE_FAULTS] = {
        [OCT_SAMPLES_ZERO] = "all zero",
        [OCT_SAMPLES_STUCK] = "all alike within a line",
        [OCT_SAMPLES_FLOAT] = "look like floats",
        [OCT_SAMPLES_SWAPPED] = "have their two bytes the wrong way round",
    };
    static const char packed_words[] = "have their bits as Mono12Packed has them, not as Mono12p";
    static const char packed_cure[] = "set the camera's PixelFormat=Mono12p";
    const double bits = number(item(item(seen->last, "source"), "seen"), "sample_bits");
    double limit = number(item(seen->last, "pixels"), "saturation"), most = seen->sample_max;
    bool wrong = false;
    if (seen->n_looks == 0)
        return;
    for (unsigned f = OCT_SAMPLES_FINE + 1; f < OCT_N_SAMPLE_FAULTS; f++)
        if (samples_are(seen, f)) {
            const bool is_packed = f == OCT_SAMPLES_SWAPPED && bits == 12;
            say(r, "samples", false, is_packed ? packed_cure : sample_cures[f],
                "%s, in %u of %u lines looked at", is_packed ? packed_words : words[f],
                seen->n_samples_like[f], seen->n_looks);
            wrong = true;
        }
    if (wrong)
        return;
    char range[100];
    snprintf(range, sizeof(range), "%.0f to %.0f, camera.bits allows %.0f (%u lines looked at)",
             seen->sample_min, most, limit, seen->n_looks);
    if (limit > 0 && most > limit)
        say(r, "samples", false, "raise camera.bits, or shift samples to the right", "%s", range);
    else if (limit > 0 && most == limit)
        say(r, "samples", false, "less light on the reference arm, or a shorter exposure",
            "%s: saturated", range);
    else
        say(r, "samples", true, "", "%s%s", range,
            most * 8 < limit ? ": is camera.bits the camera's own?" : "");
}

static void judge_pace(const struct seen *seen, cJSON *r)
{
    const cJSON *word;
    double full = rise_within(seen, "bscans_dropped", "ring_full");
    double engine = rise_within(seen, "bscans_dropped", "engine");
    double skipped = rise(seen, "bscans_not_published");
    if (full + engine + skipped > 0)
        say(r, "octd keeps up", false,
            "a lower line rate, pipeline.crop_last, fewer programs, a GPU; see forecast",
            "no: B-scans dropped: %.0f ring_full, %.0f engine; not published: %.0f", full, engine,
            skipped);
    else
        say(r, "octd keeps up", true, "", "nothing was dropped, a B-scan takes %.3g ms",
            number(item(seen->last, "latency_us"), "p50") / 1e3);
    cJSON_ArrayForEach(word, item(seen->last, "degraded"))
    {
        const char *what = cJSON_GetStringValue(word);
        if (what && strcmp(what, "source_refused") != 0)
            say(r, "degraded", false, "docs/streams.md says what it means; see octd's log", "%.60s",
                what);
    }
}

/* The status may come from any program: missing or absurd values count as 0. */
static void judge_driver(const struct seen *seen, cJSON *r)
{
    if (!judge_daemon(seen, r))
        return;
    judge_messages(seen, r);
    judge_faults(seen, r);
    if (rise(seen, "messages_received") > 0) {
        judge_shape(seen, r);
        judge_rate(seen, r);
        judge_loss(seen, r);
        judge_starts(seen, r);
        judge_clock(seen, r);
        judge_samples(seen, r);
    }
    judge_pace(seen, r);
}

static bool is_well(const cJSON *report)
{
    const cJSON *check;
    cJSON_ArrayForEach(check, report)
    {
        if (!oct_json_is_true(check, "ok"))
            return false;
    }
    return true;
}

/* ---- the command ---- */

struct call {
    double seconds, timeout_s;
    const char *endpoint;
    bool json, dicom;
};

static const struct oct_option options[] = {
    {"--seconds", "S", "watch for S seconds", OCT_OPTION_NUMBER,
     .at = offsetof(struct call, seconds), .least = LEAST_S, .most = MOST_S, .standard = "5"},
    {"--dicom", NULL, "ask the archive and the worklist by C-ECHO, and not octd", OCT_OPTION_FLAG,
     .at = offsetof(struct call, dicom)},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct call, json)},
    {"--timeout", "S", "wait at most S seconds for an answer", OCT_OPTION_NUMBER,
     .at = offsetof(struct call, timeout_s), .least = OCT_OPTION_ABOVE_0, .most = MOST_S,
     .standard = "5"},
    {"--endpoint", "E", "the daemon's control.endpoint", OCT_OPTION_TEXT,
     .at = offsetof(struct call, endpoint)},
    {NULL},
};

static double now_s(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

static enum oct_err watch_status(struct seen *seen, const struct oct_config *config,
                                 const struct call *call, struct oct_error *err)
{
    const double end_s = now_s() + call->seconds;
    struct oct_control_link *control;
    enum oct_err code = oct_control_open(&control, config, call->endpoint, call->timeout_s, err);
    for (bool last = false; !code; last = now_s() + LOOK_S >= end_s) {
        cJSON *status;
        if ((code = oct_control_status(control, &status, err)))
            break;
        if (!oct_json_is_true(status, "ok")) {
            cJSON_Delete(status);
            code = oct_fail(err, OCT_E_FORMAT, "%s: the answer is no status",
                            oct_control_endpoint(control));
            break;
        }
        take_status(seen, status);
        if (last)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(LOOK_S * 1e9)}, NULL);
    }
    oct_control_close(control);
    return code;
}

static void print_report(const cJSON *report)
{
    const cJSON *check;
    cJSON_ArrayForEach(check, report)
    {
        const char *cure = text_of(check, "cure");
        printf("%-5s  %-16s %s%s%s\n", oct_json_is_true(check, "ok") ? "ok" : "WRONG",
               text_of(check, "name"), text_of(check, "text"), cure[0] ? ": " : "", cure);
    }
}

/* The hospital's two. */
static void judge_dicom(const struct oct_config *config, cJSON *r)
{
    const struct {
        const char *name, *text;
        enum oct_dicom_peer peer;
    } peers[] = {{"dicom.archive", config->dicom.archive, OCT_DICOM_ARCHIVE},
                 {"dicom.worklist", config->dicom.worklist, OCT_DICOM_WORKLIST}};
    struct oct_error err;
    for (unsigned i = 0; i < 2; i++)
        if (!peers[i].text[0])
            say(r, peers[i].name, true, "", "none is set: nothing goes there");
        else if (oct_dicom_echo(config, peers[i].peer, oct_interrupt_watch(), &err))
            say(r, peers[i].name, false,
                "is its title, host and port right, and does it know ours (dicom.title)?", "%.300s",
                err.text);
        else
            say(r, peers[i].name, true, "", "%s answers%s", peers[i].text,
                config->dicom.tls ? ", by TLS" : "");
}

static int print_judged(const struct call *call, cJSON *report)
{
    cJSON *all = cJSON_CreateObject();
    const int status = !is_well(report);
    cJSON_AddBoolToObject(all, "ok", !status);
    cJSON_AddNumberToObject(all, "seconds", call->seconds);
    cJSON_AddItemToObject(all, "checks", report);
    if (call->json)
        oct_command_print_json(all);
    else
        print_report(report);
    cJSON_Delete(all);
    return status;
}

static int run_doctor(struct oct_config *config, int argc, char **argv)
{
    struct call call = {0};
    struct seen seen = {.first = NULL};
    struct oct_error err;
    int status = oct_options_read(&oct_command_doctor, &call, &argc, argv);
    if (status)
        return status;
    if (call.dicom) {
        cJSON *report = cJSON_CreateArray();
        judge_dicom(config, report);
        return print_judged(&call, report);
    }
    seen.faults = cJSON_CreateObject();
    if (watch_status(&seen, config, &call, &err)) {
        status = oct_command_fail(argv[0], &err);
    } else {
        cJSON *report = cJSON_CreateArray();
        judge_driver(&seen, report);
        status = print_judged(&call, report);
    }
    forget(&seen);
    return status;
}

const struct oct_command oct_command_doctor = {
    .name = "doctor",
    .usage = "",
    .help = "what the camera driver does right and wrong; whether archive and worklist answer",
    .options = options,
    .keys = "",
    .run = run_doctor,
};
