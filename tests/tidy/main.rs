//! Rules of the tree as tests: what ARCHITECTURE.md and CONTRIBUTING.md promise.

mod dead_files;
mod documents;
mod layers;
mod levels;
mod purity;
mod registries;
mod scripts;
mod size;
mod text;
mod toolchain;
mod tree;
