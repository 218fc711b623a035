/* A meter to start from: its period is a second. Set `committed_bytes`, `committed_burst` and
 * `second_burst`, and for two rates `peak_bytes`. */
#define TOLLBAR_METER_INIT { (uint32_t)sizeof(tollbar_meter), 0, 0, 1000000000, 0, 0, 0 }
