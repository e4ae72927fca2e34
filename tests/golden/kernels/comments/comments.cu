// Whose the comments of a source are, by the line of their statement.

// case: they belong to the statement they stand before or behind
// the row
/* and
 * its length */
int a = 1;  // in elements
int b = 2;

b += a;  /* both */
// want: line 1, before Declare: the row
// want: line 2, before Declare: and
// want: its length
// want: line 4, behind Declare: in elements
// want: line 7, behind Evaluate: both

// case: a loop has those of its head and its body those of its own
// over all
#pragma unroll
for (int i = 0; i < 4; i++) {  // by four
    // one
    f(i);
}
if (a) {  // first
    g();
} else {  // second
    // third
    h();
}
// want: line 1, before For: over all
// want: line 3, behind For: by four
// want: line 4, before Evaluate: one
// want: line 7, behind If: first
// want: line 9, before Evaluate: second
// want: line 10, before Evaluate: third

// case: words inside a statement stand before it
x = f(a,  // what
      b);  // with
// want: line 1, before Evaluate: what
// want: line 2, behind Evaluate: with

// case: a macro does not repeat the comments of its arguments
// with: before = "#define TWICE(x) x; x"
// all
TWICE(f(a /* here */));  // done
// want: line 1, before Evaluate: all
// want: line 2, behind Evaluate: done

// case: what says nothing is no comment
// -----
/***/
f();
