/* A thread beside the program's: it has CUPTI hand over what it knows, so that a crash costs little. */
#ifndef TUNESMITH_HELPER_H
#define TUNESMITH_HELPER_H

#include "times.h"

#include <signal.h>
#include <time.h>

enum { FLUSHED_MS = 200 };

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t rings;
    int runs, ends;
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};

static int helper_waits(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += FLUSHED_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&helper.lock);
    if (!helper.ends) pthread_cond_timedwait(&helper.rings, &helper.lock, &until);
    int goes_on = !helper.ends;
    pthread_mutex_unlock(&helper.lock);
    return goes_on;
}

static void *helper_runs(void *nothing) {
    while (helper_waits()) cupti.cuptiActivityFlushAll(0);
    return nothing;
}

static void helper_started(void) {
    sigset_t all, before;
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
