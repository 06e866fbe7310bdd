//! What the bytes of one page mean.
