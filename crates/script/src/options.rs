//! The options in a script's option lines: packetdrill's own, and `--profile` and `--set` for the TCP under test.

use crate::preamble::{Environment, IPV4_AND_TCP_HEADER_BYTES};
use crate::problem::{Problem, malformed, unsupported};
use crate::script::{OptionLine, Script};
use crate::settings::Settings;
use firstflight_tcp::{Nanos, Profile};

/// The options from a script's own lines and from its caller.
#[derive(Clone, Debug)]
pub(crate) struct ScriptSettings {
    pub environment: Environment,
    pub tolerance_ns: Nanos,
    /// The clock of the system under test at time 0. The place of an event in a tick decides when timers expire.
    pub clock_at_start: Nanos,
    /// Of each connection's system under test. BBR's first phase in PROBE_BW follows from it.
    pub initial_sequence: u32,
    /// Share of the time since the last event by which an event may be off.
    pub tolerance_percent: f64,
    /// One expected packet is one segment.
    pub strict_segments: bool,
    /// Nanoseconds of a tick of the timestamp clock, by which TSval is checked; none: not checked.
    pub timestamp_tick_ns: Option<Nanos>,
    /// Map an echoed timestamp that was never sent by its distance from the first one.
    pub scale_echoes: bool,
}

/// Bytes that an IPv6 header is longer than an IPv4 one.
const IPV6_EXTRA_BYTES: u32 = 20;

/// packetdrill's options that say where and how its own program runs.
const WITHOUT_EFFECT: &str = "\
    bind_port code_command code_format code_sockopt connect_port debug dry_run gateway_ip local_ip mss \
    netmask_ip remote_ip send_omit_free speed verbose";

impl ScriptSettings {
    /// Reads the option lines and the preamble.
    pub fn new(script: &Script, tolerance_ns: Nanos) -> Result<Self, Problem> {
        let profile = script.options.iter().rfind(|option| option.name == "profile");
        let name = profile.map_or(Ok(default_profile()), value)?;
        let line = profile.map_or(1, |option| option.line);
        let settings = Settings::named(name).map_err(|refusal| Problem::malformed(line, refusal))?;
        let mut plan = Self {
            environment: Environment::new(settings),
            tolerance_ns,
            clock_at_start: 0,
            // Close to the end, so that numbers wrap in a script's first bytes.
            initial_sequence: u32::MAX - 5_000,
            tolerance_percent: 0.0,
            strict_segments: false,
            timestamp_tick_ns: None,
            scale_echoes: false,
        };
        for option in script.options.iter().filter(|option| !matches!(option.name.as_str(), "profile" | "set")) {
            plan.option(option)?;
        }
        if let Some(preamble) = &script.preamble {
            plan.environment.apply(preamble)?;
        }
        for option in script.options.iter().filter(|option| option.name == "set") {
            plan.set(option)?;
        }
        plan.environment.settings.profile().map_err(|refusal| Problem::malformed(1, refusal))?;
        Ok(plan)
    }

    fn set(&mut self, option: &OptionLine) -> Result<(), Problem> {
        let (path, text) = value(option)?.split_once('=').ok_or_else(|| {
            Problem::malformed(option.line, "--set needs a field and its value, such as --set=initial_window=3")
        })?;
        let set = self.environment.settings.write(path.trim(), text);
        set.map_err(|refusal| Problem::malformed(option.line, refusal))
    }

    fn option(&mut self, option: &OptionLine) -> Result<(), Problem> {
        match option.name.as_str() {
            "tolerance_usecs" => {
                self.tolerance_ns = self.tolerance_ns.max(number::<u32>(option)? as Nanos * 1_000);
            }
            "clock_usecs" => self.clock_at_start = Nanos::from(number::<u32>(option)?) * 1_000,
            "initial_sequence" => self.initial_sequence = number(option)?,
            "tolerance_percent" => self.tolerance_percent = f64::from(number::<u8>(option)?.min(100)),
            "strict_segments" => self.strict_segments = true,
            "tcp_ts_tick_usecs" => {
                let tick = number::<u32>(option)?;
                self.timestamp_tick_ns = (tick > 0).then_some(Nanos::from(tick) * 1_000);
            }
            "tcp_ts_ecr_scaled" => self.scale_echoes = true,
            "mtu" => self.limit_segments(option, number::<u32>(option)?.saturating_sub(IPV4_AND_TCP_HEADER_BYTES))?,
            "ip_version" => match value(option)? {
                "ipv4" | "ipv4-mapped-ipv6" => {}
                "ipv6" => {
                    let profile = self.environment.settings.profile();
                    let mss = profile.map_err(|refusal| Problem::malformed(option.line, refusal))?.mss_bytes;
                    self.limit_segments(option, mss.saturating_sub(IPV6_EXTRA_BYTES))?;
                }
                other => malformed!(option.line, "--ip_version={other} is none of ipv4, ipv4-mapped-ipv6 and ipv6"),
            },
            name if WITHOUT_EFFECT.split_whitespace().any(|known| known == name) => {}
            name => {
                unsupported!(
                    option.line,
                    "the option --{name} is not modeled; --profile and --set choose the TCP, --tolerance_usecs and \
                     --strict_segments the comparison"
                );
            }
        }
        Ok(())
    }

    fn limit_segments(&mut self, option: &OptionLine, mss: u32) -> Result<(), Problem> {
        let set = self.environment.settings.write("mss_bytes", &mss.to_string());
        set.map_err(|refusal| Problem::malformed(option.line, refusal))
    }
}

/// The TCP of a script that names none: the one that the public scripts are written for.
fn default_profile() -> &'static str {
    if Profile::NAMES.contains(&"linux") { "linux" } else { "rfc" }
}

fn value(option: &OptionLine) -> Result<&str, Problem> {
    option.value.as_deref().map(str::trim).filter(|value| !value.is_empty()).ok_or_else(|| {
        Problem::malformed(option.line, format!("the option --{0} needs a value: --{0}=...", option.name))
    })
}

fn number<N: std::str::FromStr>(option: &OptionLine) -> Result<N, Problem> {
    let text = value(option)?;
    text.parse().map_err(|_| {
        Problem::malformed(option.line, format!("--{}={text} is not a whole number in its range", option.name))
    })
}
