//! An endpoint of the C interface, for tests in Rust.

use core::ptr;
use std::ffi::{CStr, CString};

use anabranch_c::{
    ANABRANCH_KEY_LEN, AnabranchAddress, AnabranchAgentEvent, AnabranchEndpoint, AnabranchEvent, AnabranchLinkUse,
    AnabranchStatus, anabranch_address_parse, anabranch_endpoint_free, anabranch_endpoint_new, anabranch_handle_packet,
    anabranch_handle_timeout, anabranch_last_error, anabranch_listen, anabranch_measure, anabranch_poll_agent_event,
    anabranch_poll_event, anabranch_poll_timeout, anabranch_poll_transmit, anabranch_public_key,
    anabranch_retire_agent, anabranch_start_agent,
};

/// An endpoint, and the private key of its agent.
pub struct Host {
    pub endpoint: *mut AnabranchEndpoint,
    secret: [u8; ANABRANCH_KEY_LEN],
}

impl Host {
    pub fn new(address: &str, secret: u8) -> Self {
        let config = CString::new(format!(r#"{{"local_addresses": [{{"ip": "{address}"}}]}}"#)).unwrap();
        let (mut endpoint, secret) = (ptr::null_mut(), [secret; ANABRANCH_KEY_LEN]);
        // SAFETY: strings and variables of this function.
        let status = unsafe { anabranch_endpoint_new(config.as_ptr(), secret.as_ptr(), &mut endpoint) };
        assert_eq!(status, AnabranchStatus::Ok);
        Self { endpoint, secret }
    }

    pub fn public_key(&self) -> String {
        let mut key = [0_u8; ANABRANCH_KEY_LEN];
        // SAFETY: variables of this function.
        assert_eq!(unsafe { anabranch_public_key(self.secret.as_ptr(), key.as_mut_ptr()) }, AnabranchStatus::Ok);
        key.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// Starts the agent; returns the message of the error.
    pub fn start(&self, place: &str, settings: &str) -> Result<(), String> {
        let [place, settings] = [place, settings].map(|text| CString::new(text).unwrap());
        let seed = self.secret.map(|octet| octet + 100);
        // SAFETY: an endpoint, strings and variables of this function.
        let status = unsafe {
            let (secret, seed) = (self.secret.as_ptr(), seed.as_ptr());
            anabranch_start_agent(self.endpoint, place.as_ptr(), settings.as_ptr(), secret, seed, 0)
        };
        // SAFETY: a string that is valid until the next failed call.
        let message = || unsafe { CStr::from_ptr(anabranch_last_error()) }.to_string_lossy().into_owned();
        if status == AnabranchStatus::Ok { Ok(()) } else { Err(message()) }
    }

    pub fn listen(&self, address: &str) -> AnabranchStatus {
        let (mut local, text, mut listener) = (AnabranchAddress::default(), CString::new(address).unwrap(), 0);
        // SAFETY: an endpoint, a string and variables of this function.
        unsafe {
            assert_eq!(anabranch_address_parse(text.as_ptr(), &mut local), AnabranchStatus::Ok);
            anabranch_listen(self.endpoint, &local, ptr::null(), &mut listener)
        }
    }

    /// Retires the agent.
    pub fn retire(&self, now_ns: u64) {
        // SAFETY: an endpoint.
        assert_eq!(unsafe { anabranch_retire_agent(self.endpoint, now_ns) }, AnabranchStatus::Ok);
    }

    /// Returns all its packets.
    pub fn transmit(&self, now_ns: u64) -> Vec<Vec<u8>> {
        let (mut packet, mut len, mut packets) = ([0_u8; 1500], 0, Vec::new());
        // SAFETY: an endpoint, and variables of this function.
        unsafe {
            while anabranch_poll_transmit(self.endpoint, now_ns, packet.as_mut_ptr(), packet.len(), &mut len)
                == AnabranchStatus::Ok
            {
                packets.push(packet[..len].to_vec());
            }
        }
        packets
    }

    /// Passes in a packet for it.
    pub fn handle(&self, packet: &[u8], now_ns: u64) {
        // SAFETY: an endpoint, and octets of the caller.
        let status = unsafe { anabranch_handle_packet(self.endpoint, packet.as_ptr(), packet.len(), now_ns) };
        assert_eq!(status, AnabranchStatus::Ok);
    }

    /// Passes all its packets to `other`; returns whether there were any.
    pub fn transmit_to(&self, other: &Self, now_ns: u64) -> bool {
        let packets = self.transmit(now_ns);
        packets.iter().for_each(|packet| other.handle(packet, now_ns));
        !packets.is_empty()
    }

    pub fn agent_event(&self) -> Option<AnabranchAgentEvent> {
        let mut event = core::mem::MaybeUninit::uninit();
        // SAFETY: an endpoint, and a variable of this function, which the call initialises.
        let status = unsafe { anabranch_poll_agent_event(self.endpoint, event.as_mut_ptr()) };
        // SAFETY: it was initialised.
        (status == AnabranchStatus::Ok).then(|| unsafe { event.assume_init() })
    }

    pub fn event(&self) -> Option<AnabranchEvent> {
        let mut event = AnabranchEvent::default();
        // SAFETY: an endpoint, and a variable of this function.
        (unsafe { anabranch_poll_event(self.endpoint, &mut event) } == AnabranchStatus::Ok).then_some(event)
    }

    pub fn measure(&self, measured: &AnabranchLinkUse, now_ns: u64) -> AnabranchStatus {
        // SAFETY: an endpoint, and a variable of this function.
        unsafe { anabranch_measure(self.endpoint, measured, now_ns) }
    }

    pub fn handle_timeout(&self, now_ns: u64) {
        // SAFETY: an endpoint.
        assert_eq!(unsafe { anabranch_handle_timeout(self.endpoint, now_ns) }, AnabranchStatus::Ok);
    }

    pub fn poll_timeout(&self) -> u64 {
        let mut at_ns = 0;
        // SAFETY: an endpoint, and a variable of this function.
        assert_eq!(unsafe { anabranch_poll_timeout(self.endpoint, &mut at_ns) }, AnabranchStatus::Ok);
        at_ns
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { anabranch_endpoint_free(self.endpoint) };
    }
}
