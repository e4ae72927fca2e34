// Bits of local variables as another type: copies as assignments, arrays aligned for their words.

// case: a copy of one word is an assignment
// each line
half c[8]; int4 b; memcpy(&c, &b, 16);  // want: __align__(16) __half c[8]; int4 b; ((int4 *)c)[0] = b;
half c[8]; int4 b; memcpy(c, &b, sizeof(int4));  // want: __align__(16) __half c[8]; int4 b; ((int4 *)c)[0] = b;
half c[8]; int4 b; memcpy(&b, c, 16);  // want: __align__(16) __half c[8]; int4 b; b = ((int4 *)c)[0];

// case: any other copy stays a call
// each line
// beyond the array
half c[4]; int4 b; memcpy(&c, &b, 16);  // want: __half c[4]; int4 b; memcpy(&c, &b, 16);
// a part of the word
half c[8]; int4 b; memcpy(&c, &b, 8);  // want: __half c[8]; int4 b; memcpy(&c, &b, 8);
// memory whose alignment nobody promises
half c[8]; int4 b; memcpy(&b, p, 16);  // want: __half c[8]; int4 b; memcpy(&b, p, 16);
half c[8]; int4 b; memcpy(&c[1], &b, 16);  // want: __half c[8]; int4 b; memcpy(&c[1], &b, 16);
// no word is that wide
half c[8]; half b[8]; memcpy(&c, &b, 16);  // want: __half c[8]; __half b[8]; memcpy(&c, &b, 16);
float f; unsigned int u; memcpy(&u, &f, 4);  // want: float f; unsigned int u; memcpy(&u, &f, 4);
half c[8]; int4 b; int m; memcpy(&c, &b, m);  // want: __half c[8]; int4 b; int m; memcpy(&c, &b, m);
// two variables of one name
half c[8]; { int4 c; int4 b; memcpy(&c, &b, 16); }  // want: __half c[8]; { int4 c; int4 b; memcpy(&c, &b, 16); }
__shared__ half c[8]; int4 b; memcpy(&c, &b, 16);  // want: __shared__ __half c[8]; int4 b; memcpy(&c, &b, 16);

// case: an array is aligned to the widest word it is accessed as
// each line
half c[8]; half d[8]; ((float *)c)[0] = 1; ((uint4 *)c)[0] = ((uint4 *)p)[0]; d[0] = c[1];  // want: __align__(16) __half c[8]; __half d[8]; ((float *)c)[0] = 1; ((uint4 *)c)[0] = ((uint4 *)p)[0]; d[0] = c[1];
__align__(32) half c[8]; ((uint4 *)c)[0] = ((uint4 *)p)[0];  // want: __align__(32) __half c[8]; ((uint4 *)c)[0] = ((uint4 *)p)[0];
