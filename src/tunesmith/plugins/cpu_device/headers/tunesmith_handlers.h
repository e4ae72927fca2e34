// What compilers call before each access (-fsanitize=thread) and at each fault (-fsanitize=undefined).
#pragma once
using namespace __tunesmith;
#define HERE __builtin_return_address(0)
#define ACCESS(bytes)                                                                      \
    void __tsan_read##bytes(void *at) { aligned(at, bytes, HERE), touch(at, bytes, false, HERE); }  \
    void __tsan_write##bytes(void *at) { aligned(at, bytes, HERE), touch(at, bytes, true, HERE); }  \
    void __tsan_unaligned_read##bytes(void *at) { touch(at, bytes, false, HERE); }         \
    void __tsan_unaligned_write##bytes(void *at) { touch(at, bytes, true, HERE); }         \
    void __tsan_read_write##bytes(void *at) { touch(at, bytes, false, HERE), touch(at, bytes, true, HERE); }

struct Source { const char *file; unsigned line, column; };
static void fault(const Source &where, const char *words, const void *place)
{
    settle();
    if (Finding *now = report(here(place), words)) {
        now->file = where.file;
        now->line = where.line;
    }
}
#define OVERFLOW_OF(name, words)                                                                  \
    void __ubsan_handle_##name(Source *where, void *, void *) { fault(*where, words, HERE); }     \
    void __ubsan_handle_##name##_abort(Source *where, void *, void *) { fault(*where, words, HERE); }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void *caller)
{
    Thread &own = threads[current];
    own.calls[own.depth % DEPTH] = caller;
    own.depth++;
}
void __tsan_func_exit() { threads[current].depth--; }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *at, size_t bytes) { touch(at, bytes, false, HERE); }
void __tsan_write_range(void *at, size_t bytes) { touch(at, bytes, true, HERE); }
void __tsan_vptr_update(void **at, void *) { touch(at, sizeof at, true, HERE); }
void __tsan_vptr_read(void **at) { touch(at, sizeof at, false, HERE); }
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false, HERE);
    touch(to, bytes, true, HERE);
    return memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false, HERE);
    touch(to, bytes, true, HERE);
    return memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes)
{
    touch(to, bytes, true, HERE);
    return memset(to, value, bytes);
}
OVERFLOW_OF(add_overflow, "an integer that overflows: a sum")
OVERFLOW_OF(sub_overflow, "an integer that overflows: a difference")
OVERFLOW_OF(mul_overflow, "an integer that overflows: a product")
void __ubsan_handle_negate_overflow_abort(Source *where, void *) { fault(*where, "an integer that overflows: negated", HERE); }
void __ubsan_handle_negate_overflow(Source *where, void *) { fault(*where, "an integer that overflows: negated", HERE); }
OVERFLOW_OF(divrem_overflow, "an integer divided by zero, or that overflows")
void __ubsan_handle_out_of_bounds(Source *where, void *)
{
    fault(*where, "an index outside an array of a fixed size", HERE);
    fail("an index lies outside an array of a fixed size");
}
struct Mismatch { Source where; const void *type; unsigned char log_alignment, kind; };
void __ubsan_handle_type_mismatch_v1(Mismatch *found, void *at)
{
    if (!is_misaligned(at, (size_t)1 << found->log_alignment))
        return;
    const Source *where = &found->where;
    fault(*where, "a misaligned access", HERE);
    fail("an access is misaligned");  // which may end the process
}
void __ubsan_handle_float_cast_overflow(Source *where, void *)
{
    fault(*where, TUNESMITH_BEYOND, HERE);
}
void __ubsan_handle_pointer_overflow(Source *where, void *, void *) { fault(*where, "a pointer that overflows", HERE); }
}
