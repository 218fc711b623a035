/* Options with their defaults; set capacity. */
#define TOLLBAR_IN_FLIGHT_OPTIONS_INIT { (uint32_t)sizeof(tollbar_in_flight_options), 0, 0, 0, 0 }

/* Details to be filled in. */
#define TOLLBAR_SEND_WINDOW_STATE_INIT { (uint32_t)sizeof(tollbar_send_window_state), 0, 0, 0, 0, 0 }

