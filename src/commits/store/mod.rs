//! The SQL of the commits pipeline.

pub mod branches;
pub mod export;
pub mod import;
pub mod pages;
pub mod projects;
pub mod reading;
