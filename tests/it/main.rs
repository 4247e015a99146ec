//! The one integration binary: real databases, real sockets, the real program.

mod fetching;
