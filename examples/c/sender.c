/* A sender of text messages: callers submit messages at any rate, and a worker sends 20 a second, in their order.
 *
 *     cc sender.c $(pkg-config --cflags --libs tollbar) -lpthread -o sender && ./sender
 *
 * Of 40 messages at once the queue keeps 25, and one leaves at once. The other 14 are refused at
 * once, and their
 * caller may try later. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tollbar.h>

struct message {
    int number;
};

static void *work(void *outbox) {
    void *item;
    /* Sleeps until a message may leave. The queue ends the loop by TOLLBAR_E_CLOSED. */
    while (tollbar_queue_take_within(outbox, UINT64_MAX, &item) == TOLLBAR_ALLOWED) {
        struct message *message = item;
        printf("message %d leaves\n", message->number);
        free(message);
    }
    return NULL;
}

int main(void) {
    tollbar_queue *outbox;
    pthread_t worker;
    int n, refused = 0;

    if (tollbar_queue_from_text("20/s algo pacer", 25, &outbox, NULL) != 0)
        return 1;
    for (n = 0; n < 40; n++) {
        struct message *message = malloc(sizeof *message);
        if (message == NULL)
            return 1;
        message->number = n;
        if (tollbar_queue_offer(outbox, message, NULL) != TOLLBAR_ALLOWED) {
            free(message);
            refused++;
        }
    }
    printf("%d refused\n", refused);
    if (pthread_create(&worker, NULL, work, outbox) != 0)
        return 1;
    tollbar_queue_close(outbox);
    pthread_join(worker, NULL);
    tollbar_queue_free(outbox);
    return 0;
}
