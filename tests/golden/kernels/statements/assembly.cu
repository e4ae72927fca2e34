// Assembly that says what the language says as well, and assembly that only looks like it.

// case: assembly as code
// each line
asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(d));  // want: y = __shfl_xor_sync(0xffffffffu, x, d);
asm("shfl.sync.down.b32 %0, %1, %2, 0x101f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));  // want: y = __shfl_down_sync(m, x, 1, 16);
asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(y) : "l"(p));  // want: y = ((const float *)p)[0];
uint4 v; asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));  // want: uint4 v; | v = ((const uint4 *)p)[0];
asm volatile("st.global.v2.f32 [%0], {%1, %2};" :: "l"(p), "f"(a), "f"(b));  // want: ((float2 *)p)[0] = make_float2(a, b);
asm volatile("st.global.wb.v2.u32 [%0], {%1, %2};" :: "l"(p), "r"(a), "r"(b) : "memory");  // want: ((uint2 *)p)[0] = make_uint2(a, b);
unsigned v; asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0;\n" "@p ld.global.u32 %0, [%1]; }" : "=r"(v) : "l"(q), "r"((int)ok));  // want: unsigned int v; | v = 0; | if ((int)ok != 0) |     v = ((const unsigned int *)q)[0];
asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %2, 0;\n @p st.global.u32 [%0], %1;\n}" :: "l"(q), "r"(v), "r"(ok) : "memory");  // want: if (ok != 0) |     ((unsigned int *)q)[0] = v;
asm volatile("griddepcontrol.wait;" ::: "memory");  // want: cudaGridDependencySynchronize();
asm volatile("griddepcontrol.launch_dependents;");  // want: cudaTriggerProgrammaticLaunchCompletion();

// case: assembly that stays
// each line
asm("shfl.sync.up.b32 %0, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));  // want: asm("shfl.sync.up.b32 %0, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));
asm("shfl.sync.bfly.b32 %0|p, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));  // want: asm("shfl.sync.bfly.b32 %0|p, %1, %2, 0x1f, %3;" : "=r"(y) : "r"(x), "r"(1), "r"(m));
asm("ld.volatile.global.f32 %0, [%1];" : "=f"(y) : "l"(p));  // want: asm("ld.volatile.global.f32 %0, [%1];" : "=f"(y) : "l"(p));
asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));  // want: asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));
asm("{ .reg .pred p; setp.eq.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));  // want: asm("{ .reg .pred p; setp.eq.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));
asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @!p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));  // want: asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @!p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));
asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 1; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));  // want: asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 1; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(k));
asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(y));  // want: asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(y) : "l"(q), "r"(y));
asm("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(y) : "l"(p));  // want: asm("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(y) : "l"(p));
// a narrower load that extends
asm("ld.global.s8 %0, [%1];" : "=r"(y) : "l"(p));  // want: asm("ld.global.s8 %0, [%1];" : "=r"(y) : "l"(p));
asm("ld.global.f32 %0, [%1+4];" : "=f"(y) : "l"(p));  // want: asm("ld.global.f32 %0, [%1+4];" : "=f"(y) : "l"(p));
// the other way round
asm("ld.global.v2.f32 {%1, %0}, [%2];" : "=f"(y), "=f"(z) : "l"(p));  // want: asm("ld.global.v2.f32 {%1, %0}, [%2];" : "=f"(y), "=f"(z) : "l"(p));
asm("ld.global.f32 %0, [%1];" : "=f"(y) : "l"(p) : "memory");  // want: asm("ld.global.f32 %0, [%1];" : "=f"(y) : "l"(p) : "memory");
asm("ld.global.f32 %0, [%1]; add.f32 %0, %0, %0;" : "=f"(y) : "l"(p));  // want: asm("ld.global.f32 %0, [%1]; add.f32 %0, %0, %0;" : "=f"(y) : "l"(p));
asm("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(p));  // want: asm("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(p));

// case: text that is not understood is printed as it was
asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b));
// want: asm volatile("mov.u32 %0, %1;" : "=r"(a) : "r"(b));
