//! What a service manager hears, if one has started the program (`Type=notify` of systemd).

use sd_notify::NotifyState;

/// All is set up.
pub fn ready() {
    // Without a service manager there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}
