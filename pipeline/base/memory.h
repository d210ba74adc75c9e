/* How much memory a process may still take. No state; any thread. */
#ifndef OCT_PIPELINE_BASE_MEMORY_H
#define OCT_PIPELINE_BASE_MEMORY_H

/* The least of what the machine has available, what is left to this process's control group
 * (version 2; pages of files count as free) and what is left of its limits of address space and
 * data; bytes. *limit: which of them, for a message; NULL: not asked for. */
double oct_memory_available_bytes(const char **limit);

#endif
