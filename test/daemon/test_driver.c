/* What octd says of a camera driver, from what the assembler sees: no word against a healthy
 * stream with the losses that it has, at any rate; wrong ones are named, and forgotten again. The
 * clock is the test's own. */
#include "daemon/driver.h"
#include "test/rig/assembler_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)

struct stand {
    struct assembler_rig rig;
    struct oct_config config;
    struct oct_driver driver;
    struct oct_lines_header h; /* of the next message */
    uint64_t now_ns, looked_ns, blamed_ns;
};

static void open_stand(struct stand *s)
{
    memset(s, 0, sizeof(*s));
    open_assembler(&s->rig, 0);
    oct_config_init(&s->config);
    s->now_ns = s->looked_ns = 7 * S;
    s->h = (struct oct_lines_header){
        .n_lines = M, .n_samples = N, .format = OCT_LINES_U16, .epoch = 3, .sequence = 100};
}

static void close_stand(struct stand *s)
{
    close_assembler(&s->rig);
}

/* Time passes; octd looks every 50 ms. */
static void wait_ns(struct stand *s, uint64_t ns)
{
    uint64_t end_ns = s->now_ns + ns;
    for (; s->looked_ns + 50 * MS <= end_ns; s->looked_ns += 50 * MS) {
        oct_driver_look(&s->driver, oct_assembler_driver(s->rig.assembler), &s->config,
                        s->looked_ns);
        if (s->driver.fault != OCT_DRIVER_RIGHT && !s->blamed_ns)
            s->blamed_ns = s->looked_ns;
    }
    s->now_ns = end_ns;
}

static void send(struct stand *s, const struct oct_lines_header *h)
{
    uint64_t slot;
    send_message(&s->rig, h, s->now_ns);
    while (oct_ring_read(s->rig.reader, 0, &slot) == OCT_OK)
        oct_ring_release(s->rig.reader);
}

static void step(struct stand *s)
{
    s->h.sequence++;
    s->h.first_line += s->h.n_lines;
}

/* One message or none, perhaps twice, late, lost, or after a gap; sometimes the driver restarts,
 * and some of what it had sent before comes after all. */
static void send_as_in_life(struct stand *s, struct dice *dice, struct oct_lines_header *kept)
{
    unsigned roll = dice_below(dice, 40);
    struct oct_lines_header before = s->h;
    if (roll == 0) { /* lost on the way */
        step(s);
    } else if (roll == 1) { /* lost in the camera */
        s->h.first_line += 1 + dice_below(dice, 100);
    } else if (roll == 2) { /* overtaken */
        *kept = s->h;
        step(s);
    } else if (roll == 3 && dice_below(dice, 8) == 0) {
        s->h.epoch++;
        s->h.sequence = s->h.first_line = 0;
        send(s, &s->h);
        step(s);
        for (unsigned n = dice_below(dice, 64); n > 0; n--, before.sequence++)
            send(s, &before);
        kept->epoch = 0;
    }
    send(s, &s->h);
    if (roll == 4)
        send(s, &s->h);
    if (roll > 30 && kept->epoch == s->h.epoch) {
        send(s, kept);
        kept->epoch = 0;
    }
    step(s);
}

TEST(a_healthy_stream_is_never_blamed)
{
    static const unsigned rates_hz[] = {1, 3, 10, 50, 400};
    struct stand s;
    for (size_t r = 0; r < sizeof(rates_hz) / sizeof(rates_hz[0]); r++)
        for (unsigned seed = 1; seed <= 20; seed++) {
            struct dice dice = {seed * 77 + r};
            struct oct_lines_header kept = {.epoch = 0};
            open_stand(&s);
            for (unsigned k = 0; k < 400 && !s.blamed_ns; k++) {
                send_as_in_life(&s, &dice, &kept);
                wait_ns(&s, S / rates_hz[r]);
            }
            if (s.blamed_ns)
                print_message("%u a second, seed %u: %s\n", rates_hz[r], seed, s.driver.what);
            assert_int_equal(s.blamed_ns, 0);
            close_stand(&s);
        }
}

TEST(a_single_malformed_message_among_right_ones_is_not_told)
{
    struct stand s;
    open_stand(&s);
    for (unsigned k = 0; k < 100; k++, step(&s)) {
        struct oct_lines_header bad = s.h;
        send(&s, &s.h);
        bad.n_samples++;
        if (k % 40 == 20)
            send(&s, &bad);
        wait_ns(&s, 50 * MS);
    }
    assert_int_equal(s.blamed_ns, 0);
    close_stand(&s);
}

static void same_sequence(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->sequence = 100;
}

static void counts_lines(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->sequence = h->first_line;
}

static void same_line(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->first_line = 0;
}

static void counts_bscans(struct oct_lines_header *h, unsigned k)
{
    h->first_line = k;
}

static void wrong_samples(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->n_samples = 1000;
}

static void no_lines(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->n_lines = 0;
}

static void begins_again(struct oct_lines_header *h, unsigned k)
{
    h->first_line = k % 3 * M;
}

TEST(wrong_drivers_are_named_at_any_rate_and_forgotten)
{
    static const struct {
        void (*spoil)(struct oct_lines_header *h, unsigned k);
        const char *words, *cure;
    } wrong[] = {
        {same_sequence, "sequence stays 100", "by 1"},
        {counts_lines, "sequence rises by 5 a message", "by 1"},
        {same_line, "first_line stays 0", "0, n, 2n"},
        {counts_bscans, "first_line rises by 1 a message, each brings 5 lines", "0, 5, 10"},
        {wrong_samples, "1000 samples a line come, camera.samples is 832 (not set, built in)",
         "set camera.samples=1000"},
        {no_lines, "messages without lines", "offset 32"},
        {begins_again, "first_line began again: line ", "flag 1"},
    };
    static const unsigned rates_hz[] = {4, 20, 300};
    struct stand s;
    for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++)
        for (size_t r = 0; r < sizeof(rates_hz) / sizeof(rates_hz[0]); r++) {
            open_stand(&s);
            unsigned k = 0;
            for (; s.now_ns < 9 * S; k++, step(&s)) {
                struct oct_lines_header h = s.h;
                wrong[w].spoil(&h, k);
                /* The rig makes N samples a line, whatever the header says. */
                send(&s, &h);
                wait_ns(&s, S / rates_hz[r]);
            }
            bool named =
                strstr(s.driver.what, wrong[w].words) && strstr(s.driver.cure, wrong[w].cure);
            if (!named)
                print_message("%u a second: '%s' '%s'\n", rates_hz[r], s.driver.what,
                              s.driver.cure);
            assert_true(named);
            if (wrong[w].spoil != begins_again || rates_hz[r] > 4)
                assert_in_range(s.blamed_ns, 7 * S, 85 * S / 10); /* octview asks twice a second */
            assert_true(s.driver.n_messages > 0 && s.driver.n_messages <= k);
            uint64_t until_ns = s.now_ns + 2 * S;
            for (s.h.epoch++; s.now_ns < until_ns; step(&s)) {
                send(&s, &s.h);
                wait_ns(&s, S / rates_hz[r]);
            }
            assert_int_equal(s.driver.fault, OCT_DRIVER_RIGHT);
            close_stand(&s);
        }
}

static void starts_with_each(struct oct_lines_header *h, unsigned k)
{
    (void)k;
    h->flags = OCT_LINES_STARTS;
}

TEST(slow_drivers_are_named_with_their_third_wrong_message)
{
    static void (*const wrong[])(struct oct_lines_header * h, unsigned k) = {
        same_sequence, counts_lines, same_line, counts_bscans, begins_again, starts_with_each};
    static const unsigned periods_ms[] = {600, 800, 1000, 2000, 5000};
    struct stand s;
    for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++)
        for (size_t p = 0; p < sizeof(periods_ms) / sizeof(periods_ms[0]); p++) {
            const uint64_t period_ns = periods_ms[p] * MS;
            unsigned first = wrong[w] == begins_again ? 3 : 1; /* that is wrong */
            open_stand(&s);
            for (unsigned k = 0; k < first + 3; k++, step(&s)) {
                struct oct_lines_header h = s.h;
                wrong[w](&h, k);
                send(&s, &h);
                wait_ns(&s, period_ns);
            }
            if (!s.blamed_ns)
                print_message("fault %zu every %u ms\n", w, periods_ms[p]);
            assert_in_range(s.blamed_ns, 7 * S + first * period_ns,
                            7 * S + (first + 2) * period_ns + 100 * MS);
            assert_true(s.driver.fault != OCT_DRIVER_RIGHT); /* until more should have come */
            uint64_t until_ns = s.now_ns + 2 * S;
            s.h.epoch++;
            s.h.sequence = s.h.first_line = 0; /* else it is refused at first */
            for (unsigned k = 0; k < 2 || s.now_ns < until_ns; k++, step(&s)) {
                send(&s, &s.h);
                wait_ns(&s, period_ns);
            }
            if (s.driver.fault != OCT_DRIVER_RIGHT)
                print_message("fault %zu every %u ms: %s\n", w, periods_ms[p], s.driver.what);
            assert_int_equal(s.driver.fault, OCT_DRIVER_RIGHT);
            close_stand(&s);
        }
}

TEST(a_slow_driver_that_is_gone_is_forgotten)
{
    struct stand s;
    open_stand(&s);
    for (unsigned k = 0; k < 5; k++, step(&s)) {
        struct oct_lines_header h = s.h;
        h.first_line = 0;
        send(&s, &h);
        wait_ns(&s, 2 * S);
    }
    assert_int_equal(s.driver.fault, OCT_DRIVER_LINE_STUCK);
    wait_ns(&s, 5 * S);
    assert_int_equal(s.driver.fault, OCT_DRIVER_RIGHT);
    close_stand(&s);
}

/* Whole B-scans as acquisitions of their own, with the end said or not; and acquisitions of some
 * messages that say that they end. */
TEST(acquisitions_that_follow_each_other_whole_are_healthy)
{
    static const unsigned rates_hz[] = {1, 10, 400};
    struct stand s;
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t r = 0; r < sizeof(rates_hz) / sizeof(rates_hz[0]); r++) {
            open_stand(&s);
            s.h.n_lines = kind < 2 ? M : kind == 2 ? 2 * M : 3;
            for (unsigned k = 0; k < 100; k++, step(&s)) {
                if (kind < 3 || k % 3 == 0)
                    s.h.first_line = 0;
                s.h.flags = kind == 1                 ? OCT_LINES_STARTS | OCT_LINES_ENDS
                            : kind < 3 || k % 3 == 0  ? OCT_LINES_STARTS
                            : kind == 3 && k % 3 == 2 ? OCT_LINES_ENDS
                                                      : 0;
                send(&s, &s.h);
                wait_ns(&s, S / rates_hz[r]);
            }
            if (s.blamed_ns)
                print_message("kind %u, %u a second: %s\n", kind, rates_hz[r], s.driver.what);
            assert_int_equal(s.blamed_ns, 0);
            assert_int_equal(s.rig.counts->acquisitions, kind < 3 ? 100 : 34);
            assert_int_equal(oct_assembler_driver(s.rig.assembler)->n[OCT_DRIVER_STARTS_AGAIN], 0);
            close_stand(&s);
        }
}

/* Pieces that are cut off, or begin in their midst, are none of these. */
TEST(acquisitions_cut_off_by_the_next_are_told)
{
    struct stand s;
    for (unsigned kind = 0; kind < 2; kind++) {
        open_stand(&s);
        s.h.n_lines = kind ? M : M - 1;
        for (unsigned k = 0; k < 40; k++, step(&s)) {
            s.h.first_line = kind ? (k + 1) * (uint64_t)M : 0;
            s.h.flags = OCT_LINES_STARTS;
            send(&s, &s.h);
            wait_ns(&s, 50 * MS);
        }
        assert_int_equal(s.driver.fault, OCT_DRIVER_STARTS_AGAIN);
        close_stand(&s);
    }
}

TEST(the_text_says_what_became_of_the_messages)
{
    static const struct {
        unsigned fault;
        const char *text;
    } said[] = {
        {OCT_BAD_SAMPLES, "3 messages refused: what"},
        {OCT_DRIVER_SEQUENCE_JUMPS, "3 messages numbered wrong: what"},
        {OCT_DRIVER_LINE_OVERLAPS, "3 messages numbered wrong: what"},
        {OCT_DRIVER_LINE_COUNTS_SAMPLES, "3 messages numbered wrong: what"},
        {OCT_DRIVER_STARTS_AGAIN, "3 messages marked as a start: what"},
        {OCT_DRIVER_LINE_STUCK, "3 messages of no use: what"},
        {OCT_DRIVER_EPOCH_AGAIN, "3 messages of no use: what"},
        {OCT_DRIVER_NO_PUSH, "3 connections refused: what"},
        {OCT_DRIVER_RIGHT, ""},
    };
    struct oct_driver d = {.n_messages = 3, .what = "what"};
    char text[OCT_ERROR_TEXT_BYTES];
    for (size_t k = 0; k < sizeof(said) / sizeof(said[0]); k++) {
        d.fault = said[k].fault;
        oct_driver_text(&d, text, sizeof(text));
        assert_string_equal(text, said[k].text);
    }
}

TEST(a_second_sender_that_goes_on_is_told_and_leftovers_are_not)
{
    struct oct_lines_header h = {.epoch = 4, .n_lines = M, .n_samples = N};
    struct stand s;
    for (unsigned goes_on = 0; goes_on < 2; goes_on++) {
        open_stand(&s);
        struct oct_driver_watch *watch = oct_assembler_driver(s.rig.assembler);
        const struct oct_driver_refusal refusal = {.header = &h, .epoch = 3, .n_parts = 2};
        for (unsigned k = 0; k < 100; k++, step(&s)) {
            send(&s, &s.h);
            for (unsigned n = goes_on ? 1 : k == 50 ? 128 : 0; n > 0; n--)
                oct_driver_watch_refuse(watch, OCT_BAD_EPOCH, &refusal);
            wait_ns(&s, 50 * MS);
        }
        assert_int_equal(s.blamed_ns != 0, goes_on);
        if (goes_on)
            assert_non_null(strstr(s.driver.what, "epoch 4 comes, epoch 3 is being received"));
        close_stand(&s);
    }
}

TEST(an_epoch_for_every_message_is_told_whether_it_is_refused_or_taken)
{
    struct oct_lines_header h = {.epoch = 40, .n_lines = M, .n_samples = N};
    struct stand s;
    for (unsigned refused = 0; refused < 2; refused++) {
        open_stand(&s);
        struct oct_driver_watch *watch = oct_assembler_driver(s.rig.assembler);
        for (unsigned k = 0; k < 100; k++, step(&s), h.epoch++, s.h.epoch++) {
            if (!refused || k % 11 == 0)
                send(&s, &s.h);
            else
                oct_driver_watch_refuse(watch, OCT_BAD_EPOCH,
                                        &(struct oct_driver_refusal){.header = &h, .n_parts = 2});
            wait_ns(&s, 20 * MS);
        }
        assert_non_null(strstr(s.driver.what, "each message has another epoch"));
        close_stand(&s);
    }
}

/* ---- samples ---- */

static void fill(uint16_t *line, unsigned n, unsigned kind)
{
    for (unsigned i = 0; i < n; i++) {
        double t = (double)i / n;
        uint16_t smooth = (uint16_t)(3000 * t * (1 - t) * 4 + 300 + 40 * (i % 9 > 4));
        float real = kind == 7 && i % 6 > 3 ? 0 : (float)smooth;
        uint16_t halves[2];
        memcpy(halves, &real, sizeof(halves));
        line[i] = kind == 0                ? smooth
                  : kind == 1              ? (uint16_t)(smooth << 8 | smooth >> 8)
                  : kind == 2 || kind == 7 ? halves[i % 2]
                  : kind == 3              ? 0
                  : kind == 4              ? 777
                  : kind == 6              ? (uint16_t)(16400 + i * 40503u % 65536 * 1601 / 65536)
                                           : (uint16_t)(i * 40503u >> 3);
    }
}

TEST(samples_of_the_wrong_kind_are_told_apart)
{
    static const enum oct_sample_fault expected[] = {
        OCT_SAMPLES_FINE,  OCT_SAMPLES_SWAPPED, OCT_SAMPLES_FLOAT, OCT_SAMPLES_ZERO,
        OCT_SAMPLES_STUCK, OCT_SAMPLES_FINE,    OCT_SAMPLES_FINE,  OCT_SAMPLES_FLOAT};
    uint16_t line[832];
    for (unsigned kind = 0; kind < 8; kind++) {
        fill(line, 832, kind);
        struct oct_sample_look look = oct_samples_look(line, 832, OCT_LINES_U16);
        assert_int_equal(look.fault, expected[kind]);
        look = oct_samples_look((const unsigned char *)line + 1, 831, OCT_LINES_U8);
        assert_true(look.max <= 255);
    }
}

TEST(packed_samples_in_the_order_of_mono12packed_are_told)
{
    uint16_t line[832];
    uint8_t bytes[832 / 2 * 3];
    fill(line, 832, 0);
    oct_samples_pack(bytes, line, 832, OCT_LINES_12P);
    struct oct_sample_look look = oct_samples_look(bytes, 832, OCT_LINES_12P);
    assert_int_equal(look.fault, OCT_SAMPLES_FINE);
    assert_true(look.min == 300 && look.max > 3000);
    for (unsigned i = 0; i < 832; i += 2) {
        bytes[i / 2 * 3] = (uint8_t)(line[i] >> 4);
        bytes[i / 2 * 3 + 1] = (uint8_t)((line[i] & 15) | line[i + 1] << 4);
        bytes[i / 2 * 3 + 2] = (uint8_t)(line[i + 1] >> 4);
    }
    assert_int_equal(oct_samples_look(bytes, 832, OCT_LINES_12P).fault, OCT_SAMPLES_SWAPPED);
    fill(line, 832, 5); /* noise looks the same either way */
    for (unsigned i = 0; i < 832; i++)
        line[i] &= 4095;
    oct_samples_pack(bytes, line, 832, OCT_LINES_12P);
    assert_int_equal(oct_samples_look(bytes, 832, OCT_LINES_12P).fault, OCT_SAMPLES_FINE);
}

/* Right messages of one line for two seconds; odd: each so many-th line is of that kind. */
static void send_samples(struct stand *s, unsigned rate_hz, unsigned kind, unsigned each)
{
    struct oct_driver_watch *watch = oct_assembler_driver(s->rig.assembler);
    uint16_t line[832];
    s->h.n_lines = 1;
    s->h.n_samples = 832;
    s->blamed_ns = 0;
    for (unsigned k = 0; k < 2 * rate_hz; k++, step(s)) {
        fill(line, 832, k % each == each - 1 ? kind : 0);
        oct_driver_watch_take(watch, &(struct oct_driver_take){.header = &s->h,
                                                               .payload = line,
                                                               .arrival_ns = s->now_ns,
                                                               .bscan_lines = M});
        wait_ns(s, S / rate_hz);
    }
}

TEST(a_driver_whose_samples_are_of_another_kind_is_named_and_forgotten)
{
    static const struct {
        unsigned kind, fault;
        const char *words;
    } wrong[] = {
        {1, OCT_DRIVER_BYTE_SWAPPED, " messages with wrong samples: the two bytes of each"},
        {2, OCT_DRIVER_FLOAT, " messages with wrong samples: samples are halves of floats"}};
    static const unsigned rates_hz[] = {4, 20, 300, 5000};
    for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++)
        for (size_t r = 0; r < sizeof(rates_hz) / sizeof(rates_hz[0]); r++) {
            struct stand s;
            char text[OCT_ERROR_TEXT_BYTES];
            open_stand(&s);
            send_samples(&s, rates_hz[r], wrong[w].kind, 1);
            assert_int_equal(s.driver.fault, wrong[w].fault);
            assert_in_range(s.blamed_ns, 7 * S, 8 * S); /* octview asks twice a second */
            oct_driver_text(&s.driver, text, sizeof(text));
            assert_non_null(strstr(text, wrong[w].words));
            assert_non_null(strstr(s.driver.cure, "little-endian"));
            send_samples(&s, rates_hz[r], 0, 1);
            assert_int_equal(s.driver.fault, OCT_DRIVER_RIGHT);
            send_samples(&s, rates_hz[r], wrong[w].kind, 3); /* odd ones among right ones */
            assert_int_equal(s.blamed_ns, 0);
            close_stand(&s);
        }
}
