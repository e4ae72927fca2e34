/* A thread beside the program's: it has CUPTI hand over what it knows, so that a crash costs little, and after a number
 * of launches has only a part of them timed, so that these cost less. */
#ifndef TUNESMITH_HELPER_H
#define TUNESMITH_HELPER_H

#include "times.h"

#include <signal.h>
#include <time.h>

enum { TICK_MS = 50, TICKS_TO_FLUSH = 4, TICKS_OF_A_ROUND = 20 }; /* in each round one tick is timed */

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t rings;
    int runs, ends;
    uint64_t timed_first; /* launches that are all timed; 0: all are */
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};

static int helper_waits(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&helper.lock);
    if (!helper.ends) pthread_cond_timedwait(&helper.rings, &helper.lock, &until);
    int goes_on = !helper.ends;
    pthread_mutex_unlock(&helper.lock);
    return goes_on;
}

static void *helper_runs(void *nothing) {
    int timing = 1;
    for (unsigned tick = 1; helper_waits(); tick++) {
        if (tick % TICKS_TO_FLUSH == 0) cupti.cuptiActivityFlushAll(0);
        if (!helper.timed_first || !cupti.cuptiActivityDisable) continue;
        /* Kernels of graphs are counted by their times, so there all are taken. */
        int all = trace.header->launches < helper.timed_first || trace.header->graphs;
        int wanted_now = all || tick % TICKS_OF_A_ROUND == 0;
        if (wanted_now == timing) continue;
        if (wanted_now) cupti.cuptiActivityEnable(ACTIVITY_KERNEL);
        else cupti.cuptiActivityDisable(ACTIVITY_KERNEL);
        trace.header->sampled = 1;
        timing = wanted_now;
    }
    return nothing;
}

static void helper_started(uint64_t timed_first) {
    sigset_t all, before;
    helper.timed_first = timed_first;
    helper.ends = 0;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    helper.runs = !pthread_create(&helper.thread, NULL, helper_runs, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void helper_ended(void) {
    if (!helper.runs) return;
    pthread_mutex_lock(&helper.lock);
    helper.ends = 1;
    pthread_cond_signal(&helper.rings);
    pthread_mutex_unlock(&helper.lock);
    pthread_join(helper.thread, NULL);
    helper.runs = 0;
}

static void helper_lost(void) { /* in a child of a fork, where there is no such thread */
    helper.runs = 0;
    helper.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

#endif
