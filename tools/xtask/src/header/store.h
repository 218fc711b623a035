/* A limit that the store decides: each decision is one call of a script, which the program makes with
 * the Redis client that it has. The store's clock and state are the only ones, so any number of
 * machines admit exactly what one limiter would, at the price of a round trip for each decision.
 *
 *     tollbar_store_limit_new("logins", 6, &spec, &logins);
 *
 *     (any thread)
 *     tollbar_store_question question = TOLLBAR_STORE_QUESTION_INIT;
 *     tollbar_store_ask(logins, TOLLBAR_STORE_CHECK, address, length, 1, &question);
 *     count = evalsha(redis, &question, numbers);
 *     verdict = tollbar_store_answer(logins, &question, numbers, count, NULL, NULL);
 *
 * Here `evalsha` stands for the program's client. A request whose call fails has no decision: the
 * program chooses whether it passes.
 */
