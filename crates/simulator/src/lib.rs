//! The virtual-time driver: endpoints and network nodes on one event queue.
