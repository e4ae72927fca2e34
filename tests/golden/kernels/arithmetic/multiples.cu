// What must divide for an offset to be a multiple.
// read: multiples
// with: names = ["d", "dim", "heads"]

// case: conditions
// each line
token * d + d  // want: d
token * 2 * d  // want: 2 * d
8 * token + 16  // want: 16; 8
(token * heads + head) * dim  // want: dim; dim * heads
// a term that may be anything
token * d + token  // want: none
