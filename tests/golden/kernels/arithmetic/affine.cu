// Sums over an index, and how far apart neighbours are.
// read: affine

// case: coefficients and strides
// each line
token * d + i  // want: (1) * i + (d * token) | stride 1
(token * d + i) * 4 + 3  // want: (4) * i + (4 * d * token + 3) | stride 4
(long long)i * d - i  // want: (d - 1) * i + (0) | no stride
base + (i << 3)  // want: (8) * i + (base) | stride 8
7  // want: (0) * i + (7) | stride 0
i * i  // want: no sum | no stride
i / 2  // want: no sum | stride 0 within 2
table[i]  // want: no sum | no stride
i % d + i  // want: no sum | stride 2 within d
d - 2 * i  // want: (-2) * i + (d) | stride -2
row * d + i  // want: (1) * i + (d * row) | stride 1
4 * i + k  // want: (4) * i + (k) | stride 4
i / d * 2 * d + i % d  // want: no sum | stride 1 within d
i / (d / 8) % heads  // want: no sum | stride 0 within d / 8
i >> 5  // want: no sum | stride 0 within 32
(i + row) % 16  // want: no sum | stride 1 within 16, row
(i % 8 - row) & 15  // want: no sum | stride 1 within 8, 16, -row
// a stretch begins anywhere
(i / d % 5 + (i & 7)) & 15  // want: no sum | stride 1 within d, 8, 16, 1
(i / d * 2 * d + i % d) % m  // want: no sum | stride 1 within d, m, 2 * d
row * d  // want: (0) * i + (d * row) | stride 0
i / c / d * d + i % d  // want: no sum | stride 1 within c * d, d
(i >> 3) / 4  // want: no sum | stride 0 within 32
i * d  // want: (d) * i + (0) | no stride
i % d * e  // want: no sum | no stride
