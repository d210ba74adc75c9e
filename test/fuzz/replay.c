/* Feeds a target the inputs that are kept for it, test/fuzz/corpus/NAME of the program
 * test_fuzz_NAME, or the files named on the command line. TAP. A fault ends the program; the last
 * line is then the input that did it. */
#include "test/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1u << 20)

static void replay(const char *path, unsigned number)
{
    FILE *file = fopen(path, "rb");
    uint8_t *kept = malloc(MOST_BYTES);
    fuzz_must(file && kept);
    size_t n = fread(kept, 1, MOST_BYTES, file);
    fclose(file);
    uint8_t *exact = malloc(n ? n : 1); /* a read beyond is then seen */
    fuzz_must(exact != NULL);
    memcpy(exact, kept, n);
    free(kept);
    printf("# %s\n", path);
    LLVMFuzzerTestOneInput(exact, n);
    LLVMFuzzerTestOneInput(exact, n); /* what the first left behind must do no harm */
    free(exact);
    printf("ok %u - %s\n", number, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

int main(int argc, char **argv)
{
    char folder[1024], path[2048];
    const char *top = getenv("OCT_TOP"), *name = strstr(argv[0], "test_fuzz_");
    struct dirent **entries = NULL;
    unsigned number = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        replay(argv[i], ++number);
    if (argc > 1)
        return 0;
    snprintf(folder, sizeof(folder), "%s/test/fuzz/corpus/%s", top ? top : ".",
             name ? name + strlen("test_fuzz_") : "");
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replay(path, ++number);
        free(entries[i]);
    }
    free(entries);
    printf("1..%u\n", number);
    if (number == 0)
        printf("not ok - no input in %s\n", folder);
    return number == 0;
}
