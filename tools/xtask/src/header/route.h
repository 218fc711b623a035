/* Where each node of a cluster limits on its own, the requests of a key must reach one node. Every caller that knows the same nodes chooses
 * the same node for a key, without asking anybody. If a node leaves, only its own keys move, and
 * they spread over the others by their weights.
 *
 *     static const tollbar_node nodes[] = {{"10.0.0.1", 8, 1, 0}, {"10.0.0.2", 8, 2, 0}};       // the second gets two thirds of the keys
 *     size_t node = 0;
 *     if (tollbar_route(nodes, 2, user, strlen(user), seed, &node) == TOLLBAR_YES)
 *         send_to(nodes[node].name, request);
 *
 * The method is weighted rendezvous hashing with SipHash-2-4. It takes 100 to 200 ns for each node.
 */

