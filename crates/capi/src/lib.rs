//! C ABI of the engine.
