// An index of another type than its share keeps it.
// read: source names

// case: an index of another type than its share keeps it
// with: source = "const int row = threadIdx.x / (d / 2); out[row] = row;"
// with: parameters = "long long d"
// each line
const int here = 3; out[here / (d / 2)] = here / (d / 2);  // want: const int here = 3; out[here / (d / 2)] = here / (d / 2);

// case: an index of another type than its share keeps it (2)
// with: source = "const int row = threadIdx.x / (d / 2); out[row] = row;"
// with: parameters = "unsigned int d"
// each line
const int here = 3; out[here / (d / 2)] = here / (d / 2);  // want: const int here = 3; out[here / (d / 2)] = here / (d / 2);
