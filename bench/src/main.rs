//! The program `duramen-bench`: workloads and figures.

fn main() {}
