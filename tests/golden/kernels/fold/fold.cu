// What folding computes, as C does.
// with: values = { n = 4 }

// case: folding computes as C does
// each line
2 + 3 * 4  // want: 14
-7 / 2  // want: -3
-7 % 2  // want: -1
7 / 0  // want: 7 / 0
1 << 4  // want: 16
~0  // want: -1
!3  // want: 0
x * 1  // want: x
1 * x  // want: x
x + 0  // want: x
0 + x  // want: x
x - 0  // want: x
x / 1  // want: x
x << 0  // want: x
0 * x  // want: 0
0 * f(x)  // want: 0 * f(x)
0 * p[i]  // want: 0 * p[i]
x % 1  // want: 0
x * 1.0f  // want: x * 1.0f
x + 0.0f  // want: x + 0.0f
1.0f / 3.0f  // want: 1.0f / 3.0f
x * 1u  // want: x * 1u
n == 4 ? a : b  // want: a
2 < 1 ? a : b  // want: b
n * x  // want: 4 * x
min(3, 5)  // want: 3
std::max(n, 5)  // want: 5
sizeof(uint4) / sizeof(__half)  // want: 8
sizeof(float *)  // want: 8
sizeof(Unknown_t)  // want: sizeof(Unknown_t)
(int)5  // want: 5
(long long)5 * x  // want: (long long)5 * x
(unsigned char)300  // want: (unsigned char)44
2147483647 + 1  // want: 2147483647 + 1
4294967295u + 1u  // want: 0u
3u - 5u  // want: 4294967294u
0 && f(x)  // want: 0
1 && f(x)  // want: f(x)
1 || f(x)  // want: 1
f(x) && 0  // want: f(x) && 0
0xff & 0x0f  // want: 15
5LL * 2  // want: 10LL
