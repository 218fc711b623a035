/* A meter colours packets, and lets the caller decide what to do with each colour: send green ones, mark or delay yellow ones, drop red ones.
 *
 *     static tollbar_meter_state uploads;                          // full buckets
 *     tollbar_meter meter = TOLLBAR_METER_INIT;
 *     meter.committed_bytes = 1000000;                             // a second
 *     meter.committed_burst = 100000;
 *     meter.second_burst = 50000;
 *     switch (tollbar_meter_color(&meter, &uploads, length, TOLLBAR_COLOR_GREEN)) {
 *     case TOLLBAR_COLOR_GREEN:  return send(packet);
 *     case TOLLBAR_COLOR_YELLOW: return send_marked(packet);
 *     default:                   return drop(packet);
 *     }
 *
 * With one rate (RFC 2697, srTCM) tokens go to the committed bucket and, while that is full, to the
 * excess bucket. A packet is green if the committed bucket has its bytes, yellow if the excess
 * bucket has them. With two rates (RFC 2698, trTCM) each bucket has its own rate: a packet is red
 * if the peak bucket lacks its bytes, yellow if only the committed one does. The colours are those
 * of the RFCs' texts, token by token.
 *
 * One meter may serve any number of states. The calls take no lock: a state changes by one 16-byte compare-and-swap. */
