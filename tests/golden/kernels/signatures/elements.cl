// Elements of types, and how many there are in one.
// read: elements

// case: types
// each line
ulong  // want: uint64 × 1
half16  // want: float16 × 16
__half  // want: not known × 1
