/* A limit by IPv6 address is none, since a host can change its address with every request: take its /64.
 *
 *     tollbar_prefix client;
 *     if (tollbar_prefix_parse(text, strlen(text), 32, 64, &client) == 0)
 *         tollbar_table_check(table, 0, client.bytes, client.length, 1, NULL);
 */

