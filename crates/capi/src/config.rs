//! Settings as JSON objects; fields that are not named keep their defaults.

use core::ffi::c_char;
use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use transport::congestion::ControllerSpec;
use transport::era::Era;
use transport::path_manager::LocalAddress;
use transport::receiver_centric::ReceiverCentric;
use transport::{ConnectionConfig, EndpointConfig, SettingsChange};
use units::Duration;
use units::text::Text;

use crate::address::read_text;
use crate::status::{AnabranchStatus, Failure};

/// Reads the settings of an endpoint from an object; null gives the defaults.
///
/// # Safety
/// `json` is null or a string.
pub(crate) unsafe fn endpoint_config(json: *const c_char) -> Result<EndpointConfig, Failure> {
    // SAFETY: null, or a string by the contract of this function.
    Ok(unsafe { read_json::<EndpointSettings>(json) }?.map(|settings| settings.0).unwrap_or_default())
}

/// Reads the settings of a connection from an object; null gives the defaults.
///
/// # Safety
/// `json` is null or a string.
pub(crate) unsafe fn connection_config(json: *const c_char) -> Result<ConnectionConfig, Failure> {
    // SAFETY: null, or a string by the contract of this function.
    Ok(unsafe { read_json::<ConnectionSettings>(json) }?.map(|settings| settings.0).unwrap_or_default())
}

/// Reads the changed settings of a connection from an object.
///
/// # Safety
/// `json` is null or a string.
pub(crate) unsafe fn settings_change(json: *const c_char) -> Result<SettingsChange, Failure> {
    // Parse it as settings of a new connection first, which refuses unknown fields.
    // SAFETY: null, or a string by the contract of this function.
    let settings = unsafe { read_json::<ConnectionSettings>(json) }?;
    // SAFETY: the same string.
    let change = unsafe { read_json::<ChangeFields>(json) }?;
    let (Some(_), Some(change)) = (settings, change) else { return Err(Failure::null("config_json")) };
    match change.fixed.keys().next() {
        Some(name) => {
            let message = format_args!("config_json: {name} cannot change once the connection exists");
            Err(Failure::new(AnabranchStatus::Fixed, message))
        }
        None => Ok(change.into()),
    }
}

/// Reads the settings of an endpoint or a connection; an error names the field.
///
/// # Safety
/// `json` is null or a string.
unsafe fn read_json<T: DeserializeOwned>(json: *const c_char) -> Result<Option<T>, Failure> {
    // SAFETY: null, or a string by the contract of this function.
    unsafe { read_object(json, "config_json", "{\"mtu\": 1400}") }
}

/// Reads the JSON argument `name`; an error names the field, and shows an object `like` it if there is none.
///
/// # Safety
/// `json` is null or a string.
pub(crate) unsafe fn read_object<T: DeserializeOwned>(
    json: *const c_char,
    name: &str,
    like: &str,
) -> Result<Option<T>, Failure> {
    if json.is_null() {
        return Ok(None);
    }
    // SAFETY: null, or a string by the contract of this function.
    let text = unsafe { read_text(json, name) }?;
    // Serde also accepts a list for a struct: its fields in order, or none of them.
    if !text.trim_start().starts_with('{') {
        return Err(Failure::argument(format_args!("{name} is no object: write one like {like}, or give null")));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| Failure::argument(format_args!("{name}: {}: {}", error.path(), error.inner())))?;
    deserializer.end().map_err(|error| Failure::argument(format_args!("{name}: {error}")))?;
    Ok(Some(value))
}

#[derive(Deserialize)]
#[serde(transparent)]
struct EndpointSettings(#[serde(with = "EndpointFields")] EndpointConfig);

#[derive(Deserialize)]
#[serde(transparent)]
struct ConnectionSettings(#[serde(with = "ConnectionFields")] ConnectionConfig);

/// The fields of `EndpointConfig`.
#[derive(Deserialize)]
#[serde(remote = "EndpointConfig", default = "EndpointConfig::default", deny_unknown_fields)]
struct EndpointFields {
    #[serde(deserialize_with = "local_addresses")]
    local_addresses: Vec<LocalAddress>,
    ephemeral_port_first: u16,
    connections_max: usize,
    backlog: usize,
    reset_unknown: bool,
}

/// The fields of `ConnectionConfig`.
#[derive(Deserialize)]
#[serde(remote = "ConnectionConfig", default = "ConnectionConfig::default", deny_unknown_fields)]
struct ConnectionFields {
    mptcp: bool,
    checksum: bool,
    #[serde(deserialize_with = "controller")]
    congestion: ControllerSpec,
    scheduler: String,
    receiver_centric: Option<ReceiverCentric>,
    path_manager: String,
    send_buffer_bytes: u64,
    unsent_max_bytes: u64,
    receive_buffer_bytes: u64,
    mtu: u16,
    offload_max_bytes: u32,
    initial_window_segments: u32,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    nagle: bool,
    suspension: bool,
    hystart: bool,
    #[serde(with = "units::text::duration")]
    delayed_ack: Duration,
    #[serde(with = "units::text::duration")]
    rto_min: Duration,
    #[serde(deserialize_with = "optional_duration")]
    keep_alive: Option<Duration>,
    #[serde(with = "units::text::duration")]
    user_timeout: Duration,
    subflows_max: usize,
    remote_addresses_max: usize,
    #[serde(with = "units::text::duration")]
    time_wait: Duration,
    #[serde(skip)]
    era: Era,
}

/// The fields of `SettingsChange`, and all other fields.
#[derive(Deserialize)]
struct ChangeFields {
    #[serde(default, deserialize_with = "some_controller")]
    congestion: Option<ControllerSpec>,
    scheduler: Option<String>,
    send_buffer_bytes: Option<u64>,
    unsent_max_bytes: Option<u64>,
    receive_buffer_bytes: Option<u64>,
    nagle: Option<bool>,
    delayed_ack: Option<Text<Duration>>,
    #[serde(default, deserialize_with = "named_duration")]
    keep_alive: Option<Option<Duration>>,
    user_timeout: Option<Text<Duration>>,
    subflows_max: Option<usize>,
    remote_addresses_max: Option<usize>,
    time_wait: Option<Text<Duration>>,
    #[serde(flatten)]
    fixed: BTreeMap<String, IgnoredAny>,
}

impl From<ChangeFields> for SettingsChange {
    fn from(fields: ChangeFields) -> Self {
        let span = |text: Option<Text<Duration>>| text.map(|Text(span)| span);
        Self {
            congestion: fields.congestion,
            scheduler: fields.scheduler,
            send_buffer_bytes: fields.send_buffer_bytes,
            unsent_max_bytes: fields.unsent_max_bytes,
            receive_buffer_bytes: fields.receive_buffer_bytes,
            nagle: fields.nagle,
            delayed_ack: span(fields.delayed_ack),
            keep_alive: fields.keep_alive,
            user_timeout: span(fields.user_timeout),
            subflows_max: fields.subflows_max,
            remote_addresses_max: fields.remote_addresses_max,
            time_wait: span(fields.time_wait),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalAddressFields {
    ip: IpAddr,
    #[serde(default)]
    backup: bool,
}

fn local_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<LocalAddress>, D::Error> {
    let list = Vec::<LocalAddressFields>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|LocalAddressFields { ip, backup }| LocalAddress { ip, backup }).collect())
}

fn optional_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<Text<Duration>>::deserialize(deserializer)?.map(|Text(duration)| duration))
}

fn controller<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ControllerSpec, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn some_controller<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ControllerSpec>, D::Error> {
    controller(deserializer).map(Some)
}

/// Distinguishes an explicit null, which switches the setting off, from an absent field.
fn named_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Duration>>, D::Error> {
    optional_duration(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    fn read(json: &str) -> Result<ConnectionConfig, Failure> {
        let json = CString::new(json).unwrap();
        // SAFETY: a string of this function.
        unsafe { connection_config(json.as_ptr()) }
    }

    #[test]
    fn what_is_not_named_keeps_its_default() {
        let config =
            read(r#"{"rto_min": "1 s", "mtu": 1280, "keep_alive": "2 s", "congestion": "aimd(0.7,0.625)"}"#).unwrap();
        assert_eq!(config.rto_min, Duration::from_secs(1));
        assert_eq!(config.mtu, 1280);
        assert_eq!(config.keep_alive, Some(Duration::from_secs(2)));
        assert_eq!(config.congestion.name, "aimd");
        assert_eq!(config.congestion.parameters, [0.7, 0.625]);
        assert_eq!(config.scheduler, ConnectionConfig::default().scheduler);
        assert_eq!(config.receiver_centric, None);
        let turned_on = read(r#"{"receiver_centric": {}}"#).unwrap();
        assert_eq!(turned_on.receiver_centric, Some(ReceiverCentric::DEFAULT));
    }

    #[test]
    fn an_error_names_the_field() {
        let said = |json: &str| read(json).unwrap_err().message().to_string();
        assert!(said(r#"{"mtu": 70000}"#).contains("mtu"), "{}", said(r#"{"mtu": 70000}"#));
        assert!(said(r#"{"rto_min": "1 parsec"}"#).contains("rto_min"));
        assert!(said(r#"{"cwnd": 3}"#).contains("cwnd"));
        assert!(said("{").contains("EOF"));
        assert!(said("{} {}").contains("trailing"));
        for no_object in ["[]", "", "null", "[true, false]"] {
            assert!(said(no_object).contains("is no object"), "{no_object}");
        }
    }

    fn read_change(json: &str) -> Result<SettingsChange, Failure> {
        let json = CString::new(json).unwrap();
        // SAFETY: a string of this function.
        unsafe { settings_change(json.as_ptr()) }
    }

    #[test]
    fn a_change_has_what_is_named_and_nothing_else() {
        let change = read_change(r#"{"nagle": false, "user_timeout": "3 s", "congestion": "bbr"}"#).unwrap();
        let expected = SettingsChange {
            nagle: Some(false),
            user_timeout: Some(Duration::from_secs(3)),
            congestion: Some(ControllerSpec::named("bbr")),
            ..SettingsChange::default()
        };
        assert_eq!(change, expected);
        assert_eq!(read_change(r#"{"keep_alive": null}"#).unwrap().keep_alive, Some(None));
        assert_eq!(read_change("{}").unwrap(), SettingsChange::default());
    }

    #[test]
    fn what_is_fixed_is_told_from_what_is_no_setting() {
        let fixed = read_change(r#"{"nagle": true, "mtu": 1400}"#).unwrap_err();
        assert_eq!(fixed.status, AnabranchStatus::Fixed);
        assert_eq!(fixed.message(), "config_json: mtu cannot change once the connection exists");
        let unknown = read_change(r#"{"mut": 1400}"#).unwrap_err();
        assert_eq!(unknown.status, AnabranchStatus::InvalidArgument);
        assert!(unknown.message().contains("mut"));
        // SAFETY: null is allowed.
        let null = unsafe { settings_change(core::ptr::null()) };
        assert_eq!(null.unwrap_err().status, AnabranchStatus::InvalidArgument);
    }

    #[test]
    fn an_endpoint_has_addresses() {
        let json = CString::new(r#"{"local_addresses": [{"ip": "10.0.0.1"}, {"ip": "::1", "backup": true}]}"#).unwrap();
        // SAFETY: a string of this function.
        let config = unsafe { endpoint_config(json.as_ptr()) }.unwrap();
        assert_eq!(config.local_addresses.len(), 2);
        assert!(config.local_addresses[1].backup);
        assert_eq!(config.backlog, EndpointConfig::default().backlog);
    }
}
