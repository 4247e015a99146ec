//! The one integration binary; each module beside this file is a subject.

mod config;
