//! `setsockopt` and `getsockopt`, and the profile that options and settings make together.

use super::Runner;
use super::calls::arguments::{field, shown, symbols, wrong};
use super::descriptors::SocketOptions;
use super::errno::{Errno, Halt, Outcome};
use super::stop::Stop;
use crate::problem::{Problem, Refusal, unsupported};
use crate::script::{Argument, Call};
use firstflight_tcp::{Nagle, Profile};

/// Options that do not affect the model.
const WITHOUT_EFFECT: &str = "\
    IP_BIND_ADDRESS_NO_PORT IP_FREEBIND IP_MTU_DISCOVER IP_RECVERR IP_TOS IP_TRANSPARENT IPV6_RECVERR \
    IPV6_TCLASS SO_MARK SO_PRIORITY SO_REUSEADDR SO_REUSEPORT TCP_INQ TCP_NOTSENT_LOWAT";

/// Linux's smallest `SO_SNDBUF` and `SO_RCVBUF`, after doubling (SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF).
const SMALLEST_SEND_BUFFER: i64 = 4608;
const SMALLEST_RECEIVE_BUFFER: i64 = 2304;

/// The value of `TCP_MAXSEG` before there is a connection and nothing was set.
// RFC 9293 §3.7.1.
const DEFAULT_MSS: i64 = 536;

impl Runner<'_> {
    /// The profile of a connection whose socket has these options.
    pub(super) fn profile_for(&self, options: &SocketOptions) -> Result<Profile, Refusal> {
        let mut settings = self.plan.environment.settings.clone();
        if let Some(name) = &options.congestion_control {
            settings.write("congestion_control", name)?;
            settings.switch_off_unused()?;
        }
        let mut profile = settings.profile()?;
        if let Some(retries) = options.syn_retries {
            // Linux, tcp_write_timeout: the linear ones come on top.
            profile.max_syn_retries = retries.saturating_add(profile.linear_syn_timeouts);
        }
        if let Some(bytes) = options.segment_bytes.and_then(|bytes| u32::try_from(bytes).ok()) {
            profile.mss_bytes = profile.mss_bytes.min(bytes);
        }
        if let Some(bytes) = options.receive_buffer_bytes.and_then(|bytes| u32::try_from(bytes).ok()) {
            // Half of the buffer is overhead, and a size that was asked for does not grow.
            let largest = if profile.window_scaling { bytes / 2 } else { (bytes / 2).min(65535) };
            profile.receive_window_bytes = largest;
            if let Some(growth) = &mut profile.receive_window_growth {
                growth.initial_bytes = largest;
            }
        }
        if options.no_delay {
            profile.nagle = Nagle::Off;
        }
        profile.validate()?;
        Ok(profile)
    }

    pub(super) fn setsockopt(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let name = symbols(call, 2, "an option, such as SO_REUSEADDR")?;
        let name = name.first().map_or("", String::as_str);
        let mut open = self.descriptor(call)?.clone();
        let connected = open.role.connection();
        let options = &mut open.options;
        match name {
            "TCP_NODELAY" => options.no_delay = value(call)? != 0,
            "TCP_CORK" => options.cork = value(call)? != 0,
            "TCP_QUICKACK" => {
                let quick = value(call)? != 0;
                if let Some(index) = connected {
                    self.world.connections[index].endpoint.set_quick_ack(quick);
                }
            }
            "TCP_SYNCNT" => match value(call)? {
                retries @ 1..=127 => options.syn_retries = Some(retries as u32),
                _ => return Ok(Outcome::Failed(Errno::EINVAL)),
            },
            "TCP_MAXSEG" if connected.is_some() => {
                unsupported!(call.line, "TCP_MAXSEG of an open connection is not modeled")
            }
            "TCP_MAXSEG" => match value(call)? {
                bytes @ 88..=32767 => options.segment_bytes = Some(bytes),
                0 => options.segment_bytes = None,
                _ => return Ok(Outcome::Failed(Errno::EINVAL)),
            },
            "TCP_CONGESTION" if connected.is_some() => {
                unsupported!(call.line, "TCP_CONGESTION of an open connection is not modeled")
            }
            "TCP_CONGESTION" => match call.arguments.get(3) {
                Some(Argument::Text(name)) => options.congestion_control = Some(name.clone()),
                other => return Err(wrong(call, 3, "the name of an algorithm in quotes", other).into()),
            },
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
                options.send_buffer_bytes = Some(value(call)?.saturating_mul(2).max(SMALLEST_SEND_BUFFER));
            }
            "SO_RCVBUF" | "SO_RCVBUFFORCE" if connected.is_some() => {
                unsupported!(call.line, "SO_RCVBUF of an open connection is not modeled")
            }
            "SO_RCVBUF" | "SO_RCVBUFFORCE" => {
                let bytes = value(call)?.saturating_mul(2).max(SMALLEST_RECEIVE_BUFFER);
                options.receive_buffer_bytes = Some(bytes);
            }
            "SO_LINGER" => options.resets_on_close = lingers_for_nothing(call)?,
            "SO_KEEPALIVE" if value(call)? == 0 => {}
            name if WITHOUT_EFFECT.split_whitespace().any(|known| known == name) => {}
            name => unsupported!(call.line, "the socket option {name} is not modeled"),
        }
        if let Some(index) = connected {
            let connection = &mut self.world.connections[index];
            match name {
                "TCP_NODELAY" => {
                    let usual = connection.endpoint.profile().nagle;
                    connection.endpoint.set_nagle(if open.options.no_delay { Nagle::Off } else { usual });
                    // Linux sends waiting data, even through a cork (tcp_push_pending_frames).
                    connection.set_cork(open.options.cork && !open.options.no_delay);
                }
                "TCP_CORK" => connection.set_cork(open.options.cork),
                _ => {}
            }
        }
        *self.descriptor(call)? = open;
        Ok(Outcome::Returned(0))
    }

    pub(super) fn getsockopt(&mut self, call: &Call) -> Result<Outcome, Halt> {
        let name = symbols(call, 2, "an option, such as TCP_MAXSEG")?;
        let name = name.first().map_or("", String::as_str);
        let open = self.descriptor(call)?.clone();
        let connection = open.role.connection();
        let options = &open.options;
        let found = match name {
            "TCP_MAXSEG" => match connection.map(|index| &self.world.connections[index]) {
                Some(connection) if connection.established => i64::from(connection.endpoint.info().mss_bytes),
                _ => options.segment_bytes.unwrap_or(DEFAULT_MSS),
            },
            "TCP_NODELAY" => i64::from(options.no_delay),
            "TCP_CORK" => i64::from(options.cork),
            "SO_ERROR" => connection
                .and_then(|index| self.world.connections[index].error.take())
                .map_or(0, |errno: Errno| errno.0),
            "SO_SNDBUF" if options.send_buffer_bytes.is_some() => options.send_buffer_bytes.unwrap_or(0),
            "SO_RCVBUF" if options.receive_buffer_bytes.is_some() => options.receive_buffer_bytes.unwrap_or(0),
            "TCP_CONGESTION" => {
                let settings = &self.plan.environment.settings;
                let usual = settings.get("congestion_control.algorithm").and_then(|name| name.as_str());
                let name = options.congestion_control.as_deref().or(usual).unwrap_or("").to_owned();
                self.check_value(call, 3, &Argument::Text(name))?;
                return Ok(Outcome::Returned(0));
            }
            name => unsupported!(call.line, "asking for the socket option {name} is not modeled"),
        };
        self.check_value(call, 3, &Argument::Integer(found))?;
        Ok(Outcome::Returned(0))
    }

    /// Compares a call's result with the script's value, plain or as `[value]`.
    pub(super) fn check_value(&self, call: &Call, place: usize, found: &Argument) -> Result<(), Stop> {
        let expected = match call.arguments.get(place) {
            Some(Argument::List(items)) if items.len() == 1 => &items[0],
            Some(argument) => argument,
            None => return Err(wrong(call, place, "the value expected, such as [1460]", None).into()),
        };
        if matches!(expected, Argument::Ellipsis) || expected == found {
            return Ok(());
        }
        let sentence = format!("{}() found {} instead of {}", call.name, shown(found), shown(expected));
        Err(self.differs(call.line, sentence))
    }
}

/// The value that is set: `[1]` or `1`.
fn value(call: &Call) -> Result<i64, Problem> {
    match call.arguments.get(3) {
        Some(Argument::Integer(number)) => Ok(*number),
        Some(Argument::List(items)) => match items.as_slice() {
            [Argument::Integer(number)] => Ok(*number),
            _ => Err(wrong(call, 3, "one number, such as [1]", call.arguments.get(3))),
        },
        other => Err(wrong(call, 3, "a number, such as [1]", other)),
    }
}

/// True if `{onoff=1, linger=0}` is set.
fn lingers_for_nothing(call: &Call) -> Result<bool, Problem> {
    let number = |name: &str| match field(call.arguments.get(3), name) {
        Some(Argument::Integer(number)) => Ok(*number),
        _ => Err(wrong(call, 3, "{onoff=1, linger=0}", call.arguments.get(3))),
    };
    match (number("onoff")?, number("linger")?) {
        (0, _) => Ok(false),
        (_, 0) => Ok(true),
        _ => Err(Problem::unsupported(call.line, "SO_LINGER with a time is not modeled")),
    }
}
