/* Calls without _at read a clock. On one host all of these have the same zero (boot) and scale, in
 * every process. */

