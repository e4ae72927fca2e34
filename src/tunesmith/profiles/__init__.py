"""What is known of a kernel at a workload, and what follows from it: facts, roofline, rules, diagnosis."""
