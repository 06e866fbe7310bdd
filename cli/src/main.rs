//! The program `duramen`.

fn main() {}
