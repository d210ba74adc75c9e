/* Messages: one line of text that does nothing to a terminal. */
#include "test/rig/tap.h"

#include "pipeline/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

TEST(messages_keep_text_and_drop_what_steers_a_terminal)
{
    static const char *const cases[][2] = {
        {"plain, 1.5 um", "plain, 1.5 um"},
        {"\xce\xbbm \xe2\x82\xac \xf0\x9f\x91\x81", "\xce\xbbm \xe2\x82\xac \xf0\x9f\x91\x81"},
        {"a\nb\tc\033[1m\x7f", "a?b?c?[1m?"},
        {"\x9b"
         "31m",
         "?31m"}, /* CSI as one byte */
        {"\xc2\x9b"
         "31m",
         "??31m"},                           /* the same as UTF-8 */
        {"\xc2\xa0", "\xc2\xa0"},            /* the first character beyond C1 */
        {"\x89HDF\r\n\x1a", "?HDF???"},      /* another kind of file */
        {"\xff\xfe\x80", "???"},             /* never UTF-8 */
        {"\xc3", "?"},                       /* cut short by the end */
        {"\xe2\x82", "??"},                  /* likewise */
        {"\xe2\x82x", "??x"},                /* cut short by another character */
        {"\xc0\xaf \xe0\x80\xaf", "?? ???"}, /* overlong */
        {"\xf0\x80\x80\xaf", "????"},        /* overlong */
        {"\xed\xa0\x80", "???"},             /* a surrogate */
        {"\xf4\x90\x80\x80", "????"},        /* beyond Unicode */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oct_error err;
        assert_int_equal(oct_fail(&err, OCT_E_FORMAT, "%s", cases[i][0]), OCT_E_FORMAT);
        assert_string_equal(err.text, cases[i][1]);
    }
}

TEST(a_character_cut_by_the_end_of_the_message_is_replaced)
{
    struct oct_error err;
    char text[OCT_ERROR_TEXT_BYTES + 8];
    memset(text, 'a', sizeof(text));
    memcpy(text + OCT_ERROR_TEXT_BYTES - 2, "\xce\xbb", 3); /* its first byte still fits */
    oct_fail(&err, OCT_E_IO, "%s", text);
    assert_int_equal(strlen(err.text), OCT_ERROR_TEXT_BYTES - 1);
    assert_int_equal(err.text[OCT_ERROR_TEXT_BYTES - 2], '?');
    assert_int_equal(err.text[OCT_ERROR_TEXT_BYTES - 3], 'a');
}

TEST(a_full_disk_has_its_own_code)
{
    struct oct_error err;
    assert_int_equal(oct_fail_errno(&err, OCT_E_IO, ENOSPC, "x.h5"), OCT_E_NO_SPACE);
    assert_int_equal(err.code, OCT_E_NO_SPACE);
    assert_int_equal(strncmp(err.text, "x.h5: ", 6), 0);
    assert_int_equal(oct_fail_errno(NULL, OCT_E_CONFIG, ENOSPC, "x.h5"), OCT_E_CONFIG);
    assert_int_equal(oct_exit_status(OCT_E_CONFIG), 2);
    assert_int_equal(oct_exit_status(OCT_E_IO), 1);
}

TEST(an_error_carries_the_keys_at_fault_until_it_is_filled_again)
{
    struct oct_error err;
    assert_int_equal(
        oct_fail_key(&err, OCT_E_CONFIG, "scan.lines pipeline.dc", "scan.lines is %d", 1),
        OCT_E_CONFIG);
    assert_string_equal(err.text, "scan.lines is 1");
    assert_string_equal(err.key, "scan.lines pipeline.dc");
    oct_fail(&err, OCT_E_IO, "another fault");
    assert_string_equal(err.key, "");
    assert_int_equal(oct_error_blame(&err, OCT_E_IO, "record.directory"), OCT_E_IO);
    assert_string_equal(err.text, "another fault");
    assert_string_equal(err.key, "record.directory");
    assert_int_equal(oct_fail_key_errno(&err, OCT_E_IO, "record.directory", ENOSPC, "/x"),
                     OCT_E_NO_SPACE);
    assert_int_equal(strncmp(err.text, "/x: ", 4), 0);
    assert_string_equal(err.key, "record.directory");
    assert_int_equal(oct_fail_key(NULL, OCT_E_CONFIG, "scan.lines", "nobody asks"), OCT_E_CONFIG);
}

TEST(an_error_knows_where_the_value_of_a_key_ends)
{
    struct oct_error err;
    oct_fail_key(&err, OCT_E_CONFIG, "a.b", "more than c.d (%d", 8);
    assert_int_equal(oct_error_go_on(&err, OCT_E_CONFIG, "c.d", ") or\n%d", 9), OCT_E_CONFIG);
    assert_string_equal(err.text, "more than c.d (8) or?9");
    assert_string_equal(err.key, "a.b");
    assert_string_equal(err.value_key, "c.d");
    assert_string_equal(err.text + err.value_end, ") or?9");
    oct_fail(&err, OCT_E_IO, "another fault");
    assert_string_equal(err.value_key, "");
    oct_fail(&err, OCT_E_IO, "%*s", OCT_ERROR_TEXT_BYTES, ""); /* no room for more */
    oct_error_go_on(&err, OCT_E_IO, "c.d", "rest");
    assert_int_equal(strlen(err.text), OCT_ERROR_TEXT_BYTES - 1);
    assert_int_equal(oct_error_go_on(NULL, OCT_E_IO, "c.d", "rest"), OCT_E_IO);
}
