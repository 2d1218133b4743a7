//! Runs a script in virtual time: events in order, the endpoint's timers between them.

mod calls;
mod checks;
mod connection;
mod descriptors;
mod errno;
mod expect;
mod numbers;
mod socket_options;
mod stop;
mod world;

use crate::options::ScriptSettings;
use crate::problem::{Problem, malformed};
use crate::report::{Check, Report};
use crate::script::{Action, Block, Event, Packet, Script, When, seconds};
use calls::Blocked;
use connection::Connection;
use descriptors::Descriptors;
use firstflight_tcp::{Flags, Nanos};
use stop::Stop;
use world::{Departure, World};

/// Reads a script and runs it; `tolerance_ns` is how far an event may be from its time, unless the script allows more.
pub fn run_text(text: &str, tolerance_ns: Nanos) -> Report {
    let read = Script::read(text).and_then(|script| Ok((ScriptSettings::new(&script, tolerance_ns)?, script)));
    match read {
        Ok((plan, script)) => Runner::new(&script, plan).run(),
        Err(problem) => Report::of_problem(&problem),
    }
}

struct Runner<'a> {
    script: &'a Script,
    plan: ScriptSettings,
    world: World,
    descriptors: Descriptors,
    /// A system call that has not returned yet.
    blocked: Option<Blocked>,
    /// Lines whose packet has PSH where the script has none, or the other way round.
    push_lines: Vec<u32>,
    checks: Vec<Check>,
}

impl<'a> Runner<'a> {
    fn new(script: &'a Script, plan: ScriptSettings) -> Self {
        Self {
            script,
            world: World::new(plan.clock_at_start),
            plan,
            descriptors: Descriptors::default(),
            blocked: None,
            push_lines: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn all(&mut self) -> Result<(), Stop> {
        let script = self.script;
        let mut previous = 0;
        for event in &script.events {
            if !event.when.relative && event.when != When::ANY {
                let time = event.when.from;
                if time < previous {
                    malformed!(event.line, "time goes backwards, from {} to {}", seconds(previous), seconds(time));
                }
                previous = time;
            }
            self.event(event)?;
            if self.world.is_exhausted() {
                return Err(Stop::differs(event.line, "the connection does not become idle".to_owned()));
            }
        }
        self.finish_blocked()
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let base = self.world.now;
        let (start, end) = event.when.times(base);
        if !matches!(event.action, Action::Expect(_)) {
            self.wait_until(event.line, start)?;
        }
        match &event.action {
            Action::Expect(packet) => self.expect(event, packet, start, end),
            Action::Inject(packet) => self.inject(event.line, packet),
            Action::Call(call) => self.call(event, call, base),
            Action::Command(shell) => self.command(shell),
            Action::Check(block) => {
                self.check(block);
                Ok(())
            }
        }
    }

    /// Lets time pass until an event of the script.
    fn wait_until(&mut self, line: u32, time: Nanos) -> Result<(), Stop> {
        if self.world.now.saturating_sub(time) > self.tolerance(time) {
            let now = seconds(self.world.now);
            return Err(Stop::differs(
                line,
                format!("this event should happen at {}, but what came before it took until {now}", seconds(time)),
            ));
        }
        loop {
            self.resume()?;
            if !self.world.step(time) {
                break;
            }
        }
        self.world.now = self.world.now.max(time);
        Ok(())
    }

    /// Tolerance of an event at `time`.
    fn tolerance(&self, time: Nanos) -> Nanos {
        let since = time.saturating_sub(self.world.now);
        let share = (since as f64 * self.plan.tolerance_percent / 100.0) as Nanos;
        self.plan.tolerance_ns.max(share)
    }

    fn inject(&mut self, line: u32, packet: &Packet) -> Result<(), Stop> {
        let opens = packet.flags.contains(Flags::SYN) && !packet.flags.contains(Flags::ACK);
        let current = self.world.current().filter(|index| {
            !(opens && self.world.connections[*index].endpoint.is_finished() && self.descriptors.listening().is_some())
        });
        let index = match (current, opens, self.descriptors.listening()) {
            (Some(index), ..) => index,
            (None, true, Some(listener)) => self.begin_serving(line, listener)?,
            _ => malformed!(line, "this packet belongs to no connection: no socket listens or connects before it"),
        };
        let scale = self.plan.scale_echoes;
        let connection = &self.world.connections[index];
        let segment = connection.numbers.segment_of(packet, connection.endpoint.peer_initial_sequence(), scale);
        let segment = segment.map_err(|refusal| Problem::malformed(line, refusal))?;
        self.world.deliver(index, &segment, &packet.to_string());
        self.resume()
    }

    /// A SYN arrived at a listening socket.
    fn begin_serving(&mut self, line: u32, listener: i64) -> Result<usize, Stop> {
        let options = self.descriptors.open.get(&listener).map(|open| open.options.clone()).unwrap_or_default();
        let profile = self.profile_for(&options).map_err(|refusal| Problem::unsupported(line, refusal))?;
        let index = self.world.add(Connection::server(profile, self.plan.initial_sequence, listener));
        Ok(index)
    }

    fn expect(&mut self, event: &Event, packet: &Packet, start: Nanos, end: Nanos) -> Result<(), Stop> {
        let tolerance = self.tolerance(start);
        let (earliest, latest) = (start.saturating_sub(tolerance), end.saturating_add(tolerance));
        let first = self.next_departure(event.line, packet, latest)?;
        let current = self.world.current();
        if Some(first.connection) != current {
            return Err(self.mismatch(event, packet, &first, "it belongs to an earlier connection"));
        }
        self.world.connections[first.connection].numbers.learn(packet, &first.segment);
        let mut came = self.written(&first);
        let largest = came.payload_bytes;
        let mut last = first;
        while came.payload_bytes < packet.payload_bytes && largest > 0 && !self.plan.strict_segments {
            let next = self.next_departure(event.line, packet, latest).map_err(|stop| stop.after(&came))?;
            let part = self.written(&next);
            came = expect::join(&came, &part, largest, packet.payload_bytes)
                .map_err(|refusal| self.mismatch(event, packet, &next, &refusal.to_string()))?;
            last = next;
        }
        let tick = self.plan.timestamp_tick_ns.map(|tick| (tick, self.plan.tolerance_ns));
        let (differences, push) = expect::differences(packet, &came, tick);
        if !differences.is_empty() {
            return Err(self.mismatch(event, &came, &last, &differences.join("; ")).expecting(packet));
        }
        if push {
            self.push_lines.push(event.line);
        }
        for at in [first.at, last.at] {
            if at < earliest || at > latest {
                let sentence = format!("it came at {} instead of {}", seconds(at), shown_range(start, end));
                return Err(self.mismatch(event, packet, &last, &sentence));
            }
        }
        self.world.now = self.world.now.max(last.at);
        Ok(())
    }

    fn written(&self, departure: &Departure) -> Packet {
        self.world.connections[departure.connection].packet_of(&departure.segment)
    }

    /// The next segment that the endpoint sends, at the latest then.
    fn next_departure(&mut self, line: u32, packet: &Packet, latest: Nanos) -> Result<Departure, Stop> {
        loop {
            if let Some(departure) = self.world.departures.pop_front() {
                return Ok(departure);
            }
            if !self.world.step(latest) {
                let by = if latest == Nanos::MAX { "ever".to_owned() } else { format!("by {}", seconds(latest)) };
                return Err(self.differs(line, format!("nothing was sent {by}")).expecting(packet));
            }
            self.resume()?;
        }
    }

    fn mismatch(&self, event: &Event, packet: &Packet, came: &Departure, sentence: &str) -> Stop {
        Stop::differs(event.line, sentence.to_owned()).coming(packet).with_history(self.world.history(came.number))
    }

    fn command(&mut self, shell: &Block) -> Result<(), Stop> {
        self.plan.environment.apply(shell)?;
        self.world.set_interface_is_full(self.plan.environment.interface_is_full);
        Ok(())
    }

    fn check(&mut self, block: &Block) {
        let world = &self.world;
        let endpoint = world.current().map(|index| &world.connections[index].endpoint);
        let words = block.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let values = words.filter_map(|word| Some((word.to_owned(), checks::known(endpoint, word)?))).collect();
        let segments = world.history(world.count()).to_vec();
        self.checks.push(Check { line: block.line, code: block.text.clone(), values, segments });
    }

    fn run(mut self) -> Report {
        let mut report = self.all().map_or_else(|stop| stop.report(self.script), |()| Report::default());
        if !self.push_lines.is_empty() {
            let lines: Vec<String> = self.push_lines.iter().map(ToString::to_string).collect();
            report.notes.push(format!("PSH is otherwise than written in line {}", lines.join(", ")));
        }
        report.checks = self.checks;
        report
    }
}

fn shown_range(start: Nanos, end: Nanos) -> String {
    if start == end { seconds(start) } else { format!("between {} and {}", seconds(start), seconds(end)) }
}
