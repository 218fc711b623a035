/* A question to be filled in. */
#define TOLLBAR_STORE_QUESTION_INIT                                                                  \
    { (uint32_t)sizeof(tollbar_store_question), 0, 0, NULL, {0}, 0, 0, {0} }
