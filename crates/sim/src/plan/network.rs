//! Networks as a plan has them: topologies of links, and the values drawn for each link of a tree.

use firstflight_path::{LinkSpec, Nanos, SpecError};
use serde::Deserialize;

use crate::distribution::Distribution;

/// The two directions of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPair {
    /// Left to right; host to router on the left, router to host on the right; server to user in a star.
    pub forward: LinkSpec,
    /// The other direction.
    pub reverse: LinkSpec,
}

/// Topologies.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "topology", rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Hosts on two sides of a bottleneck.
    Dumbbell {
        /// Between the two routers.
        bottleneck: LinkPair,
        /// Access links of the hosts on the left.
        left: Vec<LinkPair>,
        /// Access links of the hosts on the right.
        right: Vec<LinkPair>,
    },
    /// One server and users with a link each.
    Star {
        /// The server's link.
        hub: LinkPair,
        /// The users' links.
        spokes: Vec<LinkPair>,
    },
    /// Links in a row, with a host at each node.
    Chain {
        /// From node 0 on.
        links: Vec<LinkPair>,
    },
    /// Servers at the root, and groups of links behind one another with users at the ends.
    Tree {
        /// The servers' links.
        server: Vec<LinkPair>,
        /// Each after the one it is behind.
        group: Vec<Group>,
    },
}

/// Links alike in a tree, behind each link of another group or the root.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name of its links, and of its users if nothing is behind it.
    pub name: String,
    /// The group that it is behind; none: the root.
    pub behind: Option<String>,
    /// Links behind each link of that group.
    pub count: u32,
    /// A link; forward is away from the root.
    pub link: LinkPair,
    /// The values that are drawn for each link.
    #[serde(default)]
    pub draw: [LinkLaws; 2],
}

/// The values that are drawn for one direction of a link; they replace those of the link.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLaws {
    /// Bits a second.
    pub rate_bps: Option<Distribution>,
    /// Propagation delay.
    pub delay_ns: Option<Distribution>,
    /// Probability of loss.
    pub loss: Option<Distribution>,
    /// The limit of the queue, where it depends on drawn values.
    pub limit: Option<DrawnLimit>,
}

/// The limit of a queue before a link that is drawn: the bytes that the link carries
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawnLimit {
    /// in this time,
    TimeNs(Nanos),
    /// in this number of thousandths of its propagation there and back.
    BdpThousandths(u64),
}

impl LinkLaws {
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        [("rate_bps", &self.rate_bps), ("delay_ns", &self.delay_ns), ("loss", &self.loss)]
            .into_iter()
            .filter_map(|(name, law)| law.as_ref().map(|law| (name, law)))
            .try_for_each(|(name, law)| law.validate(name))
    }
}
