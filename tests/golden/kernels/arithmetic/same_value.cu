// Expressions of one value; the left one simplified.
// read: same value

// case: equal by sums, quotients and remainders
// each line
(a + b) * c == b * c + a * c  // want: the same: a * c + b * c
i / h * h + i % h == i  // want: the same: i
(i / p / h * h + i / p % h) * 8 == i / p * 8  // want: the same: 8 * (i / p)
(4 * i + 8) / 4 == i + 2  // want: the same: i + 2
x & 31 == x % 32  // want: the same: x % 32
a / b * 2 + a / b == 3 * (a / b)  // want: the same: 3 * (a / b)
a * b == a + b  // want: not proved: a * b
