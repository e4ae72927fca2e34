// Names that may be sizes, and those that are not.
// read: size names

// case: names
// each line
n N rows num_tokens hidden_size nRows seqLen d HEAD_DIM  // want: a size
seed row_stride lda batch_idx causal offset i alpha  // want: none
