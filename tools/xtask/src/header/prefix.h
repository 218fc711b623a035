/* A host can use another IPv6 address for every request, so a limit for each IPv6 address limits nothing. Limit the /64:
 *
 *     tollbar_prefix client;
 *     if (tollbar_prefix_parse(text, strlen(text), 32, 64, &client) == 0)
 *         tollbar_table_check(table, 0, client.bytes, client.length, 1, NULL);
 */

