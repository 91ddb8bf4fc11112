//! House rules as tests: what ARCHITECTURE.md and CONTRIBUTING.md promise about the tree itself.

mod dead_files;
mod documents;
mod layers;
mod levels;
mod purity;
mod registries;
mod size;
mod text;
mod toolchain;
mod tree;
