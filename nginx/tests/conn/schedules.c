/* A model checker: runs every interleaving of the steps of a few owners within a bound of preemptions, and kills one of them at every
 * point. With the argument `all` two owners run in every interleaving without a bound. Any other argument is the name of one scenario. A
 * step is an access to the shared memory.
 *
 * Each owner is a coroutine, which yields before each step. An interleaving is a list of choices. The program finds the next one by
 * changing the last choice that can change, and runs everything again from the beginning.
 *
 * Some owners part while their requests are open, as a worker does that ends with unfinished requests, and leave only afterwards. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void step(void);

#define NGX_TOLLBAR_CONN_STEP() step()
#define NGX_TOLLBAR_CONN_OWNERS 4
#define NGX_TOLLBAR_CONN_ATTEMPTS 2
#include "../../common/ngx_tollbar_conn.c"

#define ACTORS 3
#define DEEPEST 4096
#define SLOTS 8
#define HASH UINT64_C(0x123456789abcdef)

typedef struct {
    const char *name;
    int actors;
    int joined;  /* owners that have joined before the first step; the others join */
    int rounds;  /* the times that each enters and leaves */
    uint32_t limit;
    int changes; /* the most preemptions */
    int kills;   /* the most kills */
    int window;
    int holds;   /* the times that each enters before it leaves */
    int parts;   /* owners, from the first, that part before they leave */
    int reborn;  /* the last process has the number of the first killed one */
} scenario_t;

typedef struct {
    ucontext_t context;
    char stack[32768];
    ngx_tollbar_conn_t view;
    int ended, killed, inside, refused;
} actor_t;

static const scenario_t *scenario;
static actor_t actors[ACTORS];
static ucontext_t scheduler;
static int current = -1;
static uint64_t memory[512];
static int choices[DEEPEST], options[DEEPEST], depth;
static int killed_any;
/* The number of a killed process that another process has now. The start of both is unknown. */
static uint32_t reborn;
static int most_inside, refusals, lets;

static int gone(ngx_tollbar_conn_process_t process, int thorough)
{
    (void) thorough;
    return process.number != reborn && process.number <= ACTORS && actors[process.number - 1].killed;
}

static void fail(const char *what)
{
    int n;

    printf("%s: %s; choices:", scenario->name, what);
    for (n = 0; n < depth; n++) {
        printf(" %d", choices[n]);
    }
    printf("\n");
    exit(1);
}

static void step(void)
{
    if (current >= 0) {
        swapcontext(&actors[current].context, &scheduler);
    }
}

static int inside(void)
{
    int n, sum = 0;

    for (n = 0; n < scenario->actors; n++) {
        sum += actors[n].inside;
    }
    return sum;
}

/* Checks that no slot is marked as undecided unless its owner is deciding a request. */
static void decided(const actor_t *actor)
{
    const memory_t *table = actor->view.memory;
    int n;

    for (n = 0; n < SLOTS; n++) {
        if ((table->slots[n] & DECIDING) != 0 && (table->slots[n] >> OWNER_AT) % NGX_TOLLBAR_CONN_OWNERS == actor->view.owner) {
            fail("one that has an answer is still being decided on");
        }
    }
}

/* One round: enters, and leaves or parts. */
static void enter_and_leave(actor_t *actor, int number, int round)
{
    ngx_tollbar_conn_slot_t slots[4];
    int n, held = 0;

    for (n = 0; n < scenario->holds; n++) {
        if (ngx_tollbar_conn_enter(&actor->view, HASH, scenario->limit, (uint64_t) round, &slots[held]) != NGX_TOLLBAR_CONN_IN) {
            actor->refused++;
            refusals++;
            decided(actor);
            continue;
        }
        held++;
        actor->inside++;
        lets++;
        decided(actor);
        if (inside() > most_inside) {
            most_inside = inside();
        }
        if (inside() > (int) scenario->limit) {
            fail("more than the limit are in");
        }
        /* Other owners run here, and this one may be killed while its request is open. */
        step();
    }
    if (number < scenario->parts) {
        actor->inside = 0;
        ngx_tollbar_conn_part(&actor->view);
        step();
    }
    while (held > 0) {
        actor->inside -= actor->inside > 0;
        ngx_tollbar_conn_leave(&actor->view, slots[--held]);
    }
}

/* The program of one owner. */
static void act(int number)
{
    actor_t *actor = &actors[number];
    ngx_tollbar_conn_process_t self = { (uint32_t) number + 1, 1 };
    int round;

    if (number >= scenario->joined && ngx_tollbar_conn_join(&actor->view, self) != 0) {
        fail("no record was free");
    }
    for (round = 0; round < scenario->rounds; round++) {
        enter_and_leave(actor, number, round);
    }
    actor->ended = 1;
    swapcontext(&actor->context, &scheduler);
}

static int choose(int count)
{
    if (depth == DEEPEST) {
        fail("too deep");
    }
    options[depth] = count;
    return choices[depth++];
}

static void prepare(int number)
{
    actor_t *actor = &actors[number];

    getcontext(&actor->context);
    actor->context.uc_stack.ss_sp = actor->stack;
    actor->context.uc_stack.ss_size = sizeof(actor->stack);
    actor->context.uc_link = NULL;
    makecontext(&actor->context, (void (*)(void)) act, 1, number);
}

/* Checks that the surviving owners can have `limit` requests, although no process has cleaned up. */
static void survivors(void)
{
    ngx_tollbar_conn_slot_t slots[8];
    uint32_t let;
    int n;

    for (n = 0; n < scenario->actors; n++) {
        if (actors[n].killed || actors[n].view.record == 0) {
            continue;
        }
        for (let = 0; ngx_tollbar_conn_enter(&actors[n].view, HASH, scenario->limit, 2000, &slots[let]) == NGX_TOLLBAR_CONN_IN; let++) {
        }
        if (let != scenario->limit) {
            fail("one that is left finds another limit");
        }
        while (let > 0) {
            ngx_tollbar_conn_leave(&actors[n].view, slots[--let]);
        }
    }
}

/* Runs one interleaving from the beginning. */
static void run(void)
{
    static const uint64_t seed[2] = { 1, 2 };
    ngx_tollbar_conn_process_t self = { 0, 1 };
    int n, last = -1, changes = 0, pick, count, candidates[2 * ACTORS];
    ngx_tollbar_conn_slot_t slot;
    ngx_tollbar_conn_t after;
    uint32_t let;

    memset(memory, 0, sizeof(memory));
    memory_t *table = ngx_tollbar_conn_make(memory, sizeof(memory), 1, seed);
    table->slots_n = SLOTS;
    table->window = (uint64_t) scenario->window;
    killed_any = 0;
    reborn = 0;
    depth = 0;
    for (n = 0; n < scenario->actors; n++) {
        memset(&actors[n].view, 0, sizeof(actors[n].view));
        actors[n].view.memory = table;
        actors[n].view.gone = gone;
        actors[n].ended = actors[n].killed = actors[n].inside = actors[n].refused = 0;
        self.number = (uint32_t) n + 1;
        if (n < scenario->joined && ngx_tollbar_conn_join(&actors[n].view, self) != 0) {
            fail("no record was free at the start");
        }
        prepare(n);
    }
    for (;;) {
        int going = last >= 0 && !actors[last].ended && !actors[last].killed;

        count = 0;
        if (going) {
            candidates[count++] = last;
        }
        for (n = 0; n < scenario->actors; n++) {
            if (n != last && !actors[n].ended && !actors[n].killed && (!going || changes < scenario->changes)) {
                candidates[count++] = n;
            }
        }
        if (count == 0) {
            break;
        }
        if (going && killed_any < scenario->kills) {
            candidates[count++] = -1 - last;
        }
        pick = candidates[count > 1 ? choose(count) : 0];
        if (pick < 0) {
            actors[last].killed = 1;
            actors[last].inside = 0;
            killed_any++;
            continue;
        }
        changes += going && pick != last;
        last = current = pick;
        swapcontext(&scheduler, &actors[pick].context);
        current = -1;
    }
    /* For the surviving owners a killed process lives if its number is in use again. Only the process with that number knows better. */
    if (!scenario->reborn) {
        survivors();
    }
    /* After every interleaving the next process can have exactly `limit` requests, and no slot is lost. */
    memset(&after, 0, sizeof(after));
    after.memory = table;
    after.gone = gone;
    self.number = 100;
    for (n = 0; scenario->reborn && n < scenario->actors; n++) {
        if (actors[n].killed) {
            self.number = reborn = (uint32_t) n + 1;
            break;
        }
    }
    if (ngx_tollbar_conn_join(&after, self) != 0) {
        fail("no record is left");
    }
    if (ngx_tollbar_conn_count(&after, HASH) != 0) {
        fail("something is counted that is not there");
    }
    for (n = 0; n < SLOTS; n++) {
        if (table->slots[n] != 0) {
            fail("a slot is lost");
        }
    }
    for (let = 0; ngx_tollbar_conn_enter(&after, HASH, scenario->limit, 1000, &slot) == NGX_TOLLBAR_CONN_IN; let++) {
    }
    if (let != scenario->limit) {
        fail("the limit is another one");
    }
}

/* Moves to the next interleaving. 0: there is none. */
static int advance(void)
{
    while (depth > 0) {
        if (++choices[depth - 1] < options[depth - 1]) {
            memset(&choices[depth], 0, sizeof(choices) - sizeof(choices[0]) * (size_t) depth);
            return 1;
        }
        depth--;
    }
    return 0;
}

int main(int count, char **arguments)
{
    static const scenario_t all[] = {
        { "two", 2, 2, 1, 1, 5, 0, 2, 1, 0, 0 },
        { "two with room for both", 2, 2, 1, 2, 5, 0, 2, 1, 0, 0 },
        { "three, limit 2", 3, 3, 1, 2, 3, 0, 3, 1, 0, 0 },
        { "two, two at a time, limit 2", 2, 2, 1, 2, 4, 0, 2, 2, 0, 0 },
        { "two, twice each, one killed", 2, 2, 2, 1, 3, 1, 2, 1, 0, 0 },
        { "two, one killed, a third joins", 3, 2, 1, 1, 2, 1, 3, 1, 0, 0 },
        { "one, killed, two join", 3, 1, 1, 1, 2, 1, 3, 1, 0, 0 },
        { "two join, both may be killed", 2, 0, 1, 1, 2, 2, 2, 1, 0, 0 },
        { "two, one killed, its number comes again", 2, 2, 1, 1, 2, 1, 2, 1, 0, 1 },
        { "two, one parts", 2, 2, 1, 1, 4, 0, 2, 1, 1, 0 },
        { "one parts with two, two join", 3, 1, 1, 2, 2, 0, 3, 2, 1, 0 },
        { "one parts, another joins, a third asks", 3, 2, 1, 1, 3, 0, 3, 1, 1, 0 },
        { "two part, a third joins", 3, 2, 1, 1, 2, 0, 3, 1, 2, 0 },
    };
    size_t n;
    long orders;

    for (n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
        scenario_t one = all[n];

        scenario = &one;
        if (count > 1 && strcmp(arguments[1], "all") != 0 && strcmp(arguments[1], one.name) != 0) {
            continue;
        }
        if (count > 1 && strcmp(arguments[1], "all") == 0 && one.changes == 5) {
            one.changes = DEEPEST;
        }
        memset(choices, 0, sizeof(choices));
        orders = 0;
        most_inside = refusals = lets = 0;
        do {
            run();
            orders++;
            if (scenario->limit >= (uint32_t) (scenario->actors * scenario->holds) && refusals > 0) {
                fail("refused though there was room for all");
            }
        } while (advance());
        printf("%s: %ld orders, %d let in, %d refused, at most %d at one time\n", scenario->name, orders, lets, refusals,
               most_inside);
    }
    return 0;
}
