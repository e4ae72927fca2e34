// Pointers to a thread's own arrays are the arrays, or stay pointers.
// read: local pointers

// case: a pointer that stays is its array
// each line
float b[8]; float *p = b; p[k] = 1;  // want: float b[8]; b[k] = 1;
float b[8]; float *p = b + n; p[k] = 1;  // want: float b[8]; b[n + k] = 1;
float b[8]; const float *p = &b[2]; x = p[0];  // want: float b[8]; x = b[2];
float b[8]; float *q = b + 1; float *p = q + 1; p[k] = 1;  // want: float b[8]; b[1 + 1 + k] = 1;
float b[8]; float *p = (float *)b; f(p);  // want: float b[8]; f(b);

// case: any other stays a pointer
// each line
float b[8]; float *p = b; p++; p[k] = 1;  // want: float b[8]; float *p = b; p++; p[k] = 1;
float b[8]; float *p = b + n; n = 0; p[k] = 1;  // want: float b[8]; float *p = b + n; n = 0; p[k] = 1;
float b[8]; int *p = (int *)b; p[k] = 1;  // want: float b[8]; int *p = (int *)b; p[k] = 1;
float b[8]; float *p = b; float **q = &p; p[k] = 1;  // want: float b[8]; float *p = b; float **q = &p; p[k] = 1;
float b[2][4]; float *p = b[1]; p[k] = 1;  // want: float b[2][4]; float *p = b[1]; p[k] = 1;
__shared__ float b[8]; float *p = b; p[k] = 1;  // want: __shared__ float b[8]; float *p = b; p[k] = 1;
