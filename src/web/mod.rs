//! Pages over HTTP.
