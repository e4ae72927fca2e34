// The variable that an lvalue belongs to.

// case: lvalues
// each line
v  // want: v
v.x  // want: v
p[i]  // want: p, through memory
p[i].x  // want: p, through memory
p->x  // want: p, through memory
((half2 *)&v)[j]  // want: v
((uint4 *)(p + 3))[j]  // want: p, through memory
((uint4 *)&p[3])[j]  // want: p, through memory
f(x)  // want: None
