// Names that were made on the way are told as what the source has.
// with: source = "P q; q.at.x = own_name; auto f = [&] {}; int index; blockDim.x"

// case: names are those of the source
// each line
'q_at' is read before it is set  // want: 'q.at' is read before it is set
'q_at_x[index_2]' is stored  // want: 'q.at.x[index]' is stored
lambda_f_8 stays a call  // want: the lambda f stays a call
lambda_of_12 stays a call  // want: a lambda stays a call
own_name is called  // want: own_name is called
far_away is called, __any_sync too  // want: far_away is called, __any_sync too
index_2_3 differs  // want: index differs
