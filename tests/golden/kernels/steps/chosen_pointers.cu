// Pointers that a branch chooses: what follows is done with each, or they stay.
// read: chosen pointers

// case: what follows a choice is done with each pointer
// each line
float *p = nullptr; if (i < n) p = a + i; else { i -= n; p = b; } p += i; y[i] = p[0];  // want: if (i < n) { float *p = a + i; p += i; y[i] = p[0]; } else { i -= n; float *p_2 = b; p_2 += i; y[i] = p_2[0]; }

// case: other pointers stay
// each line
float *p = nullptr; if (i < n) p = a + i; y[i] = p[0];  // want: float *p = nullptr; if (i < n) p = a + i; y[i] = p[0];
// one array: a number that moves
float *p; if (i < n) p = a + i; else p = a - i; y[i] = p[0];  // want: float *p; if (i < n) p = a + i; else p = a - i; y[i] = p[0];
float *p; if (i < n) { p = a; p = b; } else p = b; y[i] = p[0];  // want: float *p; if (i < n) { p = a; p = b; } else p = b; y[i] = p[0];
float *p = c; if (i < n) p = a; else p = b; y[i] = p[0];  // want: float *p = c; if (i < n) p = a; else p = b; y[i] = p[0];
float *p; if (i < n) p = a; else p = b; __syncthreads(); y[i] = p[0];  // want: float *p; if (i < n) p = a; else p = b; __syncthreads(); y[i] = p[0];
float *p; if (i < n) p = a; else p = b; __shared__ float s[4]; s[0] = p[0];  // want: float *p; if (i < n) p = a; else p = b; __shared__ float s[4]; s[0] = p[0];
float *p; if (i < n) { if (i > 3) p = a; } else p = b; y[i] = p[0];  // want: float *p; if (i < n) { if (i > 3) p = a; } else p = b; y[i] = p[0];
