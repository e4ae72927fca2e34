"""Traps of C++: names, references, pointers to arrays of a thread, narrow and unsigned numbers, ways out."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.random_kernels.trap import LOOP, Trap, block_trap, flat_trap, thread_trap

_TWO = (
    "namespace near { __device__ float f(float a) { return a * 2.0f; } }\n"
    "namespace far { __device__ float f(float a) { return a * 3.0f; }\n"
    "__device__ float g(float a) { return f(a) + near::f(a); } }"
)

_NAMES: Mapping[str, Trap] = {
    "a helper in each of two namespaces": flat_trap("out[i] = near::f(x[i]) - far::f(x[i] + 1.0f);", _TWO),
    "a helper that sees its own namespace": flat_trap("out[i] = far::g(x[i]);", _TWO),
    "a namespace that is used": flat_trap("using namespace far;\nout[i] = f(x[i]);", _TWO),
    "an overload of another namespace": flat_trap(
        "out[i] = f((int)x[i]) + own::f((int)x[i]);",
        "__device__ float f(float a) { return a + 1.0f; }\n"
        "namespace own { __device__ float f(int a) { return a * 2.0f; } }",
    ),
    "a maximum of its own": flat_trap(
        "out[i] = max(x[i], 1.0f) + own::max(x[i], 1.0f);",
        "namespace own { __device__ float max(float a, float b) { return a + b; } }",
    ),
    "constants of two namespaces": thread_trap(
        "for (int i = 0; i < d; i++) out[i] = x[i] * a::N + b::step();",
        "namespace a { constexpr int N = 2; }\n"
        "namespace b { constexpr int N = 5; __device__ int step() { return N; } }",
    ),
    "types of two namespaces": flat_trap(
        "out[i] = a::Op::of(x[i]) + b::Op::of(x[i]);",
        "namespace a { struct Op { static __device__ float of(float v) { return v; } }; }\n"
        "namespace b { struct Op { static __device__ float of(float v) { return v * v; } }; }",
    ),
    "overloads by type": flat_trap(
        "const int n = (int)x[i];\nconst unsigned u = i;\nout[i] = f(n) + f(x[i]) * 10.0f + f(u) * 100.0f;",
        "__device__ float f(int a) { return a; }\n__device__ float f(float a) { return a + 1.0f; }\n"
        "__device__ float f(unsigned a) { return a % 3u; }",
    ),
    "an overload by promotion": flat_trap(
        "const short n = (short)x[i];\nout[i] = f(n) + f(x[i] > 0.0f) * 10.0f;",
        "__device__ float f(int a) { return a; }\n__device__ float f(float a) { return a + 1.0f; }",
    ),
    "default arguments": flat_trap(
        "out[i] = f(x[i]) + f(x[i], 3.0f) + f(x[i], 2.0f, 1);",
        "__device__ float f(float a, float b = 2.0f, int c = 4) { return a * b + c; }",
    ),
    "a default that is computed": flat_trap(
        "const int base = 7;\nout[i] = f(x[i]) + base;",
        "constexpr int base = 3;\n__device__ float f(float a, int b = base * 2) { return a + b; }",
    ),
    "a template beside a function": flat_trap(
        "out[i] = f(x[i]) + f((int)x[i]);",
        "template <typename T> __device__ T f(T a) { return a / T(2); }\n"
        "__device__ float f(float a) { return a * 4.0f; }",
    ),
    "a variable that hides another": flat_trap(
        "float v = x[i];\n{ float v = 2.0f; v += 1.0f; out[i] = v; }\n"
        "for (int v = 0; v < 2; v++) out[i] += v;\nout[i] += v;"
    ),
}

_REFERENCES: Mapping[str, Trap] = {
    "a reference to a variable": flat_trap(
        "float v = x[i];\nfloat &r = v;\nr += 1.0f;\nv *= 2.0f;\nout[i] = r;"
    ),
    "a reference to an element": flat_trap("float &r = out[i];\nr = x[i];\nr += 2.0f;"),
    "a reference whose index moves on": flat_trap(
        "int k = i;\nconst float &r = x[k];\nk = 0;\nout[i] = r + k;"
    ),
    "two references to one": flat_trap(
        "float v = x[i];\nmix(v, v);\nout[i] = v;",
        "__device__ void mix(float &a, float &b) { a += 1.0f; b *= 2.0f; a -= 3.0f; }",
    ),
    "a swap by references": flat_trap(
        "float a = x[i], b = 1.0f;\nswap2(a, b);\nout[i] = a * 10.0f + b;",
        "__device__ void swap2(float &a, float &b) { const float t = a; a = b; b = t; }",
    ),
    "a copy that is no reference": flat_trap(
        "float v = x[i];\nout[i] = f(v) + v;",
        "__device__ float f(float a) { a *= 2.0f; return a; }",
    ),
    "a copy that is handed on by reference": flat_trap(
        "float v = x[i];\nout[i] = of(v) + v * 10.0f;",
        "__device__ void twice(float &a) { a = a * 2.0f; }\n"
        "__device__ float of(float a) { twice(a); return a; }",
    ),
    "a constant reference of what changes": flat_trap(
        "float v = x[i];\nout[i] = f(v, v);",
        "__device__ float f(float &a, const float &b) { a += 1.0f; return b; }",
    ),
    "a reference to an array of the thread": flat_trap(
        "float b[4];\nfor (int k = 0; k < 4; k++) b[k] = x[i] + k;\nfill(b);\nout[i] = b[0] + b[3] * 10.0f;",
        "__device__ void fill(float (&v)[4]) { for (int k = 0; k < 4; k++) v[k] *= 2.0f; }",
    ),
}

_POINTERS: Mapping[str, Trap] = {
    "a pointer to an array of the thread": flat_trap(
        "float b[4];\nfloat *p = b;\nfor (int k = 0; k < 4; k++) p[k] = x[i] + k;\nout[i] = b[1] + p[3];"
    ),
    "a pointer into an array of the thread": flat_trap(
        "float b[6];\nfor (int k = 0; k < 6; k++) b[k] = x[i] * k;\nconst float *p = b + 2;\n"
        "out[i] = p[0] + p[3];"
    ),
    "a pointer to an element of an array": flat_trap(
        "float b[6];\nfor (int k = 0; k < 6; k++) b[k] = x[i] * k;\nconst float *p = &b[1];\n"
        "out[i] = *p + p[2];"
    ),
    "a pointer that walks an array": flat_trap(
        "float b[4];\nfor (int k = 0; k < 4; k++) b[k] = x[i] + k;\nconst float *p = b;\nfloat s = 0.0f;\n"
        "for (int k = 0; k < 4; k++) s += *p++ * k;\nout[i] = s;"
    ),
    "a pointer to either of two arrays": flat_trap(
        "float a[2] = {x[i], 1.0f}, b[2] = {2.0f, x[i]};\nfloat *p = x[i] > 0.0f ? a : b;\n"
        "out[i] = p[0] + p[1] * 10.0f;"
    ),
    "a pointer to one array, then the other": flat_trap(
        "float a[2] = {x[i], 1.0f}, b[2] = {2.0f, x[i]};\nfloat *p = a;\nfloat s = p[0];\np = b;\n"
        "out[i] = s + p[0] * 10.0f;"
    ),
    "a pointer to a variable": flat_trap("float v = x[i];\nfloat *p = &v;\n*p += 1.0f;\nout[i] = v;"),
    "an array handed to a helper": flat_trap(
        "float b[4];\nfor (int k = 0; k < 4; k++) b[k] = x[i] + k;\nout[i] = total(b, 4);",
        "__device__ float total(const float *v, int n) { float s = 0.0f; for (int k = 0; k < n; "
        "k++) s += v[k]; return s; }",
    ),
    "a part of an array handed to a helper": flat_trap(
        "float b[4];\nfor (int k = 0; k < 4; k++) b[k] = x[i] + k;\nturn(b + 1);\n"
        "out[i] = b[1] * 10.0f + b[2];",
        "__device__ void turn(float *v) { const float t = v[0]; v[0] = v[1]; v[1] = t; }",
    ),
    "a pointer to a row of a plane": flat_trap(
        "float b[2][3];\nfor (int r = 0; r < 2; r++) for (int k = 0; k < 3; "
        "k++) b[r][k] = x[i] + r * 3 + k;\n"
        "float *p = b[1];\nout[i] = p[0] + p[2];"
    ),
    "sums in an array by a pointer": thread_trap(
        "float b[4] = {0, 0, 0, 0};\nfloat *p = b;\nfor (int i = 0; i < d; i++) p[i & 3] += x[i];\n"
        "out[0] = p[0] + p[1] * 2.0f + b[3];"
    ),
    "an array carried by a pointer": thread_trap(
        "float b[4] = {0, 0, 0, 0};\nfloat *p = b;\n"
        "for (int i = 0; i < d; i++) { p[i & 3] += x[i]; out[i] = p[(i + 1) & 3]; }"
    ),
    "an array carried by a pointer to other numbers": thread_trap(
        "float b[4] = {0, 0, 0, 0};\nint *p = (int *)b;\n"
        "for (int i = 0; i < d; i++) p[i & 3] += (int)x[i];\nout[0] = p[0] + p[1] * 2.0f;"
    ),
    "an array carried by a pointer to either": thread_trap(
        "float b[4] = {0, 0, 0, 0}, e[4] = {1, 1, 1, 1};\nfloat *p = rows > 5 ? b : e;\n"
        "for (int i = 0; i < d; i++) p[i & 3] += x[i];\nout[0] = p[0] + p[1] * 2.0f;"
    ),
    "a pointer to a half in each turn": flat_trap(
        "float b[8];\nfor (int k = 0; k < 8; k++) b[k] = x[i] + k;\n"
        "for (int h = 0; h < 2; h++) { float *p = b + h * 4; p[0] = -1.0f; p[3] *= 2.0f; }\n"
        "out[i] = b[0] + b[3] + b[7];"
    ),
    "a pointer from begin to end": flat_trap(
        "float b[4];\nfor (int k = 0; k < 4; k++) b[k] = x[i] + k;\nconst float *e = b + 4;\n"
        "float s = 0.0f;\n"
        "for (const float *p = b; p != e; ++p) s += *p;\nout[i] = s;"
    ),
    "a pointer to a field that goes on": thread_trap(
        "float4 v = make_float4(0, 0, 0, 0);\nfloat *p = &v.x;\n"
        "for (int i = 0; i < d; i++) p[i & 3] = x[i] - p[i & 3];\nout[0] = v.x + v.y;"
    ),
    "a variable carried by its address": thread_trap(
        "float v = 0.0f;\nfloat *p = &v;\nfor (int i = 0; i < d; i++) { *p = x[i] - *p; out[i] = v; }"
    ),
    "a pointer to shared memory": block_trap(
        "__shared__ float kept[512];\nfloat *p = kept;\n" + LOOP + "p[i] = x[i] * 2.0f;\n__syncthreads();\n"
        + LOOP + "out[i] = p[i] + 1.0f;"
    ),
}  # fmt: skip

_NUMBERS: Mapping[str, Trap] = {
    "narrow compound assignments": flat_trap(
        "unsigned char c = (unsigned char)(i * 37);\nc += 200;\nc <<= 1;\nc -= 3;\nc *= 7;\nout[i] = c;"
    ),
    "narrow signed compound assignments": flat_trap(
        "signed char c = (signed char)(i * 3);\nc += 100;\nc ^= 0x55;\nc >>= 1;\nshort s = c;\n"
        "s *= 300;\nout[i] = s;"
    ),
    "narrow steps": flat_trap(
        "unsigned char c = (unsigned char)i;\nc--;\nconst int old = c++;\nout[i] = c + old * 2;"
    ),
    "a narrow number divided": flat_trap(
        "signed char c = (signed char)(i - 100);\nc /= 3;\n"
        "unsigned short u = (unsigned short)(i * 700);\nu %= 1000;\nout[i] = c + u;"
    ),
    "a float into a narrow sum": flat_trap(
        "unsigned char c = 5;\nc += x[i] > 0.0f ? x[i] * 0.5f : 1.5f;\nout[i] = c;"
    ),
    "an int that adds floats": flat_trap("int n = i & 7;\nn += x[i] * 0.5f;\nn -= 0.75f;\nout[i] = n;"),
    "unsigned below zero": flat_trap(
        "const unsigned u = (unsigned)i - 3u;\nout[i] = u > 5u ? 1.0f : (float)u;"
    ),
    "unsigned against signed": flat_trap("const int n = (int)x[i];\nout[i] = n < 4u ? 1.0f : 2.0f;"),
    "unsigned differences as a place": flat_trap(
        "const unsigned a = i, b = 2;\nout[i] = a - b < (unsigned)(rows * d) ? x[a - b] : -1.0f;"
    ),
    "unsigned halves": flat_trap("const unsigned u = 0u - (unsigned)i;\nout[i] = (float)((u / 2u) % 1000u);"),
    "long products": flat_trap(
        "const long long n = (long long)i * 100000;\nconst int m = (int)(n * 50000 >> 20);\n"
        "out[i] = (float)(m % 1000);"
    ),
    "shifts of what is negative": flat_trap(
        "const int n = (int)x[i] * 5 - 9;\nout[i] = (n >> 2) + (n & 3) * 100;"
    ),
    "unsigned shifts": flat_trap("const unsigned n = (unsigned)((int)x[i] - 9);\nout[i] = (float)(n >> 28);"),
    "a shift that wraps": flat_trap(
        "unsigned n = i + 1;\nn = (n << 29) | (n >> 3);\nout[i] = (float)(n >> 29);"
    ),
    "casts that cut": flat_trap(
        "const float v = x[i] * 40.0f + 300.0f;\n"
        "out[i] = (unsigned char)(int)v + (short)((int)v * 200) + (int)(v * 0.3f);"
    ),
    "casts that keep the sign": flat_trap(
        "const int n = i * 50;\nout[i] = (signed char)n + (unsigned char)n * 1000;"
    ),
    "a truth as a number": flat_trap(
        "const bool b = (int)x[i];\nout[i] = b + (x[i] > 2.0f) * 10 + !b * 100 + !!(i & 6) * 1000;"
    ),
    "a ternary of two types": flat_trap(
        "const int n = (int)x[i];\nconst unsigned u = 3;\n"
        "out[i] = (float)(((i & 1) ? n : u) > 5) + (i & 2 ? n : x[i] * 0.5f);"
    ),
    "ternaries in ternaries": flat_trap(
        "out[i] = x[i] > 4.0f ? 1.0f : x[i] > 0.0f ? x[i] < 2.0f ? 2.0f : 3.0f : x[i] < -4.0f ? 4.0f : 5.0f;"
    ),
    "integer division before float": flat_trap(
        "out[i] = i / 4 * 0.5f + (i + 1) / 2.0f + (float)(i % 3 / 2);"
    ),
    "a sum that overflows a narrow index": flat_trap(
        "const unsigned char a = (unsigned char)i, b = 200;\n"
        "out[i] = a + b > 255 ? 1.0f : (float)(unsigned char)(a + b);"
    ),
    "a narrow variable of a loop": thread_trap(
        "for (short k = 0; k < d; k++) { unsigned char c = (unsigned char)(k * 9); out[k] = x[k] + c; }"
    ),
    "a narrow result of a helper": flat_trap(
        "out[i] = f(i * 77) + g(i * 77);",
        "__device__ unsigned char f(int a) { return a; }\n__device__ signed char g(int a) { return a; }",
    ),
    "a narrow argument of a helper": flat_trap(
        "out[i] = f(i * 77) + f(x[i] * 0.5f);", "__device__ int f(unsigned char a) { return a + 1; }"
    ),
}  # fmt: skip

_WAYS: Mapping[str, Trap] = {
    "a return in the middle": flat_trap(
        "if (x[i] < 0.0f) { out[i] = 1.0f; return; }\nout[i] = x[i];\nif (i & 1) return;\n"
        "out[i] += 5.0f;"
    ),
    "a return in a branch of a loop": thread_trap(
        "for (int i = 0; i < d; i++) { if (x[i] > 7.0f) return; out[i] = x[i] + 1.0f; }"
    ),
    "continue": thread_trap(
        "for (int i = 0; i < d; i++) { if (x[i] < 0.0f) continue; out[i] = x[i] * 2.0f; }"
    ),
    "continue behind a store": thread_trap(
        "for (int i = 0; i < d; i++) { out[i] = 1.0f; if (i & 1) continue; out[i] += x[i]; "
        "if (x[i] > 3.0f) continue; out[i] *= 2.0f; }"
    ),
    "continue in a loop of the block": block_trap(
        LOOP
        + "{ if (x[i] < 0.0f) continue; out[i] = x[i] * 2.0f; }"
    ),
    "continue in an inner loop": flat_trap(
        "float s = 0.0f;\nfor (int k = 0; k < 6; k++) { if ((k + i) % 3 == 0) continue; "
        "s += k * x[i]; }\nout[i] = s;"
    ),
    "do while with a way out": flat_trap(
        "float v = x[i];\nint n = 0;\ndo { n++; if (v < -3.0f) break; v -= 2.0f; "
        "} while (v > 0.0f && n < 5);\nout[i] = n * 10.0f + v;"
    ),
    "do while over a row": thread_trap("int i = 0;\ndo { out[i] = x[i] + i; i++; } while (i < d);"),
    "while over a row": thread_trap("int i = 0;\nwhile (i < d) { const float v = x[i]; out[i++] = v; }"),
    "guards within guards": flat_trap(
        "if (i < rows * d - 1) { if (x[i] > 0.0f) { if (x[i + 1] > 0.0f) out[i] = x[i + 1]; "
        "else out[i] = 1.0f; } else if (i > 2) out[i] = x[i - 2]; }"
    ),
    "a guard that the first half fails": flat_trap(
        "if (i + 1 < rows * d && (x[i + 1] > 0.0f || x[i] > 0.0f)) out[i] = x[i + 1];"
    ),
    "an empty loop": flat_trap("int n = 0;\nfor (; n < 9 && n * n < i; n++) {}\nout[i] = n;"),
    "a comma": flat_trap(
        "int a = 0, b = 1;\nfor (int k = 0; k < 5; a += k, b *= 2, k++) {}\n"
        "out[i] = (a++, b += a, a + b) + x[i];"
    ),
    "a switch in a loop": thread_trap(
        "for (int i = 0; i < d; i++) { switch (i % 3) { case 0: out[i] = 1.0f; continue; "
        "case 1: break; default: out[i] = x[i]; } out[i] += 2.0f; }"
    ),
}  # fmt: skip

_LOOPS: Mapping[str, Trap] = {
    "an inner loop from the element on": thread_trap(
        "for (int i = 0; i < d; i++) { float s = 0.0f; for (int k = i; k < d; ++k) s += x[k]; out[i] = s; }"
    ),
    "an inner loop from the element on, flat": flat_trap(
        "float s = 0.0f;\nfor (int k = i; k < rows * d; ++k) s += x[k];\nout[i] = s;"
    ),
    "an inner loop up to the element": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = 0; k <= i; ++k) s += x[k] * (k + 1); out[i] = s; }"
    ),
    "an inner loop from the element by steps": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = i; k < d; k += 5) s += x[k]; out[i] = s; }"
    ),
    "an inner loop from the element to its end": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = i; k < i + 3 && k < d; ++k) s += x[k] * (k - i + 1); "
        "out[i] = s; }"
    ),
    "an inner loop from the element's own value": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = (int)x[i] & 3; k < 6 && k < d; ++k) s += x[k]; out[i] = s; }"
    ),
    "an inner loop from half the element": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = i / 2; k < d; ++k) s += x[k]; out[i] = s; }"
    ),
    "an inner loop from the row on": Trap(
        "const int row = blockIdx.x;\n" + LOOP
        + "{ float s = 0.0f; for (int k = row; k < rows; ++k) s += x[k * d + i]; out[row * d + i] = s; }"
    ),
    "an inner loop from the other end": block_trap(
        LOOP + "{ float s = 0.0f; for (int k = d - 1; k > i; --k) s = s * 0.5f + x[k]; out[i] = floorf(s); }"
    ),
    "a bound that changes before the loop": thread_trap(
        "int n = d;\nif (x[0] > 0.0f) n = d / 2;\nfor (int i = 0; i < n; i++) out[i] = x[i] + 1.0f;"
    ),
    "a bound that is cut before the loop": block_trap(
        "int n = d;\nn = n / 2;\nfor (int i = threadIdx.x; i < n; i += 64) out[i] = x[i] + 1.0f;\nn += 1;\n"
        "if (threadIdx.x == 0) aux[row & 63] = n;"
    ),
    "a bound that differs by thread": block_trap(
        "int n = d;\nif (threadIdx.x & 1) n = d / 2;\nfor (int i = threadIdx.x; i < n; "
        "i += 64) out[i] = x[i] + 1.0f;"
    ),
    "a bound that was the loop's index": thread_trap(
        "int i = 0;\nfor (; i < d / 2; i++) out[i] = x[i];\nfor (int k = 0; k < i; k++) out[k] += 1.0f;\n"
        "for (; i < d; i++) out[i] = -x[i];"
    ),
    "a bound that the loop changes": thread_trap(
        "int n = d;\nfor (int i = 0; i < n; i++) { out[i] = x[i]; if (x[i] > 5.0f) n = d / 2; }"
    ),
    "a parameter that is cut": thread_trap("d -= 1;\nfor (int i = 0; i < d; i++) out[i] = x[i] + d;"),
    "a turn that no thread goes round again, then does": Trap(
        "int n = rows * d;\nfor (int i = blockIdx.x * 64 + threadIdx.x; i < n; "
        "i += gridDim.x * 64) out[i] = x[i] * 2.0f;",
        ("ceildiv(rows * d, 64)",),
    ),
    "a grid stride whose bound is cut": Trap(
        "int n = rows * d;\nn = n > 100 ? 100 : n;\n"
        "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) out[i] = x[i] * 2.0f;",
        ("ceildiv(rows * d, 64)",),
    ),
    "a grid stride whose bound grows": Trap(
        "int n = rows * d / 2;\nn *= 2;\nif (n < rows * d) n = n + 1;\n"
        "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) out[i] = x[i] * 2.0f;",
        ("ceildiv(rows * d // 2, 64)",),
    ),
    "a grid stride of too few blocks": Trap(
        "int n = d;\nn = n * rows;\n"
        "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) out[i] = x[i] * 2.0f;",
        ("ceildiv(d, 64)",),
    ),
    "a grid stride whose parameter grows": Trap(
        "d = d * rows;\nfor (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; "
        "i += gridDim.x * blockDim.x) "
        "out[i] = x[i] * 2.0f;",
        ("ceildiv(d, 64)",),
    ),
    "a grid stride whose parameter grows in a branch": Trap(
        "if (rows > 2) d = d * 2;\n"
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += gridDim.x * blockDim.x) "
        "out[i] = x[i] * 2.0f;",
        ("ceildiv(d, 64)",),
    ),
    "a grid stride of a stride that changes": Trap(
        "int by = gridDim.x * blockDim.x;\nby = by / 2;\n"
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += by) out[i] = x[i] * 2.0f;",
        ("ceildiv(d, 64)",),
    ),
    "a carried pair": thread_trap(
        "float a = 0.0f, b = 0.0f;\nfor (int i = 0; i < d; i++) { a = b; b = x[i]; out[i] = a - b; }"
    ),
    "a carried sign": thread_trap(
        "float s = 1.0f;\nfor (int i = 0; i < d; i++) { out[i] = s * x[i]; s = -s; }"
    ),
    "a carried count": thread_trap(
        "int n = 0;\nfor (int i = 0; i < d; i++) { if (x[i] > 0.0f) n++; out[i] = n; }"
    ),
    "carried in a loop of turns": block_trap(
        "float last = 0.0f;\n" + LOOP + "{ out[i] = x[i] - last; last = 1.0f; }"
    ),
}  # fmt: skip

CPP_TRAPS: Mapping[str, Trap] = {**_NAMES, **_REFERENCES, **_POINTERS, **_NUMBERS, **_WAYS, **_LOOPS}
