// The integer that an expression comes to.
// read: integer
// with: values = { n = 100 }

// case: where n is 100
// each line
(n + 31) / 32 * 32  // want: 128
(long long)n * 2  // want: 200
(unsigned char)(n + 200)  // want: 44
n > 3 ? n : 0  // want: 100
max(n, 7) + sizeof(float)  // want: 104
m + 1  // want: None
f(n)  // want: None
n / 0  // want: None
