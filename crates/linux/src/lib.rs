//! Real Linux: TUN driver, network namespaces, real-time emulator.
