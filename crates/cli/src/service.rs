//! Notifications to a service manager, if one has started the program (`Type=notify` of systemd).

use sd_notify::NotifyState;

/// Reports that everything is set up.
pub fn ready() {
    // Without a service manager this does nothing.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}
