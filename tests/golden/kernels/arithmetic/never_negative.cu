// What the contract's ranges prove of index arithmetic.
// read: never negative
// with: sizes = { rows = [1, 4096], cols = [1, 4096], few = [0, 8] }
// with: one_of = { one = [4, 8] }
// with: values = { rows = "rows", cols = "cols", few = "few", one = "one", step = "4 * cols", half = "(cols + 1) // 2", up = "ceildiv(cols, 2)", odd = "cols % 3" }
// with: ranges = { x = ["0", "half - 1"], c = ["0", "2"] }

// case: proved or not
// each line
0  // want: never negative
cols - 1  // want: never negative
step - 4  // want: never negative
rows * step - 4 * rows  // want: never negative
few  // want: never negative
one - 4  // want: never negative
x  // want: never negative
2 - c  // want: never negative
step * rows - step  // want: never negative
cols - 1 - x  // want: never negative
step - 4 - 4 * (cols - 1 - 2 * x)  // want: never negative
step - 4 + 4 * (cols - 1 - 2 * x)  // want: never negative
2 * up - cols  // want: never negative
x * rows - x  // want: never negative
cols - cols / 2 * 2  // want: never negative
16 * ((cols + 7) / 4) - 16  // want: never negative
step - 4 - c + 2  // want: never negative
-1  // want: not proved
cols - 2  // want: not proved
few - 1  // want: not proved
step - 5  // want: not proved
one - 5  // want: not proved
1 - c  // want: not proved
rows - cols  // want: not proved
odd  // want: not proved
other  // want: not proved
x - 1  // want: not proved
c * c - c  // want: not proved
cols - 2 - x  // want: not proved
2 * half - cols - 1  // want: not proved
x / 2  // want: not proved
2 * ((x - 1) / 2) + 2  // want: not proved
4 * ((cols + 14) / 4) - 16  // want: not proved
