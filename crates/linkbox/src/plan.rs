//! The plan of a link box, as JSON.

use std::net::IpAddr;

use firstflight_path::{LinkSpec, Nanos};
use serde::Deserialize;

use crate::{Error, refused};

/// Links between ports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The links, each with both directions.
    pub links: Vec<LinkPlan>,
    /// Sources and destinations of packets, in the order of the devices.
    pub ports: Vec<PortPlan>,
    /// The links between two ports, by direction of travel.
    pub routes: Vec<RoutePlan>,
    /// For how long the meters count, from the start or a reset on.
    pub duration_ns: Nanos,
    /// Their interval; none: all of it.
    pub meter_interval_ns: Option<Nanos>,
    /// Seed of the queues' and losses' randomness; the streams are the simulator's.
    pub seed: u64,
    /// Replicate of the experiment, until a reset names another.
    #[serde(default)]
    pub replicate: u32,
    /// Keep a row of `crossings` for each packet at each link.
    #[serde(default)]
    pub log: bool,
    /// The last stretch before a deadline that is not slept.
    #[serde(default)]
    pub spin_ns: Nanos,
    /// The largest packet; a larger one voids the run, since the devices were to send none.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    /// Packets that may be in flight concurrently; with more the box ends with an error.
    #[serde(default = "many")]
    pub most_packets: u32,
}

/// RFC 791 §3.2: the packet size that every link carries.
const SMALLEST_MTU: u16 = 68;

/// The three bits of IP precedence (RFC 791 §3.1) say no more.
const HIGHEST_CLASS: u8 = 7;

/// At 1500 bytes each, they take 1.5 GB.
const MOST_PACKETS: u32 = 1 << 20;

/// Intervals of a meter, of which each link has two.
const MOST_INTERVALS: u64 = 1 << 22;

fn ethernet() -> u16 {
    1500
}

fn many() -> u32 {
    65_536
}

/// A link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Its name; its reverse path has the same name with `.reverse`.
    pub name: String,
    /// There.
    pub forward: LinkSpec,
    /// And back.
    pub reverse: LinkSpec,
}

/// A port, behind which is a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortPlan {
    /// Its name.
    pub name: String,
    /// The host's address.
    pub address: IpAddr,
    /// The Ethernet address of the host's end of a veth pair, like "02:00:00:00:00:01": needed for a packet socket.
    pub peer_mac: Option<String>,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// There.
    Forward,
    /// And back.
    Reverse,
}

/// The links that packets from one port to another cross.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutePlan {
    /// Name of the port where they come in.
    pub from: String,
    /// Name of the port where they go out: the one with their destination address.
    pub to: String,
    /// Links by name, in order.
    pub path: Vec<(String, Way)>,
    /// Class of the packets that carry none themselves, for queues that prefer the higher one.
    #[serde(default)]
    pub class: u8,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// A mismatch with the form of a plan.
    pub fn from_json(text: &str) -> Result<Plan, Error> {
        let plan: Plan = serde_json::from_str(text)
            .map_err(|source| Error::Unreadable { what: "the plan of the link emulator", source })?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Error> {
        if self.mtu < SMALLEST_MTU {
            let limit = format!("it must be at least {SMALLEST_MTU}");
            return Err(Error::OutOfRange { name: "mtu", value: self.mtu.into(), limit });
        }
        if self.most_packets > MOST_PACKETS {
            let limit = format!("there is room for at most {MOST_PACKETS}");
            return Err(Error::OutOfRange { name: "most_packets", value: self.most_packets, limit });
        }
        if let Some(route) = self.routes.iter().find(|route| route.class > HIGHEST_CLASS) {
            return Err(refused!(
                "the route from {:?} to {:?} has class {}; the highest is {HIGHEST_CLASS}",
                route.from,
                route.to,
                route.class
            ));
        }
        let interval = self.meter_interval_ns.unwrap_or(self.duration_ns).max(1);
        let intervals = self.duration_ns.div_ceil(interval);
        if intervals > MOST_INTERVALS {
            return Err(refused!(
                "meter_interval_ns is {interval}, which makes {intervals} intervals of {} ns; there is room for at most \
                 {MOST_INTERVALS}",
                self.duration_ns
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(field: &str, value: impl Into<serde_json::Value>) -> String {
        let mut plan = serde_json::json!({
            "links": [], "ports": [], "routes": [], "duration_ns": 1_000_000_000u64, "meter_interval_ns": null, "seed": 1
        });
        assert!(Plan::from_json(&plan.to_string()).is_ok());
        plan[field] = value.into();
        Plan::from_json(&plan.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        assert!(refusal("mtu", 0).starts_with("mtu is 0;"));
        assert!(refusal("most_packets", u32::MAX).starts_with("most_packets is 4294967295;"));
        let routes = serde_json::json!([{"from": "a", "to": "b", "path": [], "class": 8}]);
        assert_eq!(refusal("routes", routes), "the route from \"a\" to \"b\" has class 8; the highest is 7");
        assert!(refusal("meter_interval_ns", 1).starts_with("meter_interval_ns is 1,"));
    }
}
