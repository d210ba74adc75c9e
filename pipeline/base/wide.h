/* OCT_WIDE before a function with a loop that gcc makes vector code of: code of its own for
 * processors with AVX2 and with AVX-512. The choice is made when the program is loaded, which
 * sanitizers do not stand. clang names what chooses after static functions alone, which collide,
 * and leaves out the name that other files call: it gets the default. */
#ifndef OCT_PIPELINE_BASE_WIDE_H
#define OCT_PIPELINE_BASE_WIDE_H

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
#define OCT_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define OCT_WIDE
#endif

#endif
