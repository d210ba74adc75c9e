/* What the camera driver does wrong, in words for whoever sits at the window. */
#include "daemon/driver_plain.h"
#include "test/rig/tap.h"

#include <string.h>

/* Words of those who write drivers and configurations. */
static const char *const technical[] = {"_",      "sequence", "epoch",   "ZeroMQ",  "socket", "crc",
                                        "header", "flag",     "camera.", "payload", "octctl"};

TEST(each_fault_has_words_without_technical_ones)
{
    const struct oct_driver_message m = {.header = {.n_lines = 8, .n_samples = 4}};
    struct oct_config config = {.camera.samples = 1024};
    char text[128];

    for (unsigned fault = 0; fault < OCT_N_DRIVER_FAULTS; fault++) {
        oct_driver_plain(fault, &m, &config, text, sizeof(text));
        assert_int_equal(text[0] == '\0', fault == OCT_DRIVER_RIGHT);
        assert_true(strlen(text) < 100); /* a line of the window */
        for (size_t i = 0; i < sizeof(technical) / sizeof(technical[0]); i++)
            assert_null(strstr(text, technical[i]));
    }
    oct_driver_plain(OCT_N_DRIVER_FAULTS, &m, &config, text, sizeof(text));
    assert_string_equal(text, "");
}

TEST(numbers_say_what_comes_and_what_is_expected)
{
    struct oct_config config = {.camera.samples = 1024};
    struct oct_driver_message m = {.header = {.n_lines = 10,
                                              .n_samples = 1000,
                                              .format = OCT_LINES_U16,
                                              .first_line = 9000,
                                              .sequence = 30},
                                   .payload_bytes = 80000,
                                   .before_sequence = 20,
                                   .before_line = 4000,
                                   .before_n_lines = 10};
    const struct {
        unsigned fault;
        const char *text;
    } cases[] = {
        {OCT_BAD_SAMPLES, "the camera sends lines of 1000 samples, 1024 are expected"},
        {OCT_BAD_PAYLOAD_SIZE, "the camera sends 80000 bytes of lines, 20000 are expected"},
        {OCT_BAD_FORMAT, "the camera sends samples of kind 2, which octd cannot read"},
        {OCT_BAD_LINES, "the camera's line numbers jump far ahead, to 9000"},
        {OCT_DRIVER_SEQUENCE_JUMPS,
         "the numbers of the camera's messages rise by 10, 1 is expected"},
        {OCT_DRIVER_LINE_OVERLAPS,
         "the numbers of the camera's lines rise by 5000 a message, 10 are expected"},
        {OCT_DRIVER_LINE_COUNTS_SAMPLES,
         "the numbers of the camera's lines rise by 5000 a message, 10 are expected"},
    };
    char text[128];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        oct_driver_plain(cases[i].fault, &m, &config, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
    m.header.n_lines = 0;
    oct_driver_plain(OCT_BAD_LINES, &m, &config, text, sizeof(text));
    assert_string_equal(text, "the camera sends messages without lines");
}
