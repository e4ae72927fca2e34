// Runs many kernels, each in a process of its own with a deadline, and holds what they leave against the first
// of their case. Arrays lie against a page that may not be touched, now with their end, now with their start;
// inputs cannot be written. Linked with the kernels of a batch, which define `entries`, and with the runtime of
// the cpu device.
#include <csignal>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern void (*const entries[])(void **);
extern "C" int __tunesmith_launch(void (*call)(void **), const unsigned *grid, const unsigned *block, size_t dynamic,
                                  void **given, const void *arrays, int array_count, unsigned long long seed,
                                  char *message, size_t room);

namespace harness {
using Number = long long;
struct Array { Number bytes, align, kind, is_input; const unsigned char *initial; };
struct Placed { unsigned char *pages, *start; size_t room; };

static const size_t PAGE = 4096;
static const unsigned char MARGIN = 0xAB;
static char *message;  // shared with the child
static const std::vector<Array> *arrays;
static const std::vector<Placed> *placed;

static void fault(int number, siginfo_t *info, void *)
{
    const unsigned char *at = (const unsigned char *)info->si_addr;
    const char *what = number == SIGSEGV ? "an access outside every array" : "misaligned, or beyond a fixed array";
    snprintf(message, 256, "%s", what);
    for (size_t i = 0; number == SIGSEGV && i < placed->size(); i++) {
        const Placed &own = (*placed)[i];
        const long long offset = at - own.start;
        if (at >= own.pages - PAGE && at < own.pages + own.room + PAGE)
            snprintf(message, 256, "array %zu touched at byte %lld of %lld%s", i, offset, (*arrays)[i].bytes,
                     offset >= 0 && offset < (*arrays)[i].bytes ? ", an input that is written" : "");
    }
    _exit(4);
}

static Placed place(const Array &array, bool at_end)
{
    const size_t align = array.align, room = (array.bytes + PAGE - 1) / PAGE * PAGE + (array.bytes ? 0 : PAGE);
    unsigned char *pages = (unsigned char *)mmap(nullptr, room + 2 * PAGE, PROT_READ | PROT_WRITE,
                                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, PAGE, PROT_NONE);
    pages += PAGE;
    mprotect(pages + room, PAGE, PROT_NONE);
    unsigned char *start = at_end ? pages + room - (array.bytes + align - 1) / align * align : pages;
    memset(pages, MARGIN, room);
    if (array.initial)
        memcpy(start, array.initial, array.bytes);
    else
        memset(start, 0xff, array.bytes);
    return {pages, start, room};
}

static double of_half(unsigned short bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static double of_brain(unsigned short bits)
{
    const unsigned whole = (unsigned)bits << 16;
    float value;
    memcpy(&value, &whole, 4);
    return value;
}

static double value_at(const unsigned char *bytes, Number kind, size_t place)
{
    if (kind == 1) { float v; memcpy(&v, bytes + 4 * place, 4); return v; }
    if (kind == 2) { double v; memcpy(&v, bytes + 8 * place, 8); return v; }
    if (kind == 3 || kind == 4) {
        unsigned short bits;
        memcpy(&bits, bytes + 2 * place, 2);
        return kind == 3 ? of_half(bits) : of_brain(bits);
    }
    return bytes[place];
}

// Where two arrays differ as numbers, -1 where nowhere: both zeros are one, and so is everything that is none.
static long long difference(const unsigned char *a, const unsigned char *b, const Array &array)
{
    static const size_t width[] = {1, 4, 8, 2, 2};
    if (!memcmp(a, b, array.bytes))
        return -1;
    for (size_t i = 0; i < array.bytes / width[array.kind]; i++) {
        const double x = value_at(a, array.kind, i), y = value_at(b, array.kind, i);
        if (!(x == y || (x != x && y != y)))
            return (long long)i;
    }
    return -1;
}

static void child(const Number *run, void **arguments, size_t seconds)
{
    static char stack[64 << 10];
    stack_t own = {stack, 0, sizeof stack};
    sigaltstack(&own, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE})
        sigaction(number, &action, nullptr);
    alarm(seconds);
    const unsigned grid[3] = {(unsigned)run[1], (unsigned)run[2], (unsigned)run[3]};
    const unsigned block[3] = {(unsigned)run[4], (unsigned)run[5], (unsigned)run[6]};
    for (size_t i = 0; i < arrays->size(); i++)
        if ((*arrays)[i].is_input)
            mprotect((*placed)[i].pages, (*placed)[i].room, PROT_READ);
    _exit(__tunesmith_launch(entries[run[0]], grid, block, run[7], arguments, nullptr, 0, run[8], message, 256) ? 4 : 0);
}

// The strays of a run, or where it differs from the first; empty where all is well.
static void judge(const std::vector<Array> &all, const std::vector<Placed> &got, const std::vector<Placed> *want,
                  char *text)
{
    for (size_t i = 0; i < all.size(); i++) {
        const Placed &own = got[i];
        for (size_t p = 0; p < own.room; p++)
            if ((own.pages + p < own.start || own.pages + p >= own.start + all[i].bytes) && own.pages[p] != MARGIN) {
                snprintf(text, 256, "stray array %zu written at byte %lld", i, (long long)(own.pages + p - own.start));
                return;
            }
        const long long where = want ? difference(own.start, (*want)[i].start, all[i]) : -1;
        if (where >= 0) {
            snprintf(text, 256, "differs array %zu at element %lld: %.9g for %.9g", i, where,
                     value_at(own.start, all[i].kind, where), value_at((*want)[i].start, all[i].kind, where));
            return;
        }
    }
    snprintf(text, 256, "ok");
}

static const Number *one_case(const Number *p, size_t index, size_t seconds)
{
    std::vector<Array> own(*p++);
    for (Array &array : own) {
        array = {p[0], p[1], p[2], p[3], p[4] ? (const unsigned char *)(p + 5) : nullptr};
        p += 5 + (array.initial ? (array.bytes + 7) / 8 : 0);
    }
    const Number *scalars = p + 1;
    p += 1 + *p;
    const size_t runs = *p++;
    std::vector<Placed> first;
    arrays = &own;
    for (size_t r = 0; r < runs; r++, p += 10 + p[9]) {
        std::vector<Placed> here;
        for (const Array &array : own)
            here.push_back(place(array, p[8] & 1));
        std::vector<void *> arguments;
        for (Number i = 0; i < p[9]; i++) {
            const size_t which = p[10 + i];
            const bool is_array = which < own.size();
            arguments.push_back(is_array ? (void *)here[which].start : (void *)(scalars + which - own.size()));
        }
        placed = &here;
        message[0] = 0;
        const pid_t id = fork();
        if (id == 0)
            child(p, arguments.data(), seconds);
        int status;
        waitpid(id, &status, 0);
        char text[256];
        if (status == 0)
            judge(own, here, r ? &first : nullptr, text);
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(text, 256, "timeout");
        else
            snprintf(text, 256, "crash %s", message[0] ? message : "the process ended");
        printf("%zu %zu %s\n", index, r, text);
        if (r == 0)
            first = here;
        else
            for (const Placed &array : here)
                munmap(array.pages - PAGE, array.room + 2 * PAGE);
    }
    for (const Placed &array : first)
        munmap(array.pages - PAGE, array.room + 2 * PAGE);
    return p;
}
}  // namespace harness

// The job: cases, then for each its arrays with what they hold, its scalars, and its runs.
int main(int count, char **words)
{
    using namespace harness;
    message = (char *)mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    FILE *file = fopen(words[1], "rb");
    std::vector<Number> job;
    Number number;
    while (fread(&number, sizeof number, 1, file) == 1)
        job.push_back(number);
    fclose(file);
    const Number *p = job.data();
    const size_t cases = *p++;
    for (size_t i = 0; i < cases; i++)
        p = one_case(p, i, count > 2 ? atoi(words[2]) : 5);
    return 0;
}
