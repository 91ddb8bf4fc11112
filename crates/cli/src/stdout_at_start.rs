//! Whether there was a standard output when the program began.
//!
//! In place of a standard stream that is closed (`>&-`) the standard library opens /dev/null before `main`, so that no other file gets its
//! number. What is written there is lost without an error; that nothing was there can be seen only before.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before anything of the standard library runs.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Uses a system call and nothing of the standard library, which is not set up yet.
extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Whether standard output was closed.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
