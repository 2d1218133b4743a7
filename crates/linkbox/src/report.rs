//! The answers of a link box: counters, tables, capture files.

use std::path::Path;

use firstflight_device::{monotonic_ns, wall_ahead_ns};
use firstflight_records::{LinkInterval, NamedColumns, Row};
use serde_json::{Value, json};

use crate::{Error, link_box::LinkBox, refused};

impl LinkBox {
    /// The common part of every answer: the run's origin and now, by the monotonic clock, and the packets in the box.
    pub(crate) fn state(&self) -> Value {
        json!({
            "ok": true,
            "origin_ns": self.origin,
            "now_ns": monotonic_ns(),
            "replicate": self.replicate,
            "under_way": self.network.under_way(),
        })
    }

    /// The events since the last take, with the tables that there are.
    pub(crate) fn take(&mut self, intervals: bool) -> (Value, Vec<NamedColumns>) {
        let mut answer = self.state();
        answer["links"] = (0..self.network.lines()).map(|line| self.link(line)).collect();
        let ports = self.ports.iter_mut().map(|port| {
            let mut counts = json!(port.take_counts());
            counts["name"] = port.name.clone().into();
            counts
        });
        answer["ports"] = ports.collect();
        answer["unaccounted"] = (self.inside - self.network.under_way() as i64).into();
        answer["lateness"] = self.lateness.take();
        let mut tables = Vec::new();
        if intervals {
            tables.push(Row::columns(&self.intervals()));
        }
        if let Some(log) = &mut self.log {
            let (crossings, missed) = log.take();
            answer["log_missed"] = missed.into();
            answer["connections"] = json!(log.connections.ends);
            tables.push(Row::columns(&crossings));
        }
        (answer, tables)
    }

    /// The counters of a link's direction, with the moment at which its tables' times begin.
    fn link(&mut self, line: u16) -> Value {
        let mut link = json!(self.network.take_counts(line));
        link["name"] = self.network.name(line).into();
        let (_, epoch) = self.network.meter(line);
        link["epoch_ns"] = self.origin.saturating_add(epoch).into();
        link
    }

    /// The meters' intervals that have begun.
    fn intervals(&self) -> Vec<LinkInterval> {
        let now = monotonic_ns().saturating_sub(self.origin);
        let mut table = Vec::new();
        for line in 0..self.network.lines() {
            let (meter, epoch) = self.network.meter(line);
            for (start, length, counts) in meter.intervals().take_while(|(start, ..)| epoch + start <= now) {
                table.push(counts.row(self.replicate, line, start, length));
            }
        }
        table
    }

    /// Keeps packets at the far ends of these links from now on, and none of the others.
    pub(crate) fn watch(&mut self, links: Option<Vec<String>>) -> Result<(), Error> {
        self.is_watched = self.chosen(links)?;
        self.kept.clear();
        Ok(())
    }

    /// Writes the packets of watched links, or of these of them. Returns their number.
    pub(crate) fn write_kept(&self, path: &Path, links: Option<Vec<String>>) -> Result<usize, Error> {
        let chosen = self.chosen(links)?;
        let names: Vec<&str> = (0..self.network.lines()).map(|line| self.network.name(line)).collect();
        self.kept.write(path, &names, wall_ahead_ns(), |interface| chosen[usize::from(interface)])
    }

    /// For each direction of a link, whether it is one of these; none: all are.
    fn chosen(&self, links: Option<Vec<String>>) -> Result<Vec<bool>, Error> {
        let all: Vec<&str> = (0..self.network.lines()).map(|line| self.network.name(line)).collect();
        if let Some(name) = links.iter().flatten().find(|name| !all.contains(&name.as_str())) {
            return Err(refused!("there is no link {name:?}; the links are {}", all.join(", ")));
        }
        Ok(all.iter().map(|name| links.as_ref().is_none_or(|links| links.iter().any(|one| one == name))).collect())
    }
}
