//! Tests of the C interface from outside: a program in C, and the header.

mod agents;
mod c_program;
mod header;
mod host;
mod ns3;
mod transit;
