/* Lines for people, no wider than their terminal. */
#ifndef OCT_TOOLS_WRAP_H
#define OCT_TOOLS_WRAP_H

#define OCT_WRAP_COLUMNS 80u /* where standard output is no terminal */

/* Between the two, what is printed to stdout is kept. end prints it, each line broken to the
 * terminal's columns: behind a comma, else at a blank; a word that is wider stays whole. What
 * follows stands below the value: behind `label` columns, or two more where the line is indented.
 * Control characters become '?'. begin returns what end takes; where it cannot keep anything, lines
 * are printed as they come. One thread. */
int oct_wrap_begin(void);
void oct_wrap_end(int kept, unsigned label);

#endif
