/* A hierarchy divides one rate among classes, for example a service's rate among its tenants, and a tenant's part among its users. Each class has a
 * guaranteed rate and a ceiling, and borrows what others leave idle.
 *
 *     tollbar_policy_spec nodes = TOLLBAR_POLICY_SPEC_INIT;
 *     const tollbar_policy_spec *policies[] = {&nodes};
 *     tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(10000);
 *     tollbar_table *table;
 *     tollbar_hierarchy *shop;
 *     uint32_t acme, byte, users;
 *     options.on_full = TOLLBAR_ON_FULL_DENY;
 *     tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, strlen(TOLLBAR_HIERARCHY_POLICY), &nodes, NULL);
 *     tollbar_table_new(policies, 1, &options, &table);
 *     tollbar_hierarchy_new("1000/s", 100000000, 8, 0, &shop);                             // up to 8 classes, 100 ms of burst
 *     tollbar_hierarchy_add(shop, TOLLBAR_HIERARCHY_ROOT, "acme", "400/s", "", 1, &acme);   // guaranteed 400/s, up to 1000/s
 *     tollbar_hierarchy_add(shop, TOLLBAR_HIERARCHY_ROOT, "byte", "100/s", "500/s", 1, &byte);
 *     tollbar_hierarchy_add(shop, acme, "users", "1/s", "50/s", 100, &users);               // up to 100 users with a guarantee
 *     ...
 *     if (tollbar_hierarchy_take(shop, table, users, "ann", 3, 1, NULL) != TOLLBAR_ALLOWED)
 *         return too_many();                                                               // nothing has been charged
 *
 * A node never exceeds its ceiling, nor that of a node above it. It gets its guaranteed rate
 * whatever others ask for: tollbar_hierarchy_add refuses a node if the guarantees of its siblings
 * and its own exceed the parent's. The nearest classes that ask for more get the permits that a
 * class does not use, and all borrowers of a class get the same rate, or what they ask for if that
 * is less. In a simulation 1,000 tenants get such max-min fair shares within 0.5 %.
 * docs/hierarchy.md has the exact guarantees and the limits.
 *
 * A call charges the leaf first and the root last, all or none. If it loses a race for a node, it
 * gives the charges below that node back, without what has refilled since. A process that is killed
 * between two charges leaves those that it has made.
 *
 * Each node is a key of the table, so processes share it: make the same hierarchy in each of them.
 * A hierarchy of
 * other rates whose classes have the same names finds the same nodes, with their debts. */
