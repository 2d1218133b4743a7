//! The plan of a host on the wire.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use firstflight_device::{MacAddress, mac_address};
use firstflight_segment::{IPV4_BYTES, IPV6_BYTES, TCP_BYTES};
use firstflight_tcp::Profile;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{Error, http::Fetch, http::LEAST_HEADER_BYTES};

/// The host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its address. The kernel's side of the interface must not have this address, or it would answer as well.
    pub address: IpAddr,
    /// Link-layer destination of its packets: six bytes in hexadecimal with colons. Devices without a link layer
    /// ignore it.
    #[serde(default = "anyone", deserialize_with = "read_mac_address")]
    pub neighbour: MacAddress,
    /// Decides initial sequence numbers, together with the clock.
    #[serde(default)]
    pub seed: u64,
    /// Largest packet of the interface in bytes.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    /// Whether to keep a row of every segment, to be taken with `{"do": "take"}`.
    #[serde(default)]
    pub segments: bool,
    /// A capture file of all packets that come and leave, pcap if its name ends so, else pcapng; it appears when the
    /// host stops.
    pub packets: Option<PathBuf>,
}

/// A command on the control socket.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Serves files on a port, in place of what listened there before.
    Listen {
        /// The port.
        port: u16,
        /// The profile of connections to it.
        profile: Arc<Profile>,
        /// Length that each response header is padded to; none: as it comes.
        header_bytes: Option<u32>,
    },
    /// Fetches files over a new connection.
    Fetch {
        /// The profile of the connection.
        profile: Arc<Profile>,
        /// The object to fetch.
        what: Fetch,
    },
    /// Counters since the beginning and, if they are kept, the segments since the last take.
    Take,
    /// The end: everything open is reset and reported.
    Stop,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// One sentence: what is wrong.
    pub fn from_json(text: &str) -> Result<Plan, Error> {
        let plan: Plan = serde_json::from_str(text).map_err(|source| Error::Unreadable { what: "the plan", source })?;
        if plan.mtu < SMALLEST_MTU {
            let limit = format!("it must be at least {SMALLEST_MTU}");
            return Err(Error::OutOfRange { name: "mtu", value: plan.mtu.into(), limit });
        }
        Ok(plan)
    }
}

impl Command {
    /// Reads a command for a host with this address and packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// One sentence: what is wrong, and what would be right.
    pub fn from_json(text: &str, address: IpAddr, mtu: u16) -> Result<Command, Error> {
        let command: Command =
            serde_json::from_str(text).map_err(|source| Error::Unreadable { what: "the command", source })?;
        match &command {
            Command::Listen { profile, header_bytes, .. } => {
                check_profile(profile, address, mtu)?;
                if let Some(value) = header_bytes.filter(|&bytes| bytes < LEAST_HEADER_BYTES) {
                    let limit = format!("a header takes at least {LEAST_HEADER_BYTES}");
                    return Err(Error::OutOfRange { name: "header_bytes", value, limit });
                }
            }
            Command::Fetch { profile, what } => {
                check_profile(profile, address, mtu)?;
                what.validate()?;
            }
            Command::Take | Command::Stop => {}
        }
        Ok(command)
    }
}

/// RFC 791 §3.2: what every link carries.
const SMALLEST_MTU: u16 = 68;

fn check_profile(profile: &Profile, address: IpAddr, mtu: u16) -> Result<(), Error> {
    profile.validate()?;
    // RFC 9293 §3.7.1: the headers without options, which the MSS does not count.
    let headers = TCP_BYTES + if address.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
    let (value, most) = (profile.mss_bytes, u32::from(mtu).saturating_sub(headers as u32));
    if value > most {
        let limit = format!("packets of {mtu} bytes hold segments of at most {most}");
        return Err(Error::OutOfRange { name: "mss_bytes", value, limit });
    }
    Ok(())
}

fn ethernet() -> u16 {
    1500
}

/// A locally administered address: the other end of a pair takes what comes.
fn anyone() -> MacAddress {
    [2, 0, 0, 0, 0, 1]
}

fn read_mac_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MacAddress, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || D::Error::custom(format!("{text:?} is no link-layer address, such as 02:00:00:00:00:01"));
    mac_address(&text).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_needs_an_address_and_no_more() {
        let plan = Plan::from_json(r#"{"address": "10.0.0.1"}"#).unwrap();
        assert_eq!((plan.mtu, plan.neighbour), (1500, [2, 0, 0, 0, 0, 1]));
        let other = Plan::from_json(r#"{"address": "10.0.0.1", "neighbour": "02:66:66:00:00:ff"}"#).unwrap();
        assert_eq!(other.neighbour, [2, 0x66, 0x66, 0, 0, 255]);
    }

    fn refusal(command: &str, address: &str) -> String {
        Command::from_json(command, address.parse().unwrap(), 1500).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_told() {
        let refused = |text| Plan::from_json(text).unwrap_err().to_string();
        assert!(refused(r#"{"address": "10.0.0.1", "neighbour": "02:66"}"#).contains("link-layer address"));
        assert!(refused(r#"{"address": "10.0.0.1", "mtu": 0}"#).contains("mtu is 0"));
        let command = |text: &str| refusal(text, "10.0.0.1");
        assert!(command(r#"{"do": "dance"}"#).contains("dance"));
        let profile = serde_json::to_string(&Profile { mss_bytes: 9000, ..Profile::linux() }).unwrap();
        let listen = format!(r#"{{"do": "listen", "port": 80, "profile": {profile}}}"#);
        assert!(command(&listen).contains("mss_bytes is 9000"));
        let short = listen.replace("9000", "1460").replace("\"port\"", "\"header_bytes\": 10, \"port\"");
        assert!(command(&short).contains("header_bytes is 10"));
        let of_ethernet = listen.replace("9000", "1460");
        assert!(Command::from_json(&of_ethernet, "10.0.0.1".parse().unwrap(), 1500).is_ok());
        assert!(refusal(&of_ethernet, "fd00::1").contains("at most 1440"));
    }
}
