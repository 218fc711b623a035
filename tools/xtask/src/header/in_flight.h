/* A rate limits how many requests begin in a time. It does not limit how many run: if each takes ten times as long, ten times as many run. An
 * in-flight table limits how many requests, connections or uploads a key has open at one time.
 *
 *     tollbar_in_flight_options options = TOLLBAR_IN_FLIGHT_OPTIONS_INIT;
 *     tollbar_in_flight *uploads;
 *     options.capacity = 10000;
 *     if (tollbar_in_flight_open("/dev/shm/uploads", &options, &uploads) != 0)
 *         return -1;
 *     ...
 *     tollbar_ticket ticket;
 *     if (tollbar_in_flight_acquire(uploads, user, user_length, 4, &ticket) != TOLLBAR_ALLOWED)
 *         return too_many();
 *     receive(upload);
 *     tollbar_in_flight_release(uploads, ticket);
 *
 * A key never has more permits in flight than the limit, however processes and threads interleave.
 * Each call gives its own limit, so the limit may change at any time. If more permits than the new
 * limit are in flight, calls are refused until enough of them are released. Near the limit a call
 * may be refused although a permit is free, if it meets calls of other threads for the same key at
 * each of 24 attempts.
 *
 * Cost. If no other thread changes the key's slot, an acquisition is two atomic read-modify-write
 * operations. It takes no lock and allocates nothing. It makes system calls only if it is the first
 * of its process, or if it meets the limit or a full table.
 *
 * Processes. Each view of a table is an *owner* from its first permit on.
 *
 *   - A process that ends, or is killed, needs to release nothing. When the key refuses a request of another process,
 *     that process asks the system which owners of the key's permits have ended, at most once a millisecond for each
 *     owner. It frees the permits of those owners and tries again. Nothing sweeps the table, and no request waits.
 *   - A process that is stopped, or whose first thread has ended, still lives, and keeps its permits. So does a
 *     process that calls exec: close the table before.
 *   - A forked child is another owner. It can use its parent's view, and cannot release its parent's tickets. A child
 *     in another PID namespace cannot tell whether the other owners live, nor they whether it does:
 *     TOLLBAR_E_PID_NAMESPACE.
 *
 * A *send window* limits the permits of one process, without keys, in 8 bytes of the caller's
 * memory, as the send window of TCP does. The receiver acknowledges permits one by one
 * (tollbar_send_window_release) or all up to a number (tollbar_send_window_acknowledge). Use only
 * one of the two calls for a window.
 *
 *     static tollbar_send_window window;
 *     tollbar_send_window_resize(&window, 4);
 *     ...
 *     if (tollbar_send_window_acquire(&window, 1, &message->number) != TOLLBAR_ALLOWED)
 *         return wait_for_acknowledgement();
 *     ...
 *     tollbar_send_window_acknowledge(&window, answer->last_number);
 */

