// Places in bytes that are whole elements, and those of which nobody knows.
// read: byte pointers
// with: arguments = { nb = "d * 4", pad = "4 * d + 8", odd = "d * 2" }

// case: places that are whole elements
// each line
float *p = (float *)((char *)x + i * nb);  // want: float *p = x + i * (nb / 4);
float *p = (float *)((const char *)x + i * pad + 8);  // want: float *p = x + (i * (pad / 4) + 2);
float *p = (float *)((char *)x + (long long)i * nb + 4 * odd);  // want: float *p = x + (i * (nb / 4) + odd);

// case: places that may not be
// each line
float *p = (float *)((char *)x + i * odd);  // want: float *p = (float *)((char *)x + i * odd);
float *p = (float *)((char *)x + i * nb + 2);  // want: float *p = (float *)((char *)x + i * nb + 2);
float *p = (float *)((char *)x + (short)(i * nb));  // want: float *p = (float *)((char *)x + (short)(i * nb));
float *p = (float *)((char *)x + 4 * i - 4 * nb);  // want: float *p = (float *)((char *)x + 4 * i - 4 * nb);
float *p = (float *)((short *)x + i * nb);  // want: float *p = (float *)((short *)x + i * nb);
float *p = (float *)((char *)nb + i * nb);  // want: float *p = (float *)((char *)nb + i * nb);

// case: an argument that changes is no multiple
// each line
nb += 1; float *p = (float *)((char *)x + nb);  // want: nb += 1; float *p = (float *)((char *)x + nb);
