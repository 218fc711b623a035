/* A rate limits how many requests begin in a time. It does not limit how many run: if each takes ten times as long, ten times as many run. An
 * in-flight table limits how many a key has open at one time: requests, connections, uploads.
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
 * A key never has more permits in flight than the limit, whatever processes and threads do. A permit that is free is taken by two atomic swaps,
 * without a lock, a system call or an allocation.
 *
 * Each view of a table is an *owner* from its first permit on. A process that ends, or is killed, needs to release nothing: as soon as another
 * process is refused by the same key, it asks the system after the owners that have some of that key, at most once a millisecond each, and what
 * a dead one had is free again. Nothing sweeps the table, and no request waits. A process that is stopped, or whose first thread has ended,
 * lives, and keeps its permits. So does one that calls exec: close the table before.
 *
 * A child that is forked is another owner. It can use its parent's view, and cannot release its parent's tickets.
 *
 * The limit is each call's own, so it may change at any time. If it is below what is in flight, permits are refused until enough of them are released.
 * A call may also be refused that meets others of the same key on every one of 24 tries, when the limit is nearly reached.
 *
 * A *send window* is the same for one process and without keys: 8 bytes of yours, as the send window of TCP. The receiver gives permits back one
 * by one (tollbar_send_window_release) or all up to a number (tollbar_send_window_acknowledge). A window is used with one of the two.
 *
 *     static tollbar_send_window window;
 *     tollbar_send_window_resize(&window, 4);
 *     ...
 *     if (tollbar_send_window_acquire(&window, 1, &message->number) != TOLLBAR_ALLOWED)
 *         return wait_for_acknowledgement();
 *     ...
 *     tollbar_send_window_acknowledge(&window, answer->last_number);
 */

