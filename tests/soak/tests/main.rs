//! A short soak of every kind, the same each time.

mod lab;
mod support;
mod transport;
