/* What a core can multiply and add at most: a limit for arithmetic. */
#ifndef OCT_TOOLS_BENCH_MULTIPLY_ADD_H
#define OCT_TOOLS_BENCH_MULTIPLY_ADD_H

/* Multiply-adds of f32 a second of CPU time, in registers, with the instruction set "avx512",
 * "avx2" (with FMA) or any other: vectors of four. The best of runs of about `seconds` together.
 * The CPU must have the set. */
double oct_bench_multiply_adds(const char *simd, double seconds);

/* CPU time of this thread, and of all threads of the process, s. */
double oct_bench_cpu_s(void);
double oct_bench_process_cpu_s(void);

#endif
