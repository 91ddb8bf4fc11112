//! Commands of the endpoint's owner, sensible or not.

use std::net::SocketAddr;

use transport::congestion::{Competition, WindowSet};
use transport::error::ChangeError;
use transport::path_manager::LocalAddress;
use transport::scheduler::SCHEDULERS;
use transport::{ConnectionId, Received, SettingsChange, SubflowId};
use units::Duration;
use wire::{Pattern, Payload};

use super::source::Source;
use super::{App, PORT, World, controller, local_ip};
use crate::forger::STREAM;

/// The pattern that the application writes.
const APP_STREAM: u32 = 1;

impl World {
    pub(super) fn command(&mut self, source: &mut Source) {
        match source.u8() % 14 {
            0 => self.connect(source),
            1 | 2 => self.write(source),
            3 | 4 => self.read(source),
            5 => self.on_app(source, |world, id| {
                let _ = world.endpoint.shutdown(id, world.now);
            }),
            6 => match source.u8() % 3 {
                0 => self.on_app(source, |world, id| {
                    let _ = world.endpoint.close(id, world.now);
                }),
                1 => self.on_app(source, |world, id| {
                    let _ = world.endpoint.abort(id, world.now);
                }),
                _ => self.on_app(source, |world, id| {
                    let _ = world.endpoint.close(id, world.now);
                    world.endpoint.release(id);
                }),
            },
            7 => self.change_subflows(source),
            8 => self.change_addresses(source),
            9 => self.change_listener(source),
            10 => self.on_app(source, |world, id| {
                let stats = world.endpoint.stats(id);
                assert!(stats.is_none_or(|stats| stats.acked_bytes <= stats.written_bytes));
            }),
            11 => self.accept(),
            12 => self.change_settings(source),
            _ => self.hold_back_or_stop_reading(source),
        }
    }

    fn pick_app(&self, source: &mut Source) -> Option<usize> {
        let pick = usize::from(source.u8());
        (!self.apps.is_empty()).then(|| pick % self.apps.len())
    }

    fn on_app(&mut self, source: &mut Source, act: impl FnOnce(&mut Self, ConnectionId)) {
        if let Some(app) = self.pick_app(source) {
            act(self, self.apps[app].id);
        }
    }

    fn connect(&mut self, source: &mut Source) {
        let remote = SocketAddr::from(([10, 9, 1, source.u8() % 4], PORT));
        let mut local = local_ip(1 + source.u8() % 2);
        local.set_port(source.pick(&[0, 0, 0, 5000]));
        if let Ok(id) = self.endpoint.connect(local, remote, self.config.clone(), self.now) {
            self.apps.push(App { id, written: 0, read: 0, finished: false });
        }
    }

    fn write(&mut self, source: &mut Source) {
        let Some(app) = self.pick_app(source) else { return };
        let len = source.pick(&[1, 100, 1400, 20_000, 300_000]);
        let App { id, written, .. } = self.apps[app];
        let mut data = Payload::Pattern(Pattern { stream: APP_STREAM, offset: written, len });
        if self.real_octets {
            data = data.to_bytes().into();
        }
        let capacity = self.endpoint.send_capacity(id);
        let sent = match source.u8() % 4 {
            0 => self.endpoint.send_more(id, data, self.now),
            _ => self.endpoint.send(id, data, self.now),
        };
        if let Ok(taken) = sent {
            assert_eq!(taken as u64, capacity.min(u64::from(len)));
            self.apps[app].written += taken as u64;
        }
    }

    fn read(&mut self, source: &mut Source) {
        let Some(app) = self.pick_app(source) else { return };
        let max = source.pick(&[1, 1000, usize::MAX]);
        let App { id, read, finished, .. } = self.apps[app];
        match self.endpoint.recv(id, max, self.now) {
            Ok(Received::Data(payload)) => {
                assert!(!payload.is_empty() && payload.len() <= max);
                assert!(!finished, "data after the end of the stream");
                if self.truthful {
                    let len = payload.len() as u32;
                    let expected = Payload::Pattern(Pattern { stream: STREAM, offset: read, len });
                    assert_eq!(payload.to_bytes(), expected.to_bytes(), "the stream at {read}");
                }
                self.apps[app].read += payload.len() as u64;
            }
            Ok(Received::Finished) => self.apps[app].finished = true,
            Ok(Received::Pending) => assert!(!finished, "the stream was over"),
            Err(_) => {}
        }
    }

    fn change_settings(&mut self, source: &mut Source) {
        let bits = source.u8();
        let bit = |n: u8| bits >> n & 1 == 1;
        let buffers = [65536, 1, 3000, 1 << 18];
        let change = SettingsChange {
            congestion: bit(0).then(|| controller(source)),
            scheduler: bit(1).then(|| source.pick(SCHEDULERS).name.into()),
            send_buffer_bytes: bit(2).then(|| source.pick(&buffers)),
            receive_buffer_bytes: bit(3).then(|| source.pick(&buffers)),
            nagle: bit(4).then(|| bit(5)),
            delayed_ack: bit(4).then(|| Duration::from_millis(source.pick(&[0, 40, 400]))),
            keep_alive: bit(5).then(|| source.pick(&[None, Some(Duration::from_secs(10)), Some(Duration::MAX)])),
            user_timeout: bit(6).then(|| Duration::from_secs(source.pick(&[5, 1000]))),
            subflows_max: bit(7).then(|| source.pick(&[0, 1, 4])),
            ..SettingsChange::default()
        };
        self.on_app(source, |world, id| {
            let changed = world.endpoint.change(id, &change, world.now);
            assert!(!matches!(changed, Err(ChangeError::UnusablePolicy(_) | ChangeError::UnusableSetting(_))));
        });
    }

    fn hold_back_or_stop_reading(&mut self, source: &mut Source) {
        match source.u8() % 8 {
            0 => {
                let Some(app) = self.pick_app(source) else { return };
                if self.endpoint.shutdown_read(self.apps[app].id, self.now).is_ok() {
                    self.apps[app].finished = true;
                    assert_eq!(self.endpoint.readable_bytes(self.apps[app].id), 0);
                }
            }
            choice => self.on_app(source, |world, id| {
                let _ = world.endpoint.set_corked(id, choice < 5, world.now);
            }),
        }
    }

    fn change_subflows(&mut self, source: &mut Source) {
        let Some(app) = self.pick_app(source) else { return };
        let (id, subflow, backup) = (self.apps[app].id, SubflowId(u16::from(source.u8() % 6)), source.u8() & 1 == 1);
        let remote = SocketAddr::from(([10, 9, 0, source.u8() % 4], PORT));
        match source.u8() % 5 {
            0 => {
                let _ = self.endpoint.add_subflow(id, local_ip(1 + source.u8() % 2), remote, backup, self.now);
            }
            1 => {
                let _ = self.endpoint.remove_subflow(id, subflow, self.now);
            }
            2 => {
                let _ = self.endpoint.set_priority(id, subflow, backup, self.now);
            }
            _ => self.steer_congestion(source, id, subflow),
        }
    }

    fn steer_congestion(&mut self, source: &mut Source, id: ConnectionId, subflow: SubflowId) {
        let amount = u64::from(source.u8());
        let competition = Competition { ratio: amount as f64 / 16.0, increase: 0.7, decrease: 0.625 };
        let _ = self.endpoint.set_competition(id, subflow, Some(competition), self.now);
        let cut = WindowSet { cwnd: amount * 256, ssthresh: amount * 128 };
        let _ = self.endpoint.cut_window(id, subflow, cut, self.now);
    }

    fn change_addresses(&mut self, source: &mut Source) {
        let ip = local_ip(1 + source.u8() % 5).ip();
        match source.u8() % 4 {
            0 => self.endpoint.add_local_address(LocalAddress { ip, backup: false }, self.now),
            1 => self.endpoint.remove_local_address(ip, self.now),
            2 => self.on_app(source, |world, id| {
                let _ = world.endpoint.announce_address(id, ip, Some(PORT), world.now);
            }),
            _ => self.on_app(source, |world, id| {
                let _ = world.endpoint.withdraw_address(id, ip, world.now);
            }),
        }
    }

    fn change_listener(&mut self, source: &mut Source) {
        match self.listener.take() {
            Some(listener) if source.u8() & 3 == 0 => self.endpoint.close_listener(listener, self.now),
            Some(listener) => self.listener = Some(listener),
            None => {
                let local = SocketAddr::from(([0, 0, 0, 0], PORT));
                self.listener = self.endpoint.listen(local, self.config.clone()).ok();
            }
        }
    }
}
