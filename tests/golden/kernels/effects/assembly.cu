// What instructions do.
// read: effects of assembly

// case: instructions
// each line
asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(a) : "r"(b), "r"(c), "r"(d));  // want: none
asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(p) : "f"(a), "f"(b));  // want: none
__asm__ __volatile__("prmt.b32 %[r], %[x], 0, 0x1010;" : [r] "=r"(a) : [x] "r"(b));  // want: none
asm("mov.b32 {%0, %1}, %2;" : "=h"(a), "=h"(b) : "r"(c));  // want: none
asm("{ .reg .pred p;\n\tsetp.ne.b32 p, %1, 0; //\n@p mov.u32 %0, 7; }" : "+r"(a) : "r"(b));  // want: none
asm("fma.rn.f32 %0, %1, 0f3F800000, %0;" : "+f"(a) : "f"(std::max(b, c)));  // want: none
asm("add.cc.u32 %0, %2, %3;" "addc.u32 %1, %4, %5;" : "=r"(a), "=r"(b) : "r"(c));  // want: none
asm("addc.u32 %0, %1, %2;" : "=r"(a) : "r"(b), "r"(c));  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm("ld.global.nc.f32 %0, [%1];" : "=f"(a) : "l"(p));  // want: READS
asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(a) : "l"(p));  // want: READS VOLATILE
asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(p), "f"(a));  // want: WRITES
asm volatile("red.global.add.f32 [%0], %1;" :: "l"(p), "f"(a));  // want: READS WRITES ATOMIC
asm volatile("bar.sync 0;");  // want: BARRIER
asm volatile("membar.gl;");  // want: FENCE
asm volatile("" ::: "memory");  // want: FENCE
asm("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(a) : "r"(b));  // want: MASK
asm("activemask.b32 %0;" : "=r"(a));  // want: MASK
asm("{ .reg .pred p; vote.sync.any.pred p, %1, -1; selp.u32 %0, 1, 0, p; }" : "=r"(a) : "r"(b));  // want: MASK
asm("match.any.sync.b32 %0, %1, -1;" : "=r"(a) : "r"(b));  // want: MASK
asm("redux.sync.add.s32 %0, %1, -1;" : "=r"(a) : "r"(b));  // want: MASK
asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(s), "l"(g));  // want: READS WRITES FENCE
asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(s));  // want: BARRIER
asm volatile("trap;");  // want: STOPS
asm volatile("exit;");  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm volatile("bra L;");  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm("L: add.u32 %0, %0, 1;" : "+r"(a));  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm("frobnicate.u32 %0, 1;" : "=r"(a));  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm("mov.u64 %0, table;" : "=l"(a));  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm(CODE : "=r"(a));  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
asm("v_mbcnt_lo_u32_b32 %0, -1, 0" : "=v"(a));  // want: MASK
asm volatile("s_memtime %0" : "=s"(a));  // want: TIME
asm("v_fma_f32 %0, %1, %2, %3" : "=v"(a) : "v"(b), "v"(c), "v"(d));  // want: none
