//! Trees: groups of links behind one another, with users at the ends and servers at the root.

use firstflight_path::{LinkSpec, SpecError};

use super::{Host, Topology};
use crate::{
    PlanError,
    distribution::Distribution,
    plan::{DrawnLimit, Group, LinkLaws, LinkPair},
    population,
    random::{Purpose, Stream},
    records::NO_LINK,
};

/// Groups of a tree: random streams number them with 8 bits.
const MOST_GROUPS: usize = 256;
/// Links with two directions each, which the records number with 16 bits.
const MOST_PAIRS: u64 = NO_LINK as u64 / 2;
/// All hosts at the ends of a tree.
const USERS: &str = "users";
const SERVER: &str = "server";

impl Topology {
    /// Lays out a tree behind the root.
    pub(super) fn tree(
        &mut self,
        server: &[LinkPair],
        groups: &[Group],
        seed: u64,
        replicate: u32,
    ) -> Result<(), PlanError> {
        self.group(SERVER, server, |forward, reverse| Host { router: 0, up: forward, down: reverse })?;
        if groups.is_empty() || groups.len() > MOST_GROUPS {
            return Err(misfit!("a tree has 1 to {MOST_GROUPS} groups, not {}", groups.len()));
        }
        let first_user = self.hosts.len() as u32;
        // The routers of each group that has groups behind it.
        let mut routers: Vec<Vec<usize>> = Vec::with_capacity(groups.len());
        let mut pairs = server.len() as u64;
        for (index, group) in groups.iter().enumerate() {
            let parents = self.parents(&groups[..index], &routers, group)?;
            pairs = pairs.saturating_add(parents.len() as u64 * u64::from(group.count));
            if pairs > MOST_PAIRS {
                return Err(misfit!("with group {:?} the tree has {pairs} links; at most {MOST_PAIRS}", group.name));
            }
            let has_more = groups[index + 1..].iter().any(|other| other.behind.as_deref() == Some(group.name.as_str()));
            let first_host = self.hosts.len() as u32;
            let mut own = Vec::new();
            let places = parents.iter().flat_map(|&parent| (0..group.count).map(move |_| parent));
            for (instance, parent) in places.enumerate() {
                let name = format!("{}[{instance}]", group.name);
                let stream = Stream::new(seed, replicate, Purpose::Link, index as u32, instance as u32);
                let pair = drawn(group, &stream).map_err(PlanError::within(format_args!("link {name:?}")))?;
                let trunk = self.pair(name, &pair);
                if has_more {
                    own.push(self.router(parent, trunk));
                } else {
                    let [down, up] = trunk.map(Some);
                    self.hosts.push(Host { router: parent, up, down });
                }
            }
            if !has_more {
                self.groups.push((group.name.clone(), first_host..self.hosts.len() as u32));
            }
            routers.push(own);
        }
        self.groups.push((USERS.into(), first_user..self.hosts.len() as u32));
        Ok(())
    }

    /// The routers behind which a group is.
    fn parents(&self, earlier: &[Group], routers: &[Vec<usize>], group: &Group) -> Result<Vec<usize>, PlanError> {
        if group.count == 0 {
            return Err(misfit!("group {:?} has count 0: give it at least one link", group.name));
        }
        if [SERVER, USERS].contains(&group.name.as_str()) || earlier.iter().any(|other| other.name == group.name) {
            return Err(misfit!("the name {:?} of a group is taken: give it another one", group.name));
        }
        let Some(behind) = &group.behind else { return Ok(vec![0]) };
        let parent = earlier.iter().position(|other| other.name == *behind);
        let parent = parent.ok_or_else(|| {
            misfit!("group {:?} is behind {behind:?}, but no group before it is called so", group.name)
        })?;
        Ok(routers[parent].clone())
    }
}

/// A link of a group. Both directions are drawn at the same quantile: the fastest downlink has the fastest uplink.
fn drawn(group: &Group, stream: &Stream) -> Result<LinkPair, SpecError> {
    let mut pair = group.link.clone();
    for (spec, laws) in [&mut pair.forward, &mut pair.reverse].into_iter().zip(&group.draw) {
        draw_into(spec, laws, stream)?;
    }
    let round_trip = u128::from(pair.forward.delay_ns) + u128::from(pair.reverse.delay_ns);
    for (spec, laws) in [&mut pair.forward, &mut pair.reverse].into_iter().zip(&group.draw) {
        let time = match laws.limit {
            None => continue,
            Some(DrawnLimit::TimeNs(time)) => u128::from(time),
            Some(DrawnLimit::BdpThousandths(multiple)) => u128::from(multiple) * round_trip / 1000,
        };
        let rate =
            spec.rate_bps.ok_or_else(|| SpecError::new("rate_bps", "missing", "a limit in time needs a rate"))?;
        spec.queue.set_limit((u128::from(rate) * time / 8_000_000_000).try_into().unwrap_or(u64::MAX));
    }
    Ok(pair)
}

fn draw_into(spec: &mut LinkSpec, laws: &LinkLaws, stream: &Stream) -> Result<(), SpecError> {
    let draw = |law: &Option<Distribution>, name: &'static str, index: u64| {
        let value = law.as_ref().map(|law| law.quantile(stream.uniforms(index)[0]));
        value.map(|value| population::check(name, value).map(|()| value)).transpose()
    };
    if let Some(rate) = draw(&laws.rate_bps, "rate_bps", 0)? {
        spec.rate_bps = Some(libm::round(rate) as u64);
    }
    if let Some(delay) = draw(&laws.delay_ns, "delay_ns", 1)? {
        spec.delay_ns = libm::round(delay) as u64;
    }
    if let Some(loss) = draw(&laws.loss, "loss", 2)? {
        spec.loss = loss;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use firstflight_path::queue::{DropTailSpec, Limit, QueueSpec};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_in_time_or_bdp_is_by_the_rate_and_the_delays_that_were_drawn() {
        let rate = json!({"distribution": "uniform", "low": 1_000_000.0, "high": 50_000_000.0});
        let delay = json!({"distribution": "uniform", "low": 1_000_000.0, "high": 90_000_000.0});
        let link = json!({"rate_bps": 1000, "delay_ns": 1, "queue": {"kind": "drop_tail", "limit": {"packets": 9}}});
        let group: Group = serde_json::from_value(json!({
            "name": "home", "behind": null, "count": 1, "link": {"forward": link, "reverse": link},
            "draw": [
                {"rate_bps": rate, "delay_ns": delay, "limit": {"bdp_thousandths": 2000}},
                {"rate_bps": rate, "limit": {"time_ns": 50_000_000}},
            ],
        }))
        .unwrap();
        for instance in 0..20 {
            let pair = drawn(&group, &Stream::new(3, 0, Purpose::Link, 0, instance)).unwrap();
            let limit = |spec: &LinkSpec| match &spec.queue {
                QueueSpec::DropTail(DropTailSpec { limit: Limit::Bytes(bytes), .. }) => *bytes,
                other => panic!("{other:?}"),
            };
            let [there, back] = [pair.forward.rate_bps, pair.reverse.rate_bps].map(Option::unwrap);
            let round_trip = pair.forward.delay_ns + pair.reverse.delay_ns;
            assert_eq!(limit(&pair.forward), 2 * there * round_trip / 8_000_000_000);
            assert_eq!(limit(&pair.reverse), back * 50_000_000 / 8_000_000_000);
        }
    }
}
