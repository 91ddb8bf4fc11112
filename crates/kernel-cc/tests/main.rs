//! Compares the rules in C with the engine's controllers: the same questions, the same answers.

mod acc;
mod golden;
mod program;
mod wide;
