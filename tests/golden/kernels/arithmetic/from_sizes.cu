// Expressions over sizes in the words of parameters.
// read: from sizes
// with: values = { n = "tokens * d", dim = "d", vecs = "d // 4" }

// case: over parameters
// each line
d  // want: dim
d // 4  // want: vecs
tokens * d  // want: n
ceildiv(tokens * d, 128)  // want: (n + 127) / 128
min(d, 1024)  // want: dim < 1024 ? dim : 1024
round_up(d, 32)  // want: (dim + 31) / 32 * 32
tokens  // want: none
